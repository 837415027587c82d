"""CBIS-DDSM as JPEG, the form that Kaggle hosts: `jpeg/<SeriesInstanceUID>/<number>.jpg`.

A JPEG has no tags; `dicom_info.csv` lists those of the DICOM files that they were made from. Its
`SeriesDescription` may be empty.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path, PurePosixPath

from clnet.converters.tables import read_table
from clnet.data.header import ImageHeader
from clnet.data.views import Laterality

TAG_TABLE = "dicom_info.csv"
SIDES: Mapping[str, Laterality] = {"L": "L", "R": "R"}

Tags = dict[str, str]


def read_tags(files: Iterable[Path]) -> dict[tuple[str, str], Tags]:
    """The rows of the table of tags among some files, by series and by file name without suffix."""
    tags = {}
    for file in files:
        if file.name.lower() == TAG_TABLE:
            for row in read_table(file, ()):
                path = PurePosixPath(row.get("image_path", ""))
                tags[path.parent.name, path.stem] = row
    return tags


def with_tags(header: ImageHeader, tags: Mapping[tuple[str, str], Tags]) -> ImageHeader:
    """The header of a JPEG with the series that its folder names, and with its tags, if there are any."""
    series = header.file.parent.name
    row = tags.get((series, header.file.stem), {})
    return replace(
        header,
        series_uid=series,
        series_description=row.get("seriesdescription", "").upper(),
        view=row.get("patientorientation", "").upper() or None,
        laterality=SIDES.get(row.get("laterality", "").upper()),
    )
