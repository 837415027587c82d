"""Half precision to float32, where half is not enough."""

import torch
from torch import Tensor


def full_precision(x: Tensor) -> Tensor:
    """Float16 and bfloat16 to float32, for sums, exponentials and boxes; all other types stay."""
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
