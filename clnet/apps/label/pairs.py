"""Which images of a datastore are the two views of a breast.

DICOM files are paired by their tags, as in `clnet predict`. PNG and JPEG files are paired by a datalist.json
in the folder, or by names such as ``case7_L_CC.png`` and ``case7_L_MLO.png``.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from clnet.apps.label.datastore import StudyFolder
from clnet.apps.label.request_errors import NotFoundError, RequestError
from clnet.data.datalist import read_datalist
from clnet.data.header import ImageHeader
from clnet.data.pair import VIEW_NAMES
from clnet.data.study import ChosenPair, choose_pairs
from clnet.predict.breasts import BreastImages, breast_of_pair, breast_of_study, digest

VIEW_IN_NAME = re.compile(
    r"(?P<study>.+?)[_\-. ](?P<side>L|R|LEFT|RIGHT)[_\-. ]?(?P<view>CC|MLO)$", re.IGNORECASE
)
SAFE_IN_URL = re.compile(r"[A-Za-z0-9_\-][A-Za-z0-9_\-.]*")


@dataclass(frozen=True)
class ImagePair:
    """The images of a breast.

    Attributes:
        pair_id: that of the datalist if it is safe in a URL, a digest otherwise.
        patient: the same for all breasts of a patient, without identity.
        breast: the input of the model.
        images: view → image id, for the views that exist.
        sizes: view → (rows, columns).
        warnings: view → what is unusual about its image.
    """

    pair_id: str
    patient: str
    breast: BreastImages
    images: Mapping[str, str]
    sizes: Mapping[str, tuple[int, int]]
    warnings: Mapping[str, tuple[str, ...]]

    def view_of(self, image_id: str) -> str:
        """The view shown by an image of the pair."""
        return next(view for view, image in self.images.items() if image == image_id)

    @property
    def missing_view(self) -> str | None:
        """The view that the pair lacks."""
        return next((view for view in VIEW_NAMES if view not in self.images), None)


@dataclass(frozen=True)
class ImagePairs:
    """All pairs of a datastore by id, and why the other images are not part of one."""

    pairs: Mapping[str, ImagePair]
    left_out: Mapping[str, str]

    def __iter__(self) -> Iterator[ImagePair]:
        return iter(self.pairs.values())

    def __getitem__(self, pair_id: str) -> ImagePair:
        if pair_id not in self.pairs:
            raise NotFoundError(f"there is no pair {pair_id[:80]!r}; GET /clnet/pairs lists the pairs")
        return self.pairs[pair_id]

    def of_image(self, image_id: str) -> ImagePair:
        """The pair that an image belongs to."""
        for pair in self:
            if image_id in pair.images.values():
                return pair
        reason = self.left_out.get(image_id, "unknown reason")
        raise RequestError(f"image {image_id!r} is not part of a pair: {reason}")


def find_image_pairs(datastore: StudyFolder, secondary_capture: bool = False) -> ImagePairs:
    """Pair the images of a datastore.

    Args:
        datastore: the images.
        secondary_capture: accept Secondary Capture images, as `clnet predict --secondary-capture` does.
    """
    headers, left_out = datastore.read_headers()
    by_file = {header.file: header for header in headers}
    if (datastore.folder / "datalist.json").is_file():
        breasts = list(_of_datalist(datastore, by_file))
    else:
        selection = choose_pairs(map(_with_view_of_name, headers), secondary_capture)
        breasts = [(_patient_of(chosen), breast_of_study(chosen)) for chosen in selection.pairs]
        left_out += selection.left_out
    pairs = [_image_pair(datastore, by_file, patient, breast) for patient, breast in breasts]
    return ImagePairs(
        {pair.pair_id: pair for pair in pairs},
        {datastore.image_id(item.file): item.reason.removeprefix(f"{item.file}: ") for item in left_out},
    )


def _of_datalist(
    datastore: StudyFolder, by_file: Mapping[Path, ImageHeader]
) -> Iterator[tuple[str, BreastImages]]:
    """The pairs of a datalist whose images are in the datastore."""
    for pairs in read_datalist(datastore.folder).sections.values():
        for pair in pairs:
            breast = breast_of_pair(pair)
            views = {
                name: replace(view, image=file)
                for name, view in breast.pair.views.items()
                if (file := view.image.resolve()) in by_file
            }
            if views:
                found = replace(breast.pair, cc=views.get("cc"), mlo=views.get("mlo"))
                yield digest(pair.patient_id), replace(breast, pair=found)


def _image_pair(
    datastore: StudyFolder, by_file: Mapping[Path, ImageHeader], patient: str, breast: BreastImages
) -> ImagePair:
    headers = {name: by_file[view.image] for name, view in breast.pair.views.items()}
    pair_id = breast.pair.pair_id
    return ImagePair(
        pair_id=pair_id if SAFE_IN_URL.fullmatch(pair_id) else breast.breast_id,
        patient=patient,
        breast=breast,
        images={view: datastore.image_id(header.file) for view, header in headers.items()},
        sizes={view: (header.rows, header.columns) for view, header in headers.items()},
        warnings={view: (*breast.warnings, *header.warnings) for view, header in headers.items()},
    )


def _with_view_of_name(header: ImageHeader) -> ImageHeader:
    """The header of a file without tags, completed from its name."""
    match = VIEW_IN_NAME.match(header.file.stem)
    if header.modality or header.samples > 1 or not match:
        return header
    study = f"{header.file.parent}/{match['study']}"
    return replace(
        header,
        modality="MG",
        photometric="MONOCHROME2",
        view=match["view"].upper(),
        laterality="L" if match["side"].upper().startswith("L") else "R",
        study_uid=study,
        patient_id=study,
        warnings=("view and laterality are taken from the file name",),
    )


def _patient_of(chosen: ChosenPair) -> str:
    header = chosen.cc or chosen.mlo
    return digest((header.patient_id if header else "") or chosen.study_uid)
