"""The label of a pair: the boxes of each view and the lesion of each box, as in a datalist.

Each image stores its own part as its label in the datastore. The same lesion id in both views is a link.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from clnet.apps.label.datastore import FINAL, LONGEST_ID, MOST_BOXES, StudyFolder, are_lesion_ids
from clnet.apps.label.pairs import ImagePair
from clnet.apps.label.request_errors import RequestError
from clnet.data.pair import VIEW_NAMES, Pair

FORM = '{"cc": {"boxes": [[x_min, y_min, x_max, y_max], …], "lesion_ids": ["1", …]} or null, "mlo": …}'


def label_of(datastore: StudyFolder, pair: ImagePair) -> dict[str, Any] | None:
    """The label of a pair, in the form of `FORM`; None if neither view has one."""
    parts = dict(zip(pair.images, datastore.view_labels(pair.images.values()), strict=True))
    if all(part is None for part in parts.values()):
        return None
    return {view: parts.get(view) for view in VIEW_NAMES}


def labelled_pair(pair: ImagePair, label: Mapping[str, Any]) -> Pair:
    """The labelled views of a pair with their boxes; raises `PairError` if the label is invalid."""
    views = {
        name: replace(
            pair.breast.pair.views[name],
            boxes=part["boxes"],
            lesion_ids=tuple(part["lesion_ids"]),
            size=pair.sizes[name],
        )
        for name, part in label.items()
        if part is not None
    }
    return Pair(pair.pair_id, pair.patient, pair.breast.pair.laterality, views.get("cc"), views.get("mlo"))


def save_pair_label(datastore: StudyFolder, pair: ImagePair, label: Any, info: dict[str, Any]) -> None:
    """Check a label and store it, a part with each image.

    Args:
        datastore: of the images.
        pair: that is labelled.
        label: in the form of `FORM`.
        info: stored with it.
    """
    _check_form(label, pair)
    views = labelled_pair(pair, label).views
    parts = {
        image: {"boxes": views[name].boxes.tolist(), "lesion_ids": list(views[name].lesion_ids)}
        if name in views
        else None
        for name, image in pair.images.items()
    }
    datastore.save_labels(parts, FINAL, info)


def remove_pair_label(datastore: StudyFolder, pair: ImagePair) -> None:
    """Remove the label of a pair."""
    datastore.save_labels(dict.fromkeys(pair.images.values()), FINAL, {})


def _check_form(label: Any, pair: ImagePair) -> None:
    if not isinstance(label, dict) or set(label) - set(VIEW_NAMES):
        raise RequestError(f"invalid label; expected {FORM}")
    parts = {name: part for name, part in label.items() if part is not None}
    if not parts:
        raise RequestError("the label has no view; DELETE removes a label, empty lists mean no lesion")
    for name, part in parts.items():
        if name not in pair.images:
            raise RequestError(f"{name} has boxes, but the pair has no {name} image")
        if not isinstance(part, dict) or set(part) != {"boxes", "lesion_ids"}:
            raise RequestError(f"{name} is invalid; expected {FORM}")
        if not are_lesion_ids(part["lesion_ids"]):
            raise RequestError(
                f"{name}: lesion_ids must be a list of strings, one for each box: at most {MOST_BOXES}, "
                f"each of at most {LONGEST_ID} characters"
            )
        if not isinstance(part["boxes"], list):
            raise RequestError(f"{name}: boxes must be a list of [x_min, y_min, x_max, y_max]")
