"""The Geometric Linker, beyond the paper: every detection finds its partner in the other view, or none.

Of the paper's link queries none may point at a detection, and then it gets no link at any threshold. Here all
detections of CC are compared with all of MLO, as keypoints of two photographs are (SuperGlue), by what they
look like and by where they are.
"""

import math

import torch
from torch import Tensor, nn

from clnet.losses.link import PartnerLoss
from clnet.networks.dustbin import absent_candidates, exclude
from clnet.networks.geometry import CommonFrame, ViewGeometry
from clnet.networks.layers import MLP
from clnet.networks.matcher import DetectorOutputs, LesionPairs, Matcher
from clnet.networks.settings import require
from clnet.networks.views import to_images, to_pairs


class GeometricLinker(Matcher):
    """``S_ij = ⟨W e^c_i, W e^m_j⟩ / √D − g_ij``, and a logit ``z_i`` of each detection for the dustbin.

    A softmax over each row (with the dustbin z^c_i as a further column) and one over each column (with z^m_j)
    say how likely i's partner is j, and j's is i; a link is as likely as the geometric mean p of the two.
    That holds for lesions. Whether detections i and j are lesions at all, their logits ℓ say, and a logistic
    regression on (ℓ_i, ℓ_j, log p), or on (ℓ_i, log p) for the dustbin, says how sure the whole link is.

    Args:
        width: D of the detection embeddings.
        frame: of `ViewGeometry`.
        link_threshold: how sure a link must be to count. Everyone else counts links from a score of 0.5, so
            scores are moved (their odds are scaled) until this one is 0.5.
        loss: L_partner.
    """

    def __init__(self, width: int, frame: CommonFrame, link_threshold: float, loss: PartnerLoss) -> None:
        super().__init__()
        require(0 < link_threshold < 1, f"link_threshold: {link_threshold} is not between 0 and 1")
        self.width = width
        self.threshold_logit = math.log(link_threshold / (1 - link_threshold))
        self.partner_loss = loss
        self.project = nn.Linear(width, width)
        self.alone = MLP(width, 1)
        self.geometry = ViewGeometry(1, frame)
        self.link_certainty = nn.Linear(3, 1)
        self.alone_certainty = nn.Linear(2, 1)
        for regression in (self.link_certainty, self.alone_certainty):
            nn.init.constant_(regression.weight, 0.5)
            nn.init.zeros_(regression.bias)

    def forward(
        self, detections: DetectorOutputs, present: Tensor, return_attention: bool = False
    ) -> dict[str, Tensor]:
        """Compare detections; see `Matcher.forward`. It has no attention to return.

        Returns:
            - ``partner`` [B, 2, N, N + 1]: for each detection of CC, the log probability that each of MLO is
              its partner, the dustbin last; and the same for those of MLO.
            - ``partner_choice`` int64 [B, 2, N]: the most likely one, by the mean of both directions.
            - ``partner_certainty`` [B, 2, N]: how sure that link is, before its sigmoid.

            For detections of a missing view the lowest finite number, and the dustbin.
        """
        embeddings = detections.embeddings
        n = embeddings.shape[2]
        projected = self.project(embeddings)
        similarity = projected[:, 0] @ projected[:, 1].transpose(1, 2) / self.width**0.5  # [B, N, N]
        geometry = self.geometry(to_images(detections.boxes[-1].detach()), detections.content)
        similarity = similarity + to_pairs(geometry)[:, 0, 0]
        both = torch.stack([similarity, similarity.transpose(1, 2)], dim=1)
        logits = torch.cat([both, self.alone(embeddings)], dim=-1).float()  # [B, 2, N, N + 1]
        absent = absent_candidates(present.flip(1), n)[:, :, None]
        partner = exclude(logits, absent).log_softmax(-1)

        # [B, 2, N, N + 1]: the mean of both directions; the dustbin has one only.
        mutual = (partner[..., :n] + partner[..., :n].flip(1).transpose(2, 3)) / 2
        likely, choice = torch.cat([mutual, partner[..., n:]], dim=-1).detach().max(-1)  # [B, 2, N]
        score = detections.logits[-1].detach().float()
        of_partner = score.flip(1).gather(2, choice.clamp(max=n - 1))
        certainty = torch.where(
            choice < n,
            self.link_certainty(torch.stack([score, of_partner, likely], dim=-1)).squeeze(-1),
            self.alone_certainty(torch.stack([score, likely], dim=-1)).squeeze(-1),
        )
        missing = ~present[..., None]
        return {
            "partner": exclude(partner, missing[..., None]),
            "partner_choice": choice.masked_fill(missing, n),
            "partner_certainty": exclude(certainty.float(), missing),
        }

    def loss(self, outputs: dict[str, Tensor], candidates: Tensor, breast: Tensor) -> dict[str, Tensor]:
        """L_partner; see `Matcher.loss`."""
        return self.partner_loss(
            outputs["partner"], outputs["partner_choice"], outputs["partner_certainty"], candidates, breast
        )

    def pairs(self, detections: DetectorOutputs, outputs: dict[str, Tensor]) -> LesionPairs:
        """For each detection of either view its most likely partner, or the dustbin: P is 2N."""
        choice = outputs["partner_choice"]
        own = torch.arange(choice.shape[2], device=choice.device).expand_as(choice[:, 0])
        links = torch.cat(
            [torch.stack([own, choice[:, 0]], dim=-1), torch.stack([choice[:, 1], own], dim=-1)], dim=1
        )
        certainty = outputs["partner_certainty"].flatten(1)
        return LesionPairs(links, (certainty - self.threshold_logit).sigmoid())
