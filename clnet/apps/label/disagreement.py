"""Active learning: pairs whose views disagree most come first, as the model has most to learn from them."""

from collections.abc import Iterable, Mapping
from typing import Any

from monailabel.interfaces.datastore import Datastore
from monailabel.interfaces.tasks.scoring import ScoringMethod
from monailabel.interfaces.tasks.strategy import Strategy

from clnet.apps.label.catalog import PairCatalog
from clnet.apps.label.current_model import CurrentModel
from clnet.apps.label.pairs import ImagePair
from clnet.errors import ClnetError
from clnet.findings.lesions import Lesion, merge_into_lesions
from clnet.findings.types import Detection

DISAGREEMENT = "disagreement"
SAVE_EVERY = 10  # pairs


def disagreement(lesions: Iterable[Lesion]) -> float:
    """How much the views of a pair disagree, from 0 to 1: the largest difference between the two scores of a
    lesion, where the score of a view that does not show the lesion is 0.
    """

    def score(detection: Detection | None) -> float:
        return detection.score if detection else 0.0

    return max((abs(score(lesion.cc) - score(lesion.mlo)) for lesion in lesions), default=0.0)


class ScoreDisagreement(ScoringMethod):
    """Runs the model on each unlabelled pair and stores the disagreement of its views with its images."""

    def __init__(self, catalog: PairCatalog, model: CurrentModel) -> None:
        super().__init__("Disagreement between the two views of each pair")
        self.catalog = catalog
        self.model = model

    def pending(self) -> list[ImagePair]:
        """The unlabelled pairs that the current model has not scored."""
        return [
            pair
            for pair in self.catalog.unlabelled()
            if _info(self.catalog, pair).get(DISAGREEMENT, {}).get("model") != self.model.key
        ]

    def __call__(self, request: Mapping[str, Any], datastore: Datastore) -> dict[str, Any]:
        """Score the pending pairs."""
        pending = self.pending()
        for start in range(0, len(pending), SAVE_EVERY):
            infos: dict[str, dict[str, Any]] = {}
            for pair in pending[start : start + SAVE_EVERY]:
                score = {DISAGREEMENT: {"score": self._score(pair), "model": self.model.key}}
                infos |= dict.fromkeys(pair.images.values(), score)
            self.catalog.datastore.update_images(infos)
        return {"scored": len(pending)}

    def _score(self, pair: ImagePair) -> float:
        if pair.missing_view:
            return 0.0
        try:
            _, _, findings = self.model.find(self.catalog.fetched(pair))
        except ClnetError:  # an image that cannot be read cannot be annotated either
            return -1.0
        return disagreement(merge_into_lesions(findings, min_score=0.0)) if len(findings.views) == 2 else 0.0


class SuggestDisagreement(Strategy):
    """Suggests the unlabelled pair whose views disagree most, and each pair once before any comes again."""

    def __init__(self, catalog: PairCatalog) -> None:
        super().__init__("The pair whose views disagree most")
        self.catalog = catalog

    def __call__(self, request: Mapping[str, Any], datastore: Datastore) -> dict[str, Any] | None:
        """An image of the pair, the pair's id and its disagreement; None if every pair is labelled."""
        offers = []
        for pair in self.catalog.unlabelled():
            info = _info(self.catalog, pair)
            score = info.get(DISAGREEMENT, {}).get("score", 0.0)
            if score >= 0:
                offered_at = info.get("strategy", {}).get(request["strategy"], {}).get("ts", 0)
                offers.append((offered_at, -score, pair.pair_id, next(iter(pair.images.values()))))
        if not offers:
            return None
        _, negative_score, pair_id, image = min(offers)
        return {"id": image, "pair_id": pair_id, "weight": -negative_score}


def _info(catalog: PairCatalog, pair: ImagePair) -> dict[str, Any]:
    return catalog.datastore.get_image_info(next(iter(pair.images.values())))
