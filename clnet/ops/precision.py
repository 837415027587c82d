"""Half precision: where it is worth while, and where it is not enough."""

from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor


def full_precision(x: Tensor) -> Tensor:
    """Float16 and bfloat16 to float32, for sums, exponentials and boxes; all other types stay."""
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x


def bfloat16_is_fast(device: torch.device) -> bool:
    """Whether mixed precision in bfloat16 saves time on a device, and can be trusted there.

    On CPUs it takes the instructions of AVX512-BF16. Those of AMX are faster still, but on some virtual
    machines that announce them they end the process, so nobody gets them without asking.
    """
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    if device.type != "cpu":
        return False
    # Older versions of PyTorch cannot say.
    capabilities: dict[str, bool] = getattr(torch.cpu, "get_capabilities", dict)()
    return bool(capabilities.get("avx512_bf16")) and not capabilities.get("amx_tile")


def half_precision(device: torch.device) -> torch.dtype:
    """The type of mixed precision: bfloat16, or float16 on GPUs that compute no other."""
    only_float16 = device.type == "cuda" and not torch.cuda.is_bf16_supported(including_emulation=False)
    return torch.float16 if only_float16 else torch.bfloat16


def needs_scaling(amp: bool, device: torch.device) -> bool:
    """Whether gradients must be scaled: float16, unlike bfloat16, has not the range of float32."""
    return amp and half_precision(device) == torch.float16


def without_autocast(device: torch.device) -> AbstractContextManager[None]:
    """A block in which tensors on the device keep their precision, whatever autocast is around it."""
    if not torch.amp.is_autocast_available(device.type):  # such as "meta"
        return nullcontext()
    return torch.autocast(device.type, enabled=False)
