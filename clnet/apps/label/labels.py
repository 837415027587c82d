"""The label of a pair: the boxes of each view and the lesion of each, as in a datalist.

Each image keeps its own part as its label in the datastore. The same lesion id in both views is a link.
"""

from collections.abc import Mapping
from typing import Any

from clnet.apps.label.datastore import StudyFolder, are_lesion_ids
from clnet.apps.label.pairs import ImagePair
from clnet.apps.label.refusals import RequestError
from clnet.data.pair import VIEW_NAMES, Pair, View


def label_of(datastore: StudyFolder, pair: ImagePair) -> dict[str, Any] | None:
    """The label of a pair, None where no view has one."""
    parts = {view: datastore.view_label(image) for view, image in pair.images.items()}
    if all(part is None for part in parts.values()):
        return None
    return {view: parts.get(view) for view in VIEW_NAMES}


def labelled_pair(pair: ImagePair, label: Mapping[str, Any]) -> Pair:
    """The views of a pair that have a label, with their marks; raises `PairError` if they make no sense."""

    def view(name: str) -> View | None:
        part = label.get(name)
        if part is None:
            return None
        image = pair.breast.pair.views[name].image
        return View(image, part["boxes"], tuple(part["lesion_ids"]), pair.sizes[name])

    return Pair(pair.pair_id, pair.patient, pair.breast.pair.laterality, view("cc"), view("mlo"))


def save_pair_label(datastore: StudyFolder, pair: ImagePair, label: Any, info: dict[str, Any]) -> None:
    """Check a label and keep it, a part with each image.

    Args:
        datastore: of the images.
        pair: that the label is about.
        label: ``{"cc": {"boxes": [[x_min, y_min, x_max, y_max], …], "lesion_ids": […]}, "mlo": … or None}``.
        info: what to keep with it.
    """
    _check_form(label, pair)
    checked = labelled_pair(pair, label)
    for name, image in pair.images.items():
        view = checked.views.get(name)
        if view is not None:
            datastore.save_view_label(image, view.boxes.tolist(), view.lesion_ids, dict(info))
        elif datastore.view_label(image) is not None:
            datastore.remove_label(image, "final")


def remove_pair_label(datastore: StudyFolder, pair: ImagePair) -> None:
    """Forget the label of a pair."""
    for image in pair.images.values():
        if datastore.view_label(image) is not None:
            datastore.remove_label(image, "final")


def _check_form(label: Any, pair: ImagePair) -> None:
    form = '{"cc": {"boxes": [[x_min, y_min, x_max, y_max], …], "lesion_ids": ["1", …]} or null, "mlo": …}'
    if not isinstance(label, dict) or set(label) - set(VIEW_NAMES):
        raise RequestError(f"a label is {form}")
    if all(label.get(name) is None for name in VIEW_NAMES):
        raise RequestError(
            "the label has no view; DELETE removes a label, empty lists say that there is no lesion"
        )
    for name, part in label.items():
        if part is None:
            continue
        if name not in pair.images:
            raise RequestError(f"{name} has boxes, but the pair has no {name} image")
        if not isinstance(part, dict) or set(part) != {"boxes", "lesion_ids"}:
            raise RequestError(f"{name} has another form; a label is {form}")
        if not are_lesion_ids(part["lesion_ids"]):
            raise RequestError(f"{name}: lesion_ids is a list of texts, one for each box")
        if not isinstance(part["boxes"], list):
            raise RequestError(f"{name}: boxes is a list of [x_min, y_min, x_max, y_max]")
