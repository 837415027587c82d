"""The feed-forward network of a transformer layer; in training on CPU, tokens go through it piece by piece.

The hidden numbers of all tokens are the largest tensors of an encoder. A piece of them stays in the cache
from one step to the next, in both passes.
"""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from clnet.networks.layers import Residual
from clnet.ops.dropout import random_seed, relu_dropout, takes_fused_dropout

PIECE = 1024
"""Tokens at a time."""


class FeedForward(nn.Module):
    """Two linear layers on every token, with the residual around them (the paper's FFN in a layer)."""

    def __init__(self, width: int, hidden: int, dropout: float) -> None:
        super().__init__()
        self.expand = nn.Linear(width, hidden)
        self.dropout = nn.Dropout(dropout)
        self.contract = nn.Linear(hidden, width)
        self.residual = Residual(width, dropout)
        nn.init.xavier_uniform_(self.expand.weight)
        nn.init.xavier_uniform_(self.contract.weight)

    def forward(self, x: Tensor) -> Tensor:
        """[..., D] to [..., D]."""
        if takes_fused_dropout(self.dropout, x):
            parameters = (self.expand.weight, self.expand.bias, self.contract.weight, self.contract.bias)
            update, _ = fused_feed_forward(x.flatten(0, -2), *parameters, self.dropout.p, random_seed())
            return self.residual(x, update.view(x.shape))
        # ReLU not in place: its input is a view of what the linear layer made, and autograd would copy that.
        return self.residual(x, self.contract(self.dropout(F.relu(self.expand(x)))))


@torch.library.custom_op("clnet::feed_forward", mutates_args=(), device_types="cpu")
def fused_feed_forward(
    x: Tensor,
    expand: Tensor,
    expand_bias: Tensor,
    contract: Tensor,
    contract_bias: Tensor,
    p: float,
    seed: Tensor,
) -> tuple[Tensor, Tensor]:
    """``contract(dropout(relu(expand(x))))``.

    Args:
        x: float32 [T, D].
        expand: [H, D].
        expand_bias: [H].
        contract: [D, H].
        contract_bias: [D].
        p: in (0, 1), of the dropout.
        seed: int64 [], not negative; decides what is dropped.

    Returns:
        [T, D], and the hidden numbers [T, H] after dropout.
    """
    hidden, out = x.new_empty(len(x), len(expand)), x.new_empty(len(x), len(contract))
    for number, tokens in enumerate(_pieces(x)):
        relu_dropout(torch.addmm(expand_bias, x[tokens], expand.t()), hidden[tokens], p, int(seed) + number)
        torch.addmm(contract_bias, hidden[tokens], contract.t(), out=out[tokens])
    return out, hidden


@torch.library.custom_op("clnet::feed_forward_backward", mutates_args=(), device_types="cpu")
def fused_feed_forward_backward(
    grad: Tensor, x: Tensor, expand: Tensor, contract: Tensor, hidden: Tensor, p: float
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """The gradients of x, expand and its bias, contract and its bias, given the output's [T, D]."""
    grad_x = torch.empty_like(x)
    grad_expand, grad_contract = torch.zeros_like(expand), torch.zeros_like(contract)
    grad_expand_bias = expand.new_zeros(len(expand))
    scaled = contract / (1 - p)
    for tokens in _pieces(x):
        # What neither was dropped nor below zero is above zero after both, and nothing else is.
        grad_hidden = torch.ops.aten.threshold_backward(grad[tokens] @ scaled, hidden[tokens], 0)
        torch.mm(grad_hidden, expand, out=grad_x[tokens])
        grad_expand.addmm_(grad_hidden.t(), x[tokens])
        grad_expand_bias += grad_hidden.sum(0)
        grad_contract.addmm_(grad[tokens].t(), hidden[tokens])
    return grad_x, grad_expand, grad_expand_bias, grad_contract, grad.sum(0)


def _pieces(x: Tensor) -> Iterator[slice]:
    return (slice(first, first + PIECE) for first in range(0, len(x), PIECE))


@fused_feed_forward.register_fake
def _(x: Tensor, expand: Tensor, bias: Tensor, contract: Tensor, *others: Any) -> tuple[Tensor, Tensor]:
    return x.new_empty(x.shape[0], contract.shape[0]), x.new_empty(x.shape[0], expand.shape[0])


@fused_feed_forward_backward.register_fake
def _(
    grad: Tensor, x: Tensor, expand: Tensor, contract: Tensor, hidden: Tensor, p: float
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    biases = (expand.new_empty(expand.shape[0]), contract.new_empty(contract.shape[0]))
    weights = (torch.empty_like(expand), torch.empty_like(contract))
    return torch.empty_like(x), weights[0], biases[0], weights[1], biases[1]


def _remember(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    x, expand, _, contract, _, ctx.p, _ = inputs
    ctx.mark_non_differentiable(output[1])
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(x, expand, contract, output[1])


def _differentiate(ctx: Any, grad: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
    return *fused_feed_forward_backward(grad, *ctx.saved_tensors, ctx.p), None, None


fused_feed_forward.register_autograd(_differentiate, setup_context=_remember)
