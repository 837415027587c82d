"""L_Link: what teaches the lesion linker (Section 3.4, Training Loss)."""

from dataclasses import dataclass
from typing import Literal, get_args

import torch
from monai.losses.focal_loss import sigmoid_focal_loss
from torch import Tensor
from torch.nn import functional as F

from clnet.distributed import mean_count
from clnet.errors import ClnetError
from clnet.losses.assignment import link_cost, similarity_to, solve

CostMethod = Literal["mul", "add"]


class LossSettingError(ClnetError):
    """A loss cannot be computed with these settings."""


@dataclass(frozen=True)
class LinkLoss:
    """``Σ_i 1{a_i ≠ 0} λ_sim L_sim(i, π(i)) + λ_cls L_cls(a_i, s_π(i))``, divided by the number of lesions.

    L_sim is the cross-entropy, over all candidates of a view, of their similarity to the matched link query,
    summed over the two views; L_cls is the focal loss of all pair scores.

    Attributes:
        similarity_weight: λ_sim.
        class_weight: λ_cls.
        temperature: similarities are divided by it in the cross-entropy; 1 is the paper to the letter, which
            leaves the right one of 126 candidates at most 5.6% of the probability.
        focal_alpha: of the focal loss of pair scores.
        focal_gamma: of the same.
        cost_method: "mul" or "add", how embeddings and score join in matching (Table 5).
        cost_alpha: the weight of embeddings there.
        cost_beta: the weight of CC against MLO there.
        auxiliary: whether every linker layer has the loss, or the last alone.
    """

    similarity_weight: float
    class_weight: float
    temperature: float
    focal_alpha: float
    focal_gamma: float
    cost_method: CostMethod
    cost_alpha: float
    cost_beta: float
    auxiliary: bool

    def __post_init__(self) -> None:
        if self.temperature <= 0:
            raise LossSettingError(f"temperature: {self.temperature} is not above 0")
        if self.cost_method not in get_args(CostMethod):
            raise LossSettingError(
                f"cost_method: {self.cost_method!r} is not one of {', '.join(get_args(CostMethod))}"
            )

    def __call__(
        self, similarity: Tensor, pair_logits: Tensor, candidates: Tensor, breast: Tensor
    ) -> dict[str, Tensor]:
        """Compare links with lesions.

        Args:
            similarity: [layers, B, 2, M, N + 1] in [-1, 1].
            pair_logits: [layers, B, M].
            candidates: int [R, 2], for each lesion the right candidate in CC and in MLO.
            breast: int [R], nondecreasing, whose lesion it is.

        Returns:
            ``link_similarity`` and ``link_class``: scalars, weighted and summed over layers.
        """
        if not self.auxiliary:
            similarity, pair_logits = similarity[-1:], pair_logits[-1:]
        with torch.no_grad():
            cost = link_cost(
                similarity,
                pair_logits,
                candidates,
                breast,
                self.cost_alpha,
                self.cost_beta,
                self.cost_method,
            )
            queries = solve(cost, breast)  # π, [layers, R]

        log_probability = (similarity / self.temperature).log_softmax(-1)
        of_all_queries = similarity_to(log_probability, candidates, breast)  # [layers, R, 2, M]
        matched = of_all_queries.gather(-1, queries[:, :, None, None].expand(-1, -1, 2, 1))

        is_pair = torch.zeros_like(pair_logits)
        is_pair[torch.arange(len(queries), device=queries.device)[:, None], breast, queries] = 1.0
        focal = sigmoid_focal_loss(pair_logits, is_pair, self.focal_gamma, self.focal_alpha)

        count = mean_count(len(breast), pair_logits)
        return {
            "link_similarity": -self.similarity_weight * matched.sum() / count,
            "link_class": self.class_weight * focal.sum() / count,
        }


@dataclass(frozen=True)
class PartnerLoss:
    """L_partner: what teaches the geometric linker, divided by the number of lesions.

    The cross-entropy of the right partner of each lesion: one in both views counts half in each; one that a
    view does not show counts by the dustbin of the view that shows it. If the other view is missing, the
    dustbin is all there is, which costs nothing. And the cross-entropy of all certainties: the link of a
    detection is right if the detection is a lesion and the link is to that lesion's partner.

    Attributes:
        weight: of the partners.
        certainty_weight: of the certainties.
    """

    weight: float
    certainty_weight: float

    def __call__(
        self, partner: Tensor, choice: Tensor, certainty: Tensor, candidates: Tensor, breast: Tensor
    ) -> dict[str, Tensor]:
        """Compare links with lesions.

        Args:
            partner: [B, 2, N, N + 1], log probabilities; see `clnet.networks.GeometricLinker`.
            choice: int [B, 2, N], the partner that each detection is linked to; N for the dustbin.
            certainty: [B, 2, N], logits; the lowest finite number where the view is missing.
            candidates: int [R, 2], for each lesion its detection in CC and in MLO; N where there is none.
            breast: int [R], whose lesion it is.

        Returns:
            ``link_partner`` and ``link_certainty``: scalars, weighted.
        """
        n = partner.shape[2]
        shown = candidates < n  # [R, 2]
        own = candidates.clamp(max=n - 1)
        gain = partner.new_zeros(len(breast))
        is_right = torch.zeros_like(certainty)
        for view in (0, 1):
            at = breast, view, own[:, view]
            right = candidates[:, 1 - view]
            gain = gain + partner[at].gather(1, right[:, None])[:, 0] * shown[:, view]
            found = (choice[at] == right) & shown[:, view]
            # A sum, since lesions that are not shown, which are none, may have the place of one that is.
            is_right[:, view].index_put_((breast, own[:, view]), found.to(certainty), accumulate=True)
        known = certainty > torch.finfo(certainty.dtype).min
        wrong = F.binary_cross_entropy_with_logits(certainty.clamp(min=-1e3), is_right, reduction="none")
        count = mean_count(len(breast), partner)
        return {
            "link_partner": -self.weight * (gain / shown.sum(1).clamp(min=1)).sum() / count,
            "link_certainty": self.certainty_weight * (wrong * known).sum() / count,
        }


@dataclass(frozen=True)
class PairVerificationLoss:
    """L_V (appendix): focal loss between the matching matrix S and the true one M, divided by the lesions."""

    alpha: float
    gamma: float

    def __call__(self, match_logits: Tensor, candidates: Tensor, breast: Tensor) -> dict[str, Tensor]:
        """Compare matches with lesions.

        Args:
            match_logits: S [B, N + 1, N + 1].
            candidates: int [R, 2], for each lesion its row (CC) and column (MLO).
            breast: int [R], whose lesion it is.

        Returns:
            ``verification``: a scalar.
        """
        truth = torch.zeros_like(match_logits)
        truth[breast, candidates[:, 0], candidates[:, 1]] = 1.0
        focal = sigmoid_focal_loss(match_logits, truth, self.gamma, self.alpha)
        return {"verification": focal.sum() / mean_count(len(breast), match_logits)}
