"""The Geometric Linker, beyond the paper: every detection finds its partner in the other view, or none.

Of the paper's link queries none may point at a detection, and then it gets no link at any threshold. Here all
detections of CC are compared with all of MLO, as keypoints of two photographs are (SuperGlue), by what they
look like and by where they are.
"""

import torch
from torch import Tensor, nn

from clnet.losses.link import PartnerLoss
from clnet.networks.dustbin import absent_candidates, exclude
from clnet.networks.geometry import ViewGeometry
from clnet.networks.layers import MLP
from clnet.networks.matcher import DetectorOutputs, LesionPairs, Matcher
from clnet.networks.views import to_images, to_pairs


class GeometricLinker(Matcher):
    """``S_ij = ⟨W e^c_i, W e^m_j⟩ / √D − g_ij``, and a logit ``z_i`` of each detection for the dustbin.

    A softmax over each row (with the dustbin z^c_i as a further column) and one over each column (with z^m_j)
    say how likely i's partner is j, and j's is i. A link is as sure as the geometric mean of the two.

    Args:
        width: D of the detection embeddings.
        loss: L_partner.
    """

    def __init__(self, width: int, loss: PartnerLoss) -> None:
        super().__init__()
        self.width = width
        self.partner_loss = loss
        self.project = nn.Linear(width, width)
        self.alone = MLP(width, 1)
        self.geometry = ViewGeometry(heads=1)

    def forward(
        self, detections: DetectorOutputs, present: Tensor, return_attention: bool = False
    ) -> dict[str, Tensor]:
        """Compare detections; see `Matcher.forward`.

        Returns:
            ``partner`` [B, 2, N, N + 1]: for each detection of CC, the log probability that each of MLO is
            its partner, the dustbin last; and the same for those of MLO. Detections of a missing view have
            no partner, not even the dustbin: the lowest finite number.
        """
        embeddings = detections.embeddings
        projected = self.project(embeddings)
        similarity = projected[:, 0] @ projected[:, 1].transpose(1, 2) / self.width**0.5  # [B, N, N]
        geometry = self.geometry(to_images(detections.boxes[-1].detach()), detections.content)
        similarity = similarity + to_pairs(geometry)[:, 0, 0]
        both = torch.stack([similarity, similarity.transpose(1, 2)], dim=1)
        logits = torch.cat([both, self.alone(embeddings)], dim=-1).float()  # [B, 2, N, N + 1]
        absent = absent_candidates(present.flip(1), embeddings.shape[2])[:, :, None]
        partner = exclude(logits, absent).log_softmax(-1)
        return {"partner": exclude(partner, ~present[..., None, None])}

    def loss(self, outputs: dict[str, Tensor], candidates: Tensor, breast: Tensor) -> dict[str, Tensor]:
        """L_partner; see `Matcher.loss`."""
        return self.partner_loss(outputs["partner"], candidates, breast)

    def pairs(self, detections: DetectorOutputs, outputs: dict[str, Tensor]) -> LesionPairs:
        """For each detection of either view its best partner, or the dustbin: P is 2N.

        Those of detections of a missing view have a score of 0.
        """
        partner = outputs["partner"]  # [B, 2, N, N + 1]
        n = partner.shape[2]
        mutual = (partner[:, 0, :, :n] + partner[:, 1, :, :n].transpose(1, 2)) / 2  # [B, N, N]
        both = torch.stack([mutual, mutual.transpose(1, 2)], dim=1)
        best, choice = torch.cat([both, partner[..., n:]], dim=-1).max(-1)  # [B, 2, N]
        own = torch.arange(n, device=choice.device).expand_as(choice[:, 0])
        links = torch.cat(
            [torch.stack([own, choice[:, 0]], dim=-1), torch.stack([choice[:, 1], own], dim=-1)], dim=1
        )
        return LesionPairs(links, best.flatten(1).exp())
