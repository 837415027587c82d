"""What a data set says, in one form: views with their masses, and what could not be used and why.

Each data set is a module of this folder with a function::

    def read(workspace: Workspace, …) -> Source

All the rest (cut boxes at the image's edge, choose one image a view, pair, link, split, write, account) is
the same for every data set and stands in `convert.py`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from clnet.data.views import Laterality
from clnet.errors import ClnetError

Box = tuple[float, float, float, float]


class ConversionError(ClnetError):
    """A data set that cannot be converted; the message says what was looked for and where."""


@dataclass(frozen=True)
class Mass:
    """A mass marked in a view.

    Attributes:
        box: x_min, y_min, x_max, y_max in pixels of the stored image, half-open. It may pass the edge of the
            image: `convert` cuts it there and says so.
        lesion_id: as the data set says it; None: it says nothing.
        descriptors: shape, margins, pathology, subtlety, … that may help to link, and go to the attributes.
    """

    box: Box
    lesion_id: str | None = None
    descriptors: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class MarkedView:
    """One image of a breast and the masses marked in it; none marked is an answer too.

    Attributes:
        image: its file.
        size: rows and columns of the stored image.
        patient_id: what keeps a patient in one section of the datalist; a pseudonym, never a name.
        study_id: views of one study and breast may pair; unique in the data set, it names the pair.
        laterality: "L" or "R".
        view: "cc" or "mlo".
        masses: those marked in it.
        unplaced: a line for each mass that is in the image, though its place is not known. Such an image is
            not used, for it would teach that there is none.
        attributes: density, birads, pathology, … of the breast.
        section: the data set's own split, "training", "validation" or "test"; None: by our split.
        links_annotated: the same `lesion_id` in both views is the same lesion, and another id another one.
            Say so only if it can be relied upon.
    """

    image: Path
    size: tuple[int, int]
    patient_id: str
    study_id: str
    laterality: Laterality
    view: str
    masses: tuple[Mass, ...] = ()
    unplaced: tuple[str, ...] = ()
    attributes: Mapping[str, Any] = field(default_factory=dict)
    section: str | None = None
    links_annotated: bool = False


@dataclass(frozen=True)
class Skipped:
    """Something that was not used.

    Attributes:
        item: relative path or table row, never a patient's name.
        reason: a category, such as "no partner" or "unreadable image".
        detail: what exactly, where there is more to say.
    """

    item: str
    reason: str
    detail: str = ""


@dataclass(frozen=True)
class Source:
    """What a data set module yields.

    Attributes:
        name: of the data set, for the datalist.
        views: what can be used.
        skipped: what cannot, one entry each.
        warnings: what was used, and is unusual.
        split_is_whole: the sections of the views are all that there is to the split; no validation section is
            made of a part of the training section.
    """

    name: str
    views: list[MarkedView]
    skipped: list[Skipped] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    split_is_whole: bool = False
