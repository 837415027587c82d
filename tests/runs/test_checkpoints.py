"""When checkpoints are written, and that the last epoch is validated."""

import pytest
import torch
from full_disk import full_disk
from ignite.engine import Events
from monai.bundle import ConfigParser
from monai.handlers import ValidationHandler
from small_training import small_evaluator, small_trainer

from clnet.files import WriteError
from clnet.runs.checkpoints import BEST, LAST, Checkpoints, load_checkpoint, save_atomically
from clnet.runs.engine import ValidateLastEpoch


class Sampler:
    """Stands for the sampler of the training data."""

    epoch = 0


def train(folder, max_epochs, interval=1, val_interval=1):
    """The epochs that were validated, and those after which each file was there anew."""
    evaluator = small_evaluator()
    validated, written = [], {BEST: [], LAST: []}
    evaluator.add_event_handler(Events.COMPLETED, lambda engine: validated.append(engine.state.epoch))
    trainer = small_trainer([], max_epochs=max_epochs)
    ValidationHandler(val_interval, evaluator).attach(trainer)
    ValidateLastEpoch(evaluator, val_interval).attach(trainer)
    schedule = torch.optim.lr_scheduler.ConstantLR(trainer.optimizer)
    network = trainer.network
    Checkpoints(folder, network, network, trainer.optimizer, schedule, Sampler(), evaluator, interval).attach(
        trainer
    )

    @trainer.on(Events.EPOCH_COMPLETED)
    def look(engine):
        for name, epochs in written.items():
            if (folder / name).exists():
                epochs.append(engine.state.epoch)
                (folder / name).unlink()

    trainer.run()
    return validated, written


@pytest.mark.parametrize(
    ("max_epochs", "val_interval", "expected"),
    [(3, 2, [2, 3]), (4, 2, [2, 4]), (5, 3, [3, 5]), (1, 2, [1]), (2, 1, [1, 2])],
)
def test_the_last_epoch_is_validated_once_whatever_the_interval(tmp_path, max_epochs, val_interval, expected):
    validated, _ = train(tmp_path, max_epochs, val_interval=val_interval)
    assert validated == expected


def test_the_best_weights_may_be_those_of_the_last_epoch(tmp_path):
    # Of the epochs that are validated, 3 and 4, recall is 0.5 and 0.8.
    _, written = train(tmp_path, max_epochs=4, val_interval=3)
    assert written[BEST][-1] == 4


@pytest.mark.parametrize(("interval", "expected"), [(1, [1, 2, 3, 4, 5]), (2, [2, 4, 5]), (5, [5]), (9, [5])])
def test_checkpoints_to_resume_from_come_at_intervals_and_at_the_end(tmp_path, interval, expected):
    _, written = train(tmp_path, max_epochs=5, interval=interval)
    assert written[LAST] == expected
    assert written[BEST] == [1, 2, 4]  # recall is 0.25, 0.75, 0.5, 0.8, 0.6


def test_the_moving_average_is_what_is_kept_and_it_is_resumed(tmp_path):
    average = torch.nn.Linear(2, 1)
    trainer, evaluator = small_trainer([], max_epochs=1), small_evaluator()
    schedule = torch.optim.lr_scheduler.ConstantLR(trainer.optimizer)
    parts = trainer.optimizer, schedule, Sampler(), evaluator
    Checkpoints(tmp_path, trainer.network, average, *parts).save(trainer)
    kept = torch.load(tmp_path / BEST, weights_only=True)
    torch.testing.assert_close(kept, dict(average.state_dict()))
    other = torch.nn.Linear(2, 1)
    Checkpoints(tmp_path, trainer.network, other, *parts).load(trainer)
    torch.testing.assert_close(dict(other.state_dict()), kept)


def test_workers_of_the_validation_stay_from_one_validation_to_the_next():
    parser = ConfigParser(ConfigParser.load_config_file("bundle/configs/train.yaml"))
    parser["workers"] = 2
    assert parser.get_parsed_content("validate#dataloader#persistent_workers") is True
    parser = ConfigParser(ConfigParser.load_config_file("bundle/configs/train.yaml"))
    assert parser.get_parsed_content("validate#dataloader#persistent_workers") is False


def test_a_full_disk_is_told_in_words_and_leaves_the_checkpoint_before(tmp_path):
    file = tmp_path / LAST
    save_atomically({"weights": torch.arange(10_000)}, file)
    with full_disk(5_000), pytest.raises(WriteError, match=r"last\.pt: the disk is full\. Free some space"):
        save_atomically({"weights": torch.zeros(10_000)}, file)
    assert torch.equal(load_checkpoint(file)["weights"], torch.arange(10_000))
    assert list(tmp_path.iterdir()) == [file]
