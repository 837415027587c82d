"""From an object query's embedding to a score and a box."""

import math

import torch
from torch import Tensor, nn

from clnet.networks.layers import MLP
from clnet.ops.precision import full_precision, without_autocast

PRIOR_LOGIT = -math.log(99)
"""A score begins at 1%, so that the many queries without a lesion do not drown the few with one."""


class DetectionHead(nn.Module):
    """Class and box of each embedding; the box is said relative to the query's reference."""

    def __init__(self, width: int, first: bool = True) -> None:
        """Make the head.

        Args:
            width: D of the embeddings.
            first: whether references are points; sizes then begin at sigmoid(−2) ≈ 12% of the image. Later
                heads, in box refinement, begin by keeping the size they are given.
        """
        super().__init__()
        self.classify = nn.Linear(width, 1)
        self.regress = MLP(width, 4)
        nn.init.constant_(self.classify.bias, PRIOR_LOGIT)
        nn.init.zeros_(self.regress.last.weight)
        nn.init.zeros_(self.regress.last.bias)
        if first:
            nn.init.constant_(self.regress.last.bias[2:], -2.0)

    def forward(self, embedding: Tensor, reference: Tensor) -> tuple[Tensor, Tensor]:
        """Predict.

        Args:
            embedding: [..., N, D].
            reference: [..., N, 2] (x, y), or [..., N, 4] (cx, cy, w, h), in [0, 1].

        Returns:
            Logits [..., N], and boxes [..., N, 4] as cxcywh in [0, 1], in units of the canvas.
        """
        logits = self.classify(embedding).squeeze(-1)
        # In float32 under autocast too: bfloat16 has 8 bits, which is 2 pixels of 1024.
        with without_autocast(embedding.device):
            known = inverse_sigmoid(full_precision(reference))
            offset = self.regress(full_precision(embedding))
            boxes = torch.cat([offset[..., : known.shape[-1]] + known, offset[..., known.shape[-1] :]], -1)
            return logits, boxes.sigmoid()


def inverse_sigmoid(x: Tensor, eps: float = 1e-5) -> Tensor:
    """The logit of x in [0, 1], kept finite at its ends."""
    x = x.clamp(0, 1)
    return torch.log(x.clamp(min=eps) / (1 - x).clamp(min=eps))
