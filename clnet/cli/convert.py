"""`clnet convert DATASET SRC --output DIR` and `clnet check DIR`: from a data set to a checked datalist."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from clnet.cli.help_text import DefaultsFormatter
from clnet.errors import ClnetError

if TYPE_CHECKING:
    from clnet.converters.marked import Source
    from clnet.converters.workspace import Workspace

DATA_SETS = {
    "cbis-ddsm": "CBIS-DDSM: DICOM files and case description tables",
    "ddsm": "DDSM: .ics, .OVERLAY and .LJPEG files; films are written as 16-bit PNG",
    "inbreast": "INbreast: DICOM files, AllXML and INbreast.csv",
    "vindr-mammo": "VinDr-Mammo: images and finding_annotations.csv",
    "dicom": "a DICOM archive: pairs by headers, boxes from COCO JSON or CSV",
}
SHEET = "check.png"
SHOWN_PROBLEMS = 20


class OptionError(ClnetError):
    """Options that do not go together."""


def add_convert(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `clnet convert`, with a parser for each data set."""
    command = commands.add_parser(
        "convert",
        help="make a datalist of CBIS-DDSM, DDSM, INbreast, VinDr-Mammo or a DICOM archive",
        description="Make a datalist of a data set as it was downloaded: datalist.json, and conversion.json "
        "with everything that was used, and everything that was not and why. A second run reuses the work of "
        "the first and gives the same bytes.",
    )
    data_sets = command.add_subparsers(dest="data_set", required=True, metavar="DATASET")
    parsers = {
        name: data_sets.add_parser(
            name,
            help=words,
            description=words,
            parents=[_common_options()],
            formatter_class=DefaultsFormatter,
        )
        for name, words in DATA_SETS.items()
    }
    parsers["cbis-ddsm"].add_argument(
        "--tables", type=Path, nargs="+", metavar="CSV", help="case description tables, if not in SRC"
    )
    parsers["cbis-ddsm"].add_argument(
        "--table-only", action="store_true", help="count what the tables say, without any image"
    )
    for name in ("inbreast", "vindr-mammo"):
        parsers[name].add_argument("--table", type=Path, metavar="FILE", help="the table, if not in SRC")
    parsers["dicom"].add_argument(
        "--boxes", type=Path, metavar="FILE", help="COCO JSON, or CSV by SOPInstanceUID"
    )
    parsers["dicom"].add_argument(
        "--secondary-capture", action="store_true", help="accept Secondary Capture images"
    )
    for parser in parsers.values():
        parser.set_defaults(run=_convert)


def add_check(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `clnet check`."""
    command = commands.add_parser(
        "check",
        help="check a datalist against its images, and draw a sample of it",
        description="Check that the images of a datalist are there, have its sizes, hold its boxes and stand "
        f"in it once, and that each patient is in one section; draw a sample to {SHEET} beside it. The exit "
        "status is 1 if something is wrong.",
    )
    command.add_argument("path", type=Path, metavar="DIR", help="a datalist, or a folder with one")
    command.add_argument("--workers", type=int, metavar="K", help="processes (default: one for each core)")
    command.set_defaults(run=lambda options: _check(options.path, options.workers))


def _common_options() -> argparse.ArgumentParser:
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("source", type=Path, metavar="SRC", help="folder of the data set")
    common.add_argument("--output", type=Path, metavar="DIR", help="folder to write to")
    common.add_argument(
        "--geometric-links",
        action="store_true",
        help="link masses that are not linked otherwise by depth, size and descriptors",
    )
    common.add_argument(
        "--two-views-only", action="store_true", help="leave out breasts of which only one view is there"
    )
    common.add_argument(
        "--validation",
        type=float,
        default=0.1,
        metavar="SHARE",
        help="of the patients, or of the training patients where the data set has a test split",
    )
    common.add_argument(
        "--test",
        type=float,
        default=0.2,
        metavar="SHARE",
        help="of the patients, where the data set has no split",
    )
    common.add_argument("--seed", type=int, default=0, metavar="S", help="of the split")
    common.add_argument("--check", action="store_true", help="then do what `clnet check DIR` does")
    common.add_argument("--workers", type=int, metavar="K", help="processes (default: one for each core)")
    return common


def _convert(options: argparse.Namespace) -> int:
    if getattr(options, "table_only", False):
        from clnet.converters.cbis_ddsm import count_tables

        for name, number in count_tables(options.source, options.tables or ()).items():
            print(f"{name:<36}{number:>7}")
        return 0
    if options.output is None:
        raise OptionError("--output DIR is missing: where shall the datalist be written?")

    from clnet.converters.account import describe
    from clnet.converters.convert import ConversionSettings, convert
    from clnet.converters.workspace import ACCOUNT, DATALIST, Workspace
    from clnet.preprocessing.depth import breast_extent

    workspace = Workspace.open(options.source, options.output, options.workers)
    settings = ConversionSettings(
        options.geometric_links, options.two_views_only, options.validation, options.test, options.seed
    )
    account = convert(_read(workspace, options), workspace, settings, breast_extent)
    print(describe(account))
    print(f"\ndatalist   {options.output / DATALIST}\naccount    {options.output / ACCOUNT}")
    return _check(options.output, options.workers) if options.check else 0


def _read(workspace: "Workspace", options: argparse.Namespace) -> "Source":
    from clnet.converters import cbis_ddsm, ddsm, dicom_archive, inbreast, vindr_mammo

    if options.data_set == "cbis-ddsm":
        return cbis_ddsm.read(workspace, options.tables or ())
    if options.data_set == "ddsm":
        return ddsm.read(workspace)
    if options.data_set == "inbreast":
        return inbreast.read(workspace, options.table)
    if options.data_set == "vindr-mammo":
        return vindr_mammo.read(workspace, options.table)
    return dicom_archive.read(workspace, options.boxes, options.secondary_capture)


def _check(path: Path, workers: int | None) -> int:
    from clnet.converters.check import check_datalist, draw_sample

    check = check_datalist(path, workers)
    picture, undrawn = draw_sample(check.datalist)
    problems = (*check.problems, *undrawn)
    for problem in problems[:SHOWN_PROBLEMS]:
        print(f"problem    {problem}")
    if len(problems) > SHOWN_PROBLEMS:
        print(f"           and {len(problems) - SHOWN_PROBLEMS} more")
    pairs = sum(len(pairs) for pairs in check.datalist.sections.values())
    print(f"checked    {pairs} pairs, {check.images} images: {len(problems) or 'no'} problems")
    if picture:
        sheet = (path if path.is_dir() else path.parent) / SHEET
        picture.save(sheet)
        print(f"picture    {sheet}")
    return int(bool(problems))
