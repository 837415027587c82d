"""How the workflows call the network."""

from collections.abc import Callable
from typing import Any

from monai.inferers.inferer import SimpleInferer
from torch import Tensor


class LinkInferer(SimpleInferer):
    """MONAI's plain inferer, which may ask a network with a lesion linker for the linker's attention too.

    Args:
        attention: whether to ask.
    """

    def __init__(self, attention: bool) -> None:
        super().__init__()
        self.attention = attention

    def __call__(self, inputs: Tensor, network: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """The outputs of the network for images [B, 2, H, W]."""
        return super().__call__(inputs, network, *args, return_attention=self.attention, **kwargs)
