"""A GPU: deformable attention, and whole networks compared with transformers', in several ways."""

import statistics
import time
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import torch
from benchmarks.attention import CHANNELS, HEADS, encoder_inputs
from benchmarks.network import outputs_of, same_networks
from torch import Tensor

from clnet.ops import triton_attention
from clnet.ops.deformable_attention import AttentionPath, choose_attention, deformable_attention
from clnet.ops.precision import half_precision

SIZES = [(512, 256), (1024, 512)]
WARM_UPS, ROUNDS = 3, 20
WAYS: dict[str, tuple[str, AttentionPath, bool, bool]] = {
    "ours, reference": ("ours", "reference", False, False),
    "ours": ("ours", "fused", False, False),
    "ours, compiled": ("ours", "fused", True, False),
    "ours, AMP": ("ours", "fused", False, True),
    "ours, AMP, compiled": ("ours", "fused", True, True),
    "transformers": ("transformers", "auto", False, False),
    "transformers, AMP": ("transformers", "auto", False, True),
}
"""Whose network, how it attends, whether it is compiled, and whether precision is mixed."""


def measured(work: Callable[[], object], device: torch.device) -> dict[str, Any]:
    """Median seconds of some work and its peak memory in bytes; or the error that ended it."""
    wait: Callable[[], None] = torch.cuda.synchronize if device.type == "cuda" else lambda: None
    try:
        for _ in range(WARM_UPS):  # compiles, and lets cuDNN choose
            work()
        wait()
        if device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(device)
        seconds = []
        for _ in range(ROUNDS):
            start = time.perf_counter()
            work()
            wait()
            seconds.append(time.perf_counter() - start)
    except Exception as error:
        # Out of memory, or a compiler that does not work there: the other ways are still worth knowing.
        return {"error": f"{type(error).__name__}: {str(error)[:200]}"}
    peak = torch.cuda.max_memory_allocated(device) if device.type == "cuda" else 0
    return {"seconds": statistics.median(seconds), "peak_bytes": peak}


def attention(size: tuple[int, int], dtype: torch.dtype, device: torch.device) -> dict[str, Any]:
    """An encoder layer's attention for one image, by both paths: times, and how far they are apart."""
    shapes, tensors = encoder_inputs(*size)
    inputs = {
        name: tensor.to(device, torch.float32 if name == "centres" else dtype)
        for name, tensor in tensors.items()
    }
    learning = {name: tensor.clone().requires_grad_(name != "centres") for name, tensor in inputs.items()}
    learned = [tensor for tensor in learning.values() if tensor.requires_grad]
    grad = torch.ones(1, inputs["value"].shape[1], HEADS * CHANNELS, device=device, dtype=dtype)

    def attend(x: dict[str, Tensor]) -> Tensor:
        return deformable_attention(x["value"], shapes, x["centres"], x["offsets"], x["weights"])

    result: dict[str, Any] = {}
    found = {}
    for path in ("reference", "fused"):
        choose_attention(path)
        found[path] = attend(inputs)
        result[f"{path}_forward"] = measured(lambda: attend(inputs), device)
        result[f"{path}_forward_backward"] = measured(
            lambda: torch.autograd.grad(attend(learning), learned, grad), device
        )
    result["greatest_difference"] = (found["fused"] - found["reference"]).abs().max().item()
    return result


def best_block(size: tuple[int, int], device: torch.device) -> dict[str, Any]:
    """Times of Triton's kernels by the elements of a program; see `clnet.ops.triton_attention`."""
    before = triton_attention.ELEMENTS
    result = {}
    for elements in (256, 512, 1024, 2048):
        triton_attention.ELEMENTS = elements
        times = attention(size, half_precision(device), device)
        result[str(elements)] = {name: times[f"fused_{name}"] for name in ("forward", "forward_backward")}
    triton_attention.ELEMENTS = before
    return result


def network(size: tuple[int, int], device: torch.device) -> dict[str, Any]:
    """Two images in the paper's network without linker, which is Deformable DETR; every way by itself."""
    image = torch.rand(1, 2, *size, generator=torch.Generator().manual_seed(0)).to(device)
    result: dict[str, Any] = {}
    expected: list[Tensor] | None = None
    for name, (side, path, compiled, amp) in WAYS.items():
        choose_attention(path)
        model = dict(zip(("ours", "transformers"), same_networks(), strict=True))[side].to(device)
        if compiled:
            for part in ("encoder", "detector", "matcher"):
                model.get_submodule(part).compile(fullgraph=True)
        mixed = torch.autocast(device.type, half_precision(device)) if amp else nullcontext()

        def infer(side: str = side, model: Any = model, mixed: Any = mixed) -> list[Tensor]:
            with torch.inference_mode(), mixed:
                return outputs_of(side, model, image)

        def step(side: str = side, model: Any = model, mixed: Any = mixed) -> None:
            model.zero_grad()
            with mixed:
                outputs = outputs_of(side, model, image)
            torch.stack([output.float().square().mean() for output in outputs]).sum().backward()

        way = result[name] = {"inference": measured(infer, device)}
        if "error" not in way["inference"]:
            found = [output.float() for output in infer()]
            expected = expected or found
            differences = [(a - b).abs().max().item() for a, b in zip(found, expected, strict=True)]
            way["greatest_difference"] = max(differences)
        model.train()
        way["training_step"] = measured(step, device)
    choose_attention("auto")
    return result


def gpu(device: torch.device) -> dict[str, Any]:
    """Everything, at both sizes."""
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False  # float32 is float32
    torch.backends.cudnn.benchmark = True
    result: dict[str, Any] = {"attention": {}, "network": {}, "block": best_block(SIZES[-1], device)}
    for size in SIZES:
        name = f"{size[0]}x{size[1]}"
        for dtype in (torch.float32, half_precision(device)):
            result["attention"][f"{name}, {str(dtype).removeprefix('torch.')}"] = attention(
                size, dtype, device
            )
        result["network"][name] = network(size, device)
    return result
