"""A moving average of the weights: steadier than the weights themselves, at no cost in inference."""

from copy import deepcopy

import torch
from ignite.engine import Events
from monai.engines.workflow import Workflow
from torch import nn


class MovingAverage:
    """``average ← average + m (weights − average)`` after every step, with m falling to `momentum`.

    At iteration i, ``m = max(momentum, 9 / (i + 9))``: the first steps, far from any good weights, are soon
    forgotten. As m follows from the iteration alone, a resumed run averages as if nothing had happened;
    Ignite's EMAHandler starts its warm-up anew.

    Args:
        network: that learns; may be wrapped for several processes.
        momentum: about 1 / the number of steps that the average looks back on; 1 for no average: the weights
            themselves.

    Attributes:
        average: the network with averaged weights and its own buffers; without an average the network itself.
    """

    def __init__(self, network: nn.Module, momentum: float) -> None:
        self.network = getattr(network, "module", network)
        self.momentum = momentum
        self.average = self.network
        if momentum < 1:
            self.average = deepcopy(self.network).requires_grad_(False)

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
        for average, buffer in zip(self.average.buffers(), self.network.buffers(), strict=True):
            average.copy_(buffer)
