"""What a data set says about its images, in one form for all data sets.

Each data set has a module in `clnet.converters.datasets` with a function::

    def read(workspace: Workspace, **options) -> AnnotatedDataset

Everything else (clip boxes to the image, choose one image per view, pair, link, split, write, report) is the
same for every data set: see `convert.py`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from clnet.data.views import Laterality
from clnet.errors import ClnetError

Box = tuple[float, float, float, float]


class ConversionError(ClnetError):
    """A data set that cannot be converted; the message says what was expected and where."""


@dataclass(frozen=True)
class Mass:
    """A mass annotated in a view.

    Attributes:
        box: x_min, y_min, x_max, y_max in pixels of the stored image, half-open. It may extend beyond the
            image: `convert` clips it, with a warning.
        lesion_id: the data set's own id of the lesion, if it has one.
        descriptors: shape, margins, pathology, subtlety, …; used for linking and written to the attributes.
    """

    box: Box
    lesion_id: str | None = None
    descriptors: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class AnnotatedView:
    """One image of a breast with its annotated masses; an image without masses is a valid annotation.

    Attributes:
        image: the image file.
        size: rows and columns of the stored image.
        patient_id: keeps a patient in one section of the datalist; a pseudonym, never a name.
        study_id: views of one study and breast can form a pair; unique in the data set.
        laterality: "L" or "R".
        view: "cc" or "mlo".
        masses: the annotated masses.
        unlocated: one line for each mass that is known to be in the image without its location. Such an image
            is left out: as a negative it would teach the model to miss the mass.
        attributes: density, birads, pathology, … of the breast.
        section: the data set's own split: "training", "validation" or "test"; None if it has none.
        links_annotated: the same `lesion_id` in both views means the same lesion, different ids different
            lesions. Only set this if the ids are reliable.
        pixel_size: (height, width) of a pixel, in any unit that the views of a breast share; None if unknown,
            or in the file.
    """

    image: Path
    size: tuple[int, int]
    patient_id: str
    study_id: str
    laterality: Laterality
    view: str
    masses: tuple[Mass, ...] = ()
    unlocated: tuple[str, ...] = ()
    attributes: Mapping[str, Any] = field(default_factory=dict)
    section: str | None = None
    links_annotated: bool = False
    pixel_size: tuple[float, float] | None = None


@dataclass(frozen=True)
class AnnotatedDataset:
    """What the reader of a data set returns.

    Attributes:
        name: of the data set, for the datalist.
        views: the images that can be used.
        has_full_split: the split of the data set has a validation section, so none is taken from training.
    """

    name: str
    views: list[AnnotatedView]
    has_full_split: bool = False


@dataclass(frozen=True)
class Skipped:
    """Something in the data set that was not used.

    Attributes:
        item: relative path or table row, never a patient's name.
        reason: a category, such as "other view missing" or "unreadable image".
        detail: specifics, if there are any.
    """

    item: str
    reason: str
    detail: str = ""
