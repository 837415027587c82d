"""How the workflows call the network."""

from collections.abc import Callable
from typing import Any

import torch
from monai.inferers.inferer import SimpleInferer
from torch import Tensor

from clnet.ops.precision import half_precision


class NetworkInferer(SimpleInferer):
    """MONAI's plain inferer, with mixed precision on any device; MONAI's engines have it on GPUs alone.

    Args:
        amp: mixed precision; see `clnet.ops.precision.half_precision`.
        attention: whether to ask a network with a lesion linker for the linker's attention too.
    """

    def __init__(self, amp: bool = False, attention: bool = False) -> None:
        super().__init__()
        self.amp = amp
        self.attention = attention

    def __call__(self, inputs: Tensor, network: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """The outputs of the network for images [B, 2, H, W]."""
        with torch.autocast(inputs.device.type, half_precision(inputs.device), enabled=self.amp):
            return super().__call__(inputs, network, *args, return_attention=self.attention, **kwargs)
