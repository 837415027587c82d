"""Half precision to float32, where half is not enough."""

from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor


def full_precision(x: Tensor) -> Tensor:
    """Float16 and bfloat16 to float32, for sums, exponentials and boxes; all other types stay."""
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x


def without_autocast(device: torch.device) -> AbstractContextManager[None]:
    """A block in which tensors on the device keep their precision, whatever autocast is around it."""
    if not torch.amp.is_autocast_available(device.type):  # such as "meta"
        return nullcontext()
    return torch.autocast(device.type, enabled=False)
