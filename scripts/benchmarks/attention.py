"""Deformable attention in the paper's encoder: the fused operator against grid_sample."""

from typing import Any

import torch
from benchmarks.clocks import take_turns, times_as_fast
from torch import Tensor

from clnet.ops.deformable_attention import deformable_attention
from clnet.ops.reference import Shapes, reference_attention

HEADS, CHANNELS, POINTS, STRIDES = 8, 32, 4, (8, 16, 32, 64)


def encoder_inputs(rows: int, columns: int) -> tuple[Shapes, dict[str, Tensor]]:
    """What a layer of the encoder reads for one image: every cell of every level is a query."""
    generator = torch.Generator().manual_seed(0)
    shapes = [(-(-rows // stride), -(-columns // stride)) for stride in STRIDES]
    cells = sum(height * width for height, width in shapes)
    sizes = torch.tensor([(width, height) for height, width in shapes])  # [L, 2], x first
    places = [
        torch.cartesian_prod((torch.arange(height) + 0.5) / height, (torch.arange(width) + 0.5) / width)
        for height, width in shapes
    ]
    centres = torch.cat(places).flip(-1)[None, :, None] * sizes - 0.5  # [1, S, L, 2]
    offsets = 2 * torch.randn(1, cells, HEADS, len(shapes), POINTS, 2, generator=generator)
    weights = torch.randn(1, cells, HEADS, len(shapes) * POINTS, generator=generator).softmax(-1)
    return shapes, {
        "value": torch.randn(1, cells, HEADS, CHANNELS, generator=generator),
        "centres": centres.contiguous(),
        "offsets": offsets,
        "weights": weights.view(1, cells, HEADS, len(shapes), POINTS),
    }


def core(rows: int, columns: int, rounds: int) -> dict[str, Any]:
    """Forward, and forward with backward, of both paths."""
    shapes, tensors = encoder_inputs(rows, columns)
    learning = {name: tensor.clone().requires_grad_(name != "centres") for name, tensor in tensors.items()}
    grad = torch.ones(1, tensors["value"].shape[1], HEADS * CHANNELS)

    def fused(x: dict[str, Tensor]) -> Tensor:
        return deformable_attention(x["value"], shapes, x["centres"], x["offsets"], x["weights"])

    def reference(x: dict[str, Tensor]) -> Tensor:
        return reference_attention(x["value"], shapes, x["centres"], x["offsets"], x["weights"])

    def both(function: Any) -> None:
        learned = [tensor for tensor in learning.values() if tensor.requires_grad]
        torch.autograd.grad(function(learning), learned, grad, allow_unused=True)

    forward = take_turns({"ours": lambda: fused(tensors), "reference": lambda: reference(tensors)}, rounds)
    training = take_turns({"ours": lambda: both(fused), "reference": lambda: both(reference)}, rounds)
    return {
        "forward": forward,
        "forward_times_as_fast": times_as_fast(forward, "ours", "reference"),
        "forward_backward": training,
        "forward_backward_times_as_fast": times_as_fast(training, "ours", "reference"),
        "greatest_difference": (fused(tensors) - reference(tensors)).abs().max().item(),
    }


def attention() -> dict[str, Any]:
    """The core at both sizes of image, one thread."""
    torch.set_num_threads(1)
    return {"512x256": core(512, 256, 7), "1024x512": core(1024, 512, 3)}
