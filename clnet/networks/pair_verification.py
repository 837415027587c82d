"""Pair Verification (appendix): the alternative that asks of every two detections whether they match."""

import torch
from torch import Tensor, nn

from clnet.networks.dustbin import absent_candidates, append_dustbin, exclude
from clnet.networks.layers import MLP


class PairVerification(nn.Module):
    """A matching matrix ``S_ij = ⟨Ê^c_i, Ê^m_j⟩`` with ``Ê = Concat(MLP(E), e^d)``."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.project = MLP(width, width)
        self.dustbin = nn.Parameter(torch.empty(width).normal_())

    def forward(self, embeddings: Tensor, present: Tensor) -> dict[str, Tensor]:
        """Compare detections.

        Args:
            embeddings: E^c, E^m [B, 2, N, D].
            present: bool [B, 2]; detections of a missing view match nothing.

        Returns:
            ``match_logits`` [B, N + 1, N + 1], rows CC and columns MLO, the dustbin at index N.
        """
        cc, mlo = append_dustbin(self.project(embeddings), self.dustbin).unbind(1)
        absent_cc, absent_mlo = absent_candidates(present, embeddings.shape[2]).unbind(1)
        absent = absent_cc[:, :, None] | absent_mlo[:, None, :]
        return {"match_logits": exclude(cc @ mlo.transpose(1, 2), absent)}
