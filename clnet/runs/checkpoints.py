"""Checkpoints: the best weights, and all that a killed run needs to resume as if nothing had happened."""

import pickle
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from ignite.engine import Events
from monai.engines.workflow import Workflow
from torch import nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from clnet.errors import ClnetError
from clnet.files import whole_file

LAST, BEST = "last.pt", "model.pt"
AUTO = "auto"


class CheckpointError(ClnetError):
    """A checkpoint that is not there, or does not fit."""


class HasEpoch(Protocol):
    """A sampler that shuffles by epoch."""

    epoch: int


class Checkpoints:
    """Saves ``last.pt`` to resume from, and ``model.pt`` (weights alone) whenever validation was best.

    To be attached after the validation handlers and after what records the epoch: a run that is killed in
    between repeats the epoch.

    Args:
        folder: where the files go.
        network: that learns; may be wrapped for several processes.
        validated: that validation measures and ``model.pt`` holds: the same network, or its moving average.
        optimizer: whose state is kept.
        schedule: of the learning rate.
        sampler: of the training data; it is told the epoch to resume with.
        evaluator: the engine of the validation, whose best metric decides.
        interval: epochs between two ``last.pt``, which takes three times the weights; the last epoch always
            has one.
        resume: resume from ``last.pt``; "auto": if it is there.
    """

    def __init__(
        self,
        folder: str | Path,
        network: nn.Module,
        validated: nn.Module,
        optimizer: Optimizer,
        schedule: LRScheduler,
        sampler: HasEpoch,
        evaluator: Workflow,
        interval: int = 1,
        resume: bool | str = False,
    ) -> None:
        self.folder = Path(folder)
        self.network = getattr(network, "module", network)
        self.validated = getattr(validated, "module", validated)
        self.optimizer = optimizer
        self.schedule = schedule
        self.sampler = sampler
        self.evaluator = evaluator
        self.interval = interval
        self.resume = resume

    def attach(self, engine: Workflow) -> None:
        """Load at the start, save after epochs."""
        if self.resume:
            engine.add_event_handler(Events.STARTED, self.load)
        engine.add_event_handler(Events.EPOCH_COMPLETED, self.save)

    def save(self, engine: Workflow) -> None:
        """Write ``last.pt`` if it is due, and ``model.pt`` if this epoch's validation was the best so far."""
        if engine.state.rank != 0:
            return
        best_epoch = self.evaluator.state.best_metric_epoch
        if best_epoch == engine.state.epoch or best_epoch < 0:
            save_atomically(self.validated.state_dict(), self.folder / BEST)
        if engine.state.epoch % self.interval and engine.state.epoch != engine.state.max_epochs:
            return
        averaged = {} if self.validated is self.network else {"validated": self.validated.state_dict()}
        save_atomically(
            {
                "network": self.network.state_dict(),
                **averaged,
                "optimizer": self.optimizer.state_dict(),
                "schedule": self.schedule.state_dict(),
                "trainer": {"epoch": engine.state.epoch, "iteration": engine.state.iteration},
                "best": {"metric": float(self.evaluator.state.best_metric), "epoch": best_epoch},
                "random": random_state(),
            },
            self.folder / LAST,
        )

    def load(self, engine: Workflow) -> None:
        """Put everything back as it was when ``last.pt`` was written."""
        path = self.folder / LAST
        if self.resume == AUTO and not path.exists():
            return
        if not path.exists():
            raise CheckpointError(
                f"{path}: there is nothing to resume; name the interrupted run with --run_name, "
                "or leave out --resume to start a new run"
            )
        state = load_checkpoint(path)
        try:
            self.network.load_state_dict(state["network"])
            if self.validated is not self.network:
                self.validated.load_state_dict(state["validated"])
            self.optimizer.load_state_dict(state["optimizer"])
        except (KeyError, ValueError, RuntimeError) as error:
            raise CheckpointError(
                f"{path}: does not fit this network; resume with the settings it began with ({error})"
            ) from error
        self.schedule.load_state_dict(state["schedule"])
        engine.state.epoch = state["trainer"]["epoch"]
        engine.state.iteration = state["trainer"]["iteration"]
        self.evaluator.state.best_metric = state["best"]["metric"]
        self.evaluator.state.best_metric_epoch = state["best"]["epoch"]
        self.sampler.epoch = state["trainer"]["epoch"]
        set_random_state(state["random"])


def load_weights(network: nn.Module, path: str | Path) -> nn.Module:
    """Load ``model.pt`` (or the network of ``last.pt``) into a network, and give the network back."""
    state = load_checkpoint(Path(path))
    try:
        network.load_state_dict(state.get("network", state))
    except RuntimeError as error:
        raise CheckpointError(f"{path}: the weights are of another network: {error}") from error
    return network


def load_checkpoint(path: Path) -> dict[str, Any]:
    """Read a file of tensors and plain values; anything else is refused."""
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
    except FileNotFoundError:
        raise CheckpointError(f"{path}: there is no such file of weights") from None
    except (OSError, RuntimeError, EOFError, pickle.UnpicklingError) as error:
        raise CheckpointError(f"{path}: is not a checkpoint that can be read: {error}") from error
    if not isinstance(state, dict):
        raise CheckpointError(f"{path}: holds a {type(state).__name__}, not a state dict")
    return state


def save_atomically(state: Mapping[str, Any], path: Path) -> None:
    """Write a file whole or not at all: a run may be killed at any moment."""
    with whole_file(path) as unfinished, unfinished.open("wb") as file:  # whose errors say what is wrong
        torch.save(dict(state), file)


def random_state() -> dict[str, Any]:
    """The state of every global generator, as tensors and plain values."""
    version, numbers, gauss = random.getstate()
    name, keys, position, has_gauss, cached = np.random.get_state(legacy=True)  # noqa: NPY002
    state: dict[str, Any] = {
        "python": [version, list(numbers), gauss],
        "numpy": [name, torch.from_numpy(np.asarray(keys, dtype=np.int64)), position, has_gauss, cached],
        "torch": torch.get_rng_state(),
    }
    if torch.cuda.is_available():
        state["cuda"] = torch.cuda.get_rng_state_all()
    return state


def set_random_state(state: Mapping[str, Any]) -> None:
    """Put every global generator back."""
    version, numbers, gauss = state["python"]
    random.setstate((version, tuple(numbers), gauss))
    name, keys, position, has_gauss, cached = state["numpy"]
    np.random.set_state((name, keys.numpy().astype(np.uint32), position, has_gauss, cached))  # noqa: NPY002
    torch.set_rng_state(state["torch"])
    if "cuda" in state:
        torch.cuda.set_rng_state_all(state["cuda"])
