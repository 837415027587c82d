"""How the workflows call the network."""

from collections.abc import Callable
from typing import Any

import torch
from monai.inferers.inferer import SimpleInferer
from torch import Tensor


class NetworkInferer(SimpleInferer):
    """MONAI's plain inferer, with mixed precision on any device; MONAI's engines have it on GPUs alone.

    bfloat16 has the range of float32, so gradients need no scaling.

    Args:
        amp: mixed precision (bfloat16).
        attention: whether to ask a network with a lesion linker for the linker's attention too.
    """

    def __init__(self, amp: bool = False, attention: bool = False) -> None:
        super().__init__()
        self.amp = amp
        self.attention = attention

    def __call__(self, inputs: Tensor, network: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """The outputs of the network for images [B, 2, H, W]."""
        with torch.autocast(inputs.device.type, torch.bfloat16, enabled=self.amp):
            return super().__call__(inputs, network, *args, return_attention=self.attention, **kwargs)
