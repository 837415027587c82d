"""What MONAI's engines need to train CL-Net: a loss with parts, clipped gradients, a last validation."""

import torch
from ignite.engine import Events
from monai.engines.evaluator import Evaluator
from monai.engines.trainer import SupervisedTrainer
from monai.engines.utils import IterationEvents
from torch import nn

from clnet.losses import CLNetLoss


class LossParts:
    """Puts the loss and its parts into ``engine.state.output``, where other handlers find them.

    The output is a list with one dictionary, ``loss`` and ``parts``: MONAI's own handlers look for the loss
    in the first entry of a list. What the trainer does not need after an iteration (images, predictions) is
    dropped from the output there, so that it does not stay in memory.
    """

    def __init__(self, loss: CLNetLoss) -> None:
        self.loss = loss

    def attach(self, engine: SupervisedTrainer) -> None:
        """Act when a model's update is complete."""
        engine.add_event_handler(IterationEvents.MODEL_COMPLETED, self)

    def __call__(self, engine: SupervisedTrainer) -> None:
        """Keep the loss and its parts alone."""
        engine.state.output = [{"loss": engine.state.output["loss"].detach(), "parts": self.loss.parts}]


class GradientClip:
    """Scales gradients down to a norm of at most `max_norm` before each step (0.1 in Deformable DETR).

    Where gradients of several batches are accumulated, their sum is clipped, once.
    """

    def __init__(self, network: nn.Module, max_norm: float) -> None:
        self.network = network
        self.max_norm = max_norm

    def attach(self, engine: SupervisedTrainer) -> None:
        """Act between backward pass and step."""
        engine.add_event_handler(IterationEvents.BACKWARD_COMPLETED, self)

    def __call__(self, engine: SupervisedTrainer) -> None:
        """Clip, if the step comes next."""
        batch = (engine.state.iteration - 1) % engine.state.epoch_length + 1
        if batch % engine.accumulation_steps and batch != engine.state.epoch_length:
            return
        scaler = engine.scaler
        if scaler is not None:
            scaler.unscale_(engine.optimizer)
        torch.nn.utils.clip_grad_norm_(self.network.parameters(), self.max_norm)


class ValidateLastEpoch:
    """Validates after the last epoch, if that is not one of those that MONAI's `ValidationHandler` validates.

    Args:
        validator: the engine of the validation.
        interval: of the `ValidationHandler`, in epochs.
    """

    def __init__(self, validator: Evaluator, interval: int) -> None:
        self.validator = validator
        self.interval = interval

    def attach(self, engine: SupervisedTrainer) -> None:
        """Act after each epoch."""
        engine.add_event_handler(Events.EPOCH_COMPLETED, self)

    def __call__(self, engine: SupervisedTrainer) -> None:
        """Validate if this was the last epoch."""
        if engine.state.epoch == engine.state.max_epochs and engine.state.epoch % self.interval:
            self.validator.run(engine.state.epoch)
