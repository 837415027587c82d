"""Inputs of deformable attention, and what the reference makes of them."""

import torch

from clnet.ops.reference import reference_attention

SHAPES = [3, 4, 2, 2]


def random_inputs(
    seed=0, batch=2, queries=3, heads=2, channels=4, points=2, shapes=SHAPES, shared=True, dtype=torch.float64
):
    """Places from far outside to far outside of each map."""
    generator = torch.Generator().manual_seed(seed)
    levels = len(shapes) // 2
    cells = sum(rows * columns for rows, columns in zip(shapes[::2], shapes[1::2], strict=True))
    sizes = torch.tensor(shapes, dtype=dtype).view(levels, 2).flip(-1)

    def random(*shape):
        return torch.rand(*shape, generator=generator, dtype=dtype)

    value = random(batch, cells, heads, channels) - 0.5
    centres = (random(1 if shared else batch, queries, levels, 2) * 1.6 - 0.3) * sizes
    offsets = random(batch, queries, heads, levels, points, 2) * 4 - 2
    weights = random(batch, queries, heads, levels, points)
    return value, shapes, centres, offsets, weights


def by_reference(value, shapes, centres, offsets, weights):
    pairs = list(zip(shapes[::2], shapes[1::2], strict=True))
    return reference_attention(value, pairs, centres, offsets, weights)


def gradients(function, inputs):
    value, shapes, *others = inputs
    leaves = [tensor.detach().clone().requires_grad_() for tensor in (value, *others)]
    out = function(leaves[0], shapes, *leaves[1:])
    weighing = torch.rand(out.shape, generator=torch.Generator().manual_seed(1)).bfloat16().to(out)
    return torch.autograd.grad((out * weighing).sum(), leaves)
