"""Active learning: the pairs whose views disagree most come first, for there the model has most to learn."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from monailabel.interfaces.datastore import Datastore
from monailabel.interfaces.tasks.scoring import ScoringMethod
from monailabel.interfaces.tasks.strategy import Strategy

from clnet.apps.label.answer import lesions_of
from clnet.apps.label.pairs import ImagePair, missing_view
from clnet.data.pair import VIEW_NAMES
from clnet.errors import ClnetError

if TYPE_CHECKING:
    from clnet.apps.label.app import ClnetLabelApp

DISAGREEMENT = "disagreement"


def disagreement(lesions: Sequence[Mapping[str, Any]]) -> float:
    """How much the views of a pair disagree, from 0 to 1.

    That of a lesion is the gap between its scores in the two views, 0 where a view does not show it; that of
    a pair is its greatest.

    Args:
        lesions: all of them, as `lesions_of` gives them.
    """
    gaps = [0.0]
    for lesion in lesions:
        scores = [lesion[view]["score"] if lesion[view] else 0.0 for view in VIEW_NAMES]
        gaps.append(abs(scores[0] - scores[1]))
    return max(gaps)


class ScoreDisagreement(ScoringMethod):
    """Runs the model on each pair without a label, and keeps with its images how much the views disagree."""

    def __init__(self, app: "ClnetLabelApp") -> None:
        super().__init__("How much the two views of each pair disagree")
        self.app = app

    def waiting(self) -> list[ImagePair]:
        """The pairs that the current model has not been asked about."""
        model = self.app.model.key
        return [
            pair
            for pair in self.app.unlabelled()
            if _info(self.app, pair).get(DISAGREEMENT, {}).get("model") != model
        ]

    def __call__(self, request: Mapping[str, Any], datastore: Datastore) -> dict[str, Any]:
        """Score what has no score yet."""
        waiting, scores = self.waiting(), {}
        for number, pair in enumerate(waiting, start=1):
            scores[pair.pair_id] = self._score(pair)
            if number % 10 == 0 or number == len(waiting):
                done = {
                    image: {DISAGREEMENT: {"score": scores[item.pair_id], "model": self.app.model.key}}
                    for item in waiting[:number]
                    for image in item.images.values()
                }
                self.app.datastore().update_images(done)
        return {"scored": len(scores)}

    def _score(self, pair: ImagePair) -> float:
        if missing_view(pair):  # nothing to disagree with
            return 0.0
        try:
            _, _, findings = self.app.model.find(self.app.fetched(pair))
        except ClnetError:  # what cannot be read cannot be annotated either
            return -1.0
        return disagreement(lesions_of(findings, min_score=0.0)) if len(findings.views) == 2 else 0.0


class OfferDisagreement(Strategy):
    """Offers the pair without a label whose views disagree most; each pair once before any comes again."""

    def __init__(self, app: "ClnetLabelApp") -> None:
        super().__init__("The pair whose views disagree most")
        self.app = app

    def __call__(self, request: Mapping[str, Any], datastore: Datastore) -> dict[str, Any] | None:
        """An image of the pair, its name, and how much its views disagree; None if all is labelled."""
        offers = []
        for pair in self.app.unlabelled():
            info = _info(self.app, pair)
            score = info.get(DISAGREEMENT, {}).get("score", 0.0)
            if score >= 0:
                offered = info.get("strategy", {}).get(request["strategy"], {}).get("ts", 0)
                offers.append((offered, -score, pair.pair_id, pair))
        if not offers:
            return None
        _, score, pair_id, pair = min(offers, key=lambda offer: offer[:3])
        return {"id": next(iter(pair.images.values())), "pair_id": pair_id, "weight": -score}


def _info(app: "ClnetLabelApp", pair: ImagePair) -> dict[str, Any]:
    return app.datastore().get_image_info(next(iter(pair.images.values())))
