"""Findings as a picture: boxes with scores, the same lesion linked, and the truth where it is known."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from clnet.data.pair import VIEW_NAMES
from clnet.data.pictures import Mark, pair_picture
from clnet.findings.lesions import merge_into_lesions
from clnet.findings.types import PairFindings

Boxes = Sequence[Sequence[float]]


def findings_picture(
    images: Mapping[str, NDArray[np.float32] | None],
    pair: PairFindings,
    title: str,
    min_score: float,
    truth: Mapping[str, Boxes] | None = None,
    height: int = 520,
) -> Image.Image:
    """Draw what was found in a breast.

    Args:
        images: [H, W] grey values of each view as stored.
        pair: its findings. Each lesion has a number, in both views the same, with the score of the view.
        title: a line above the views; it should not tell who the patient is.
        min_score: see `merge_into_lesions`.
        truth: boxes that a reader marked in each view; drawn with broken lines.
        height: of the views in pixels of the picture.
    """
    marks: dict[str, list[Mark]] = {name: [] for name in VIEW_NAMES}
    for number, lesion in enumerate(merge_into_lesions(pair, min_score)):
        for name, view in pair.views.items():
            index = getattr(lesion, name)
            if index is not None:
                box = tuple(float(edge) for edge in view.boxes[index])
                marks[name].append(Mark(box, f"{number + 1}: {view.scores[index]:.2f}", number))
    for name, boxes in (truth or {}).items():
        marks[name] += [Mark(tuple(map(float, box)), "", lesion=None) for box in boxes]
    return pair_picture(images, marks, title, height)
