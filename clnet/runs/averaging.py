"""A moving average of the weights: steadier than the weights themselves, at no cost in inference."""

from copy import deepcopy

import torch
from ignite.engine import Events
from monai.engines.workflow import Workflow
from torch import nn


def averaged_network(network: nn.Module, momentum: float) -> nn.Module:
    """The network that gets the averaged weights: a copy, or the network itself for a momentum of 1.

    Args:
        network: that learns; may be wrapped for several processes.
        momentum: of the `MovingAverage`.
    """
    inner = _unwrapped(network)
    return inner if momentum == 1 else deepcopy(inner).requires_grad_(False)


class MovingAverage:
    """``average ← average + m (weights − average)`` after every step, with m falling to `momentum`.

    At iteration i, ``m = max(momentum, 9 / (i + 9))``: the first steps, far from any good weights, are soon
    forgotten. As m follows from the iteration alone, a resumed run averages as if nothing had happened;
    Ignite's EMAHandler starts its warm-up anew.

    Args:
        network: that learns; may be wrapped for several processes.
        average: of `averaged_network`; its buffers become those of the network. If it is the network itself,
            nothing happens.
        momentum: about 1 / the number of steps that the average looks back on.
    """

    def __init__(self, network: nn.Module, average: nn.Module, momentum: float) -> None:
        self.network = _unwrapped(network)
        self.average = average
        self.momentum = momentum

    def attach(self, engine: Workflow) -> None:
        """Act after every step, if there is an average."""
        if self.average is not self.network:
            engine.add_event_handler(Events.ITERATION_COMPLETED, self)

    @torch.no_grad()
    def __call__(self, engine: Workflow) -> None:
        """Move the average towards the weights."""
        share = max(self.momentum, 9 / (engine.state.iteration + 9))
        for average, weight in zip(self.average.parameters(), self.network.parameters(), strict=True):
            average.lerp_(weight, share)
        for copied, buffer in zip(self.average.buffers(), self.network.buffers(), strict=True):
            copied.copy_(buffer)


def _unwrapped(network: nn.Module) -> nn.Module:
    module: nn.Module = getattr(network, "module", network)
    return module
