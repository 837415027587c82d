"""The data sets that `clnet convert` reads.

To add one, write a module in `clnet.converters.datasets` with a function ``read(workspace, **options)``, and
add it to `CONVERTERS`: the command line builds its subcommands from this list.
"""

import importlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from clnet.converters.annotated import AnnotatedDataset
    from clnet.converters.workspace import Workspace


@dataclass(frozen=True)
class DatasetConverter:
    """One subcommand of `clnet convert`. Its module is imported when it is used.

    Attributes:
        name: of the subcommand.
        help: one line: the data set and the files it needs.
        module: of `clnet.converters.datasets`.
        options: keyword arguments of `argparse.ArgumentParser.add_argument` by option; `read` gets the values
            by name.
        can_count_tables: the module has ``count_tables(source, **options)``, which needs no images.
    """

    name: str
    help: str
    module: str
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    can_count_tables: bool = False

    def read(self, workspace: "Workspace", **options: Any) -> "AnnotatedDataset":
        """Read the data set in the workspace's source folder."""
        return self._load().read(workspace, **options)

    def count_tables(self, source: Path, **options: Any) -> dict[str, int]:
        """Count what the tables in a folder say."""
        return self._load().count_tables(source, **options)

    def _load(self) -> ModuleType:
        return importlib.import_module(f"clnet.converters.datasets.{self.module}")


_TABLE = {"--table": {"type": Path, "metavar": "FILE", "help": "the table, if not in SRC"}}


def _column(what: str, default: str, *names: str) -> dict[str, Any]:
    """The option that names a column, or several; the reader knows the default, which may be absent."""
    several = {"nargs": len(names), "metavar": names} if names else {"metavar": "COLUMN"}
    return {**several, "help": f"{what} (default: {default})"}


def _attributes(what: str) -> dict[str, Any]:
    words = f"columns that describe a {what}, to be kept as its attributes; NAME=COLUMN gives another name"
    return {"nargs": "+", "metavar": "COLUMN", "help": words}


CONVERTERS = (
    DatasetConverter(
        "cbis-ddsm",
        "CBIS-DDSM: DICOM or JPEG files and case description tables",
        "cbis_ddsm",
        {
            "--tables": {
                "type": Path,
                "nargs": "+",
                "metavar": "CSV",
                "help": "case description tables, if not in SRC",
            }
        },
        can_count_tables=True,
    ),
    DatasetConverter(
        "ddsm", "DDSM: .ics, .OVERLAY and .LJPEG files; films are written as 16-bit PNG", "ddsm"
    ),
    DatasetConverter("inbreast", "INbreast: DICOM files, AllXML and INbreast.csv", "inbreast", _TABLE),
    DatasetConverter("vindr-mammo", "VinDr-Mammo: images and finding_annotations.csv", "vindr_mammo", _TABLE),
    DatasetConverter(
        "dicom",
        "your own DICOM archive: pairs from headers, boxes from COCO JSON or CSV",
        "dicom_archive",
        {
            "--boxes": {"type": Path, "metavar": "FILE", "help": "COCO JSON, or CSV by SOPInstanceUID"},
            "--secondary-capture": {"action": "store_true", "help": "accept Secondary Capture images"},
        },
    ),
    DatasetConverter(
        "table",
        "your own images (DICOM, PNG, JPEG or NIfTI) and a table of boxes, such as a CSV file",
        "table",
        {
            "--boxes": {
                "type": Path,
                "required": True,
                "metavar": "FILE",
                "help": "CSV (comma, semicolon or tab) or XLS: one row per box, or per image without masses",
            },
            "--patient": _column("patient, as a pseudonym", "patient"),
            "--laterality": _column("breast: L, R, left or right", "laterality"),
            "--view": _column("view: CC or MLO; others are skipped", "view"),
            "--image": _column("image file, relative to SRC or to the table, or its bare name", "image"),
            "--box": _column(
                "box in pixels, half-open", "x_min y_min x_max y_max", "X_MIN", "Y_MIN", "X_MAX", "Y_MAX"
            ),
            "--study": _column("study, if a patient has several", "study, if present"),
            "--split": _column("train, validation or test", "split, if present"),
            "--lesion": _column(
                "lesion id: the same in both views of a breast is the same lesion", "lesion_id, if present"
            ),
            "--pixel-size": _column(
                "height and width of a pixel, in any unit that the views of a breast share",
                "pixel_size_y pixel_size_x, if present",
                "HEIGHT",
                "WIDTH",
            ),
            "--original-size": _column(
                "rows and columns of the original of a reduced image, which give the size of its pixels",
                "original_height original_width, if present",
                "HEIGHT",
                "WIDTH",
            ),
            "--lesion-attributes": _attributes("lesion"),
            "--breast-attributes": _attributes("breast"),
        },
    ),
)
