"""What the handlers that follow a training share: events, mean losses, learning rates, messages."""

import logging
import sys
from collections.abc import Callable, Mapping
from typing import Any

import torch
from ignite.engine import Engine, Events
from monai.engines.trainer import SupervisedTrainer
from monai.engines.workflow import Workflow
from monai.utils.misc import is_scalar
from torch import Tensor
from tqdm import tqdm

logger = logging.getLogger("clnet.runs")


class TrainingHandler:
    """Follows a training in its first process; subclasses do something at the events that concern them.

    Args:
        evaluator: the engine of the validation.
    """

    def __init__(self, evaluator: Workflow | None = None) -> None:
        self.evaluator = evaluator

    def attach(self, engine: SupervisedTrainer) -> None:
        """Follow the trainer, and the evaluator."""
        if engine.state.rank != 0:
            return
        engine.add_event_handler(Events.EPOCH_STARTED, self._epoch_started)
        engine.add_event_handler(Events.GET_BATCH_STARTED, self._batch_asked_for)
        engine.add_event_handler(Events.ITERATION_COMPLETED, self._iteration_completed)
        engine.add_event_handler(Events.EPOCH_COMPLETED, self._epoch_completed)
        engine.add_event_handler(Events.COMPLETED, self._completed)
        _on_failure(engine, self._failed)
        if self.evaluator is not None:
            self.evaluator.add_event_handler(Events.COMPLETED, self._validated, engine)

    def _epoch_started(self, engine: SupervisedTrainer) -> None: ...

    def _batch_asked_for(self, engine: SupervisedTrainer) -> None: ...

    def _iteration_completed(self, engine: SupervisedTrainer) -> None: ...

    def _epoch_completed(self, engine: SupervisedTrainer) -> None: ...

    def _validated(self, evaluator: Workflow, engine: SupervisedTrainer) -> None: ...

    def _completed(self, engine: SupervisedTrainer) -> None: ...

    def _failed(self, engine: SupervisedTrainer, error: BaseException) -> None:
        """The run ends by an error or by Ctrl-C; an error within an iteration calls this twice."""


class LossMeans:
    """The means of the loss and of its parts over the iterations since the last `take`.

    Sums stay on the device until then, so that a GPU need not be waited for in every iteration. With several
    processes they are the means of this one's share of the batches.
    """

    def __init__(self) -> None:
        self._sums: dict[str, Tensor] = {}
        self._iterations = 0

    def add(self, engine: SupervisedTrainer) -> None:
        """Count the iteration that is complete: its ``engine.state.output`` is that of `LossParts`."""
        (output,) = engine.state.output
        for name, value in {"loss": output["loss"], **output["parts"]}.items():
            self._sums[name] = self._sums.get(name, 0.0) + value.detach().double()
        self._iterations += 1

    def take(self) -> dict[str, float]:
        """The means by name, ``loss`` first; counting begins anew. Nothing counted gives no means."""
        if not self._iterations:
            return {}
        means = torch.stack(list(self._sums.values())) / self._iterations
        names = list(self._sums)
        self._sums, self._iterations = {}, 0
        return dict(zip(names, means.tolist(), strict=True))


def learning_rates(engine: SupervisedTrainer) -> dict[str, float]:
    """The learning rate of each parameter group by its name, or by its number if it has none."""
    groups = engine.optimizer.param_groups
    return {str(group.get("name", index)): float(group["lr"]) for index, group in enumerate(groups)}


def single_numbers(metrics: Mapping[str, Any]) -> dict[str, float]:
    """Those metrics that are one number; curves and the like are left out."""
    return {
        name: float(value)
        for name, value in metrics.items()
        if is_scalar(value) and not isinstance(value, str)
    }


def say(text: str, level: int = logging.INFO) -> None:
    """Show lines to the user.

    On a terminal they go above the progress bar. Otherwise they go where logging sends them, and to standard
    error if logging is not set up to show as much.
    """
    if not sys.stderr.isatty() and logger.hasHandlers() and logger.isEnabledFor(logging.INFO):
        logger.log(level, text)
    else:
        tqdm.write(text, file=sys.stderr)


def _on_failure(engine: Engine, callback: Callable[[Any, BaseException], None]) -> None:
    """Call back when a run ends by an error or by Ctrl-C; the error is raised again afterwards.

    Ignite drops an error that any handler has seen, and calls no further handlers once one raises: so the
    handler that raises again has to stay the last.
    """
    if engine.has_event_handler(_raise_again, Events.EXCEPTION_RAISED):
        engine.remove_event_handler(_raise_again, Events.EXCEPTION_RAISED)
    engine.add_event_handler(Events.EXCEPTION_RAISED, callback)
    engine.add_event_handler(Events.EXCEPTION_RAISED, _raise_again)


def _raise_again(engine: Engine, error: BaseException) -> None:
    raise error
