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

CONVERTERS = (
    DatasetConverter(
        "cbis-ddsm",
        "CBIS-DDSM: DICOM files and case description tables",
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
)
