"""A training as small as can be, by the same engines and outputs as a real one."""

import time

import torch
from ignite.engine import Events
from monai.engines import SupervisedEvaluator, SupervisedTrainer
from monai.handlers import ValidationHandler

from clnet.runs.engine import LossParts

BATCHES_PER_EPOCH, PAIRS_PER_BATCH = 4, 3
PAIR_IDS = ["anna-left", "anna-right", "berta-left"]
RECALLS = [0.25, 0.75, 0.5, 0.8, 0.6]


class Batches:
    """Four batches of three pairs, each of which takes its time to load."""

    def __init__(self, seconds_to_load=0.0):
        self.seconds_to_load = seconds_to_load

    def __len__(self):
        return BATCHES_PER_EPOCH

    def __iter__(self):
        for _ in range(BATCHES_PER_EPOCH):
            time.sleep(self.seconds_to_load)
            yield {"image": torch.ones(PAIRS_PER_BATCH, 2, 4, 4), "pair_id": PAIR_IDS}


class RecallByEpoch:
    """Stands for the metric: what `RECALLS` says of the epoch, and something that is not one number."""

    def attach(self, engine, name):
        """As an Ignite metric does."""

        @engine.on(Events.EPOCH_COMPLETED)
        def compute(engine):
            recall = RECALLS[engine.state.epoch - 1]
            engine.state.metrics |= {name: recall, "recall@0.25": recall / 2, "curve": torch.zeros(3)}


def small_evaluator():
    return SupervisedEvaluator(
        device="cpu",
        val_data_loader=Batches(),
        network=torch.nn.Identity(),
        key_val_metric={"mean_recall": RecallByEpoch()},
        iteration_update=lambda engine, batch: {},
    )


def small_trainer(handlers, evaluator=None, max_epochs=3, seconds_to_load=0.0, seconds_to_train=0.0):
    """The loss in iteration i is 3 i: 1 i of detection, 2 i of links. Handlers come before the validation."""
    network = torch.nn.Conv2d(2, 1, 1)

    def loss(outputs, target):
        time.sleep(seconds_to_train)
        iteration = trainer.state.iteration + 0 * outputs.sum()
        loss.parts = {"detection_class": iteration.detach(), "link_class": 2 * iteration.detach()}
        return 3 * iteration

    groups = [
        {"name": "backbone", "params": [network.weight], "lr": 0.1},
        {"name": "other", "params": [network.bias], "lr": 1.0},
    ]
    validation = [ValidationHandler(1, evaluator)] if evaluator else []
    trainer = SupervisedTrainer(
        device="cpu",
        max_epochs=max_epochs,
        train_data_loader=Batches(seconds_to_load),
        network=network,
        optimizer=torch.optim.SGD(groups, lr=1.0),
        loss_function=loss,
        prepare_batch=lambda batch, device, non_blocking, **_: (batch["image"], None),
        train_handlers=[LossParts(loss), *handlers, *validation],
        decollate=False,
    )
    return trainer


def resume_after(trainer, epochs):
    """What loading a checkpoint does to the trainer, when it starts."""

    @trainer.on(Events.STARTED)
    def load(engine):
        engine.state.epoch, engine.state.iteration = epochs, epochs * BATCHES_PER_EPOCH


def break_off(trainer, iteration, error):
    """Let the trainer fail in the middle of an iteration."""

    @trainer.on(Events.ITERATION_STARTED(once=iteration))
    def fail(engine):
        raise error
