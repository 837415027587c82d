"""Pair Verification (appendix): the alternative that asks of every two detections whether they match."""

import torch
from torch import Tensor, nn

from clnet.losses.link import PairVerificationLoss
from clnet.networks.dustbin import absent_candidates, append_dustbin, exclude
from clnet.networks.layers import MLP
from clnet.networks.matcher import DetectorOutputs, LesionPairs, Matcher


class PairVerification(Matcher):
    """A matching matrix ``S_ij = ⟨Ê^c_i, Ê^m_j⟩`` with ``Ê = Concat(MLP(E), e^d)``.

    Args:
        width: D of the detection embeddings.
        loss: L_V.
    """

    def __init__(self, width: int, loss: PairVerificationLoss) -> None:
        super().__init__()
        self.width = width
        self.verification_loss = loss
        self.project = MLP(width, width)
        self.dustbin = nn.Parameter(torch.empty(width).normal_())

    def forward(
        self, detections: DetectorOutputs, present: Tensor, return_attention: bool = False
    ) -> dict[str, Tensor]:
        """Compare detections; see `Matcher.forward`. It has no attention to return.

        Returns:
            ``match_logits`` [B, N + 1, N + 1], rows CC and columns MLO, the dustbin at index N; detections of
            a missing view match nothing.
        """
        cc, mlo = append_dustbin(self.project(detections.embeddings), self.dustbin).unbind(1)
        absent_cc, absent_mlo = absent_candidates(present, detections.embeddings.shape[2]).unbind(1)
        absent = absent_cc[:, :, None] | absent_mlo[:, None, :]
        return {"match_logits": exclude(cc @ mlo.transpose(1, 2), absent)}

    def loss(self, outputs: dict[str, Tensor], candidates: Tensor, breast: Tensor) -> dict[str, Tensor]:
        """L_V; see `Matcher.loss`."""
        return self.verification_loss(outputs["match_logits"], candidates, breast)

    def pairs(self, detections: DetectorOutputs, outputs: dict[str, Tensor]) -> LesionPairs:
        """Each CC detection with its best match in MLO, then each MLO detection as seen in MLO alone.

        The paper stops at the matching matrix; a detection's match is taken to be the likeliest of its row.
        """
        scores = outputs["match_logits"].sigmoid()  # [B, N + 1, N + 1]
        best, mlo = scores[:, :-1].max(-1)
        every = torch.arange(mlo.shape[1], device=scores.device).expand_as(mlo)
        dustbin = torch.full_like(mlo, mlo.shape[1])
        return LesionPairs(
            torch.stack([torch.cat([every, dustbin], dim=1), torch.cat([mlo, every], dim=1)], dim=-1),
            torch.cat([best, scores[:, -1, :-1]], dim=1),
        )
