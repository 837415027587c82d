"""Findings as a picture: boxes with scores, linked lesions, and the truth where it is known."""

from collections.abc import Mapping, Sequence
from typing import Any

from numpy.typing import NDArray
from PIL import Image

from clnet.data.pair import VIEW_NAMES
from clnet.data.pictures import Mark, pair_picture
from clnet.findings.lesions import Lesion

Boxes = Sequence[Sequence[float]]


def findings_picture(
    images: Mapping[str, NDArray[Any] | None],
    lesions: Sequence[Lesion],
    title: str,
    truth: Mapping[str, Boxes] | None = None,
    side: str = "",
    height: int = 520,
    stored_rows: Mapping[str, int] | None = None,
    letter: int | None = None,
    warning: str = "",
) -> Image.Image:
    """Draw what was found in a breast.

    Args:
        images: [H, W] grey values of each view, of the stored size or reduced.
        lesions: what was found, in pixels of the stored images. They are numbered in this order, as in the
            reports; a lesion has the same name in both views, and the score of its detection beside it.
        title: a line above the views; it should not identify the patient.
        truth: boxes that a reader marked in each view, drawn with broken lines.
        side: "L" or "R", which makes the names of lesions those of the reports, such as "L1".
        height: of the views in pixels of the picture.
        stored_rows: the rows of each stored image, where `images` are reduced.
        letter: size of the letters in pixels, which lines follow; by default it follows `height`.
        warning: a line below the title; "" for none.
    """

    def in_picture(name: str, box: Sequence[float]) -> tuple[float, ...]:
        image = images[name]
        factor = image.shape[0] / stored_rows[name] if stored_rows and image is not None else 1.0
        return tuple(factor * float(edge) for edge in box)

    marks: dict[str, list[Mark]] = {name: [] for name in VIEW_NAMES}
    for number, lesion in enumerate(lesions, start=1):
        for name, seen in lesion.views.items():
            marks[name].append(
                Mark(in_picture(name, seen.box), f"{side}{number}: {seen.score:.2f}", number - 1)
            )
    for name, boxes in (truth or {}).items():
        marks[name] += [Mark(in_picture(name, box), "", lesion=None) for box in boxes]
    return pair_picture(images, marks, title, height, letter, warning)
