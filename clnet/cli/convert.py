"""`clnet convert DATASET SRC --output DIR` and `clnet check DIR`: from a data set to a checked datalist."""

import argparse
from pathlib import Path

from clnet.cli.help_text import DefaultsFormatter
from clnet.converters.registry import CONVERTERS, DatasetConverter
from clnet.errors import ClnetError

SHEET = "check.png"
SHOWN_PROBLEMS = 20


class OptionError(ClnetError):
    """Options that do not go together."""


def add_convert(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `clnet convert`, with a subcommand for each data set in the registry."""
    command = commands.add_parser(
        "convert",
        help="convert a public data set or a DICOM archive to a datalist",
        description="Convert a data set, as downloaded, to a datalist: writes datalist.json, and "
        "conversion.json with everything that was used or skipped, and why. A second run reuses the work of "
        "the first and gives the same bytes.",
    )
    data_sets = command.add_subparsers(dest="data_set", required=True, metavar="DATASET")
    for converter in CONVERTERS:
        parser = data_sets.add_parser(
            converter.name,
            help=converter.help,
            description=converter.help,
            parents=[_common_options()],
            formatter_class=DefaultsFormatter,
        )
        own = [parser.add_argument(option, **words).dest for option, words in converter.options.items()]
        if converter.can_count_tables:
            parser.add_argument("--table-only", action="store_true", help="only count what the tables say")
        parser.set_defaults(run=_convert, converter=converter, own_options=own, table_only=False)


def add_check(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `clnet check`."""
    command = commands.add_parser(
        "check",
        help="check a datalist against its images, and draw a sample of it",
        description="Check that each image of a datalist exists, has the stated size, contains its boxes and "
        f"appears once, and that each patient is in one section; draw a sample to {SHEET} beside it. "
        "The exit status is 1 if there are problems.",
    )
    command.add_argument("path", type=Path, metavar="DIR", help="a datalist, or a folder with one")
    command.add_argument("--workers", type=int, metavar="K", help="processes (default: one per core)")
    command.set_defaults(run=lambda options: _check(options.path, options.workers))


def _common_options() -> argparse.ArgumentParser:
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("source", type=Path, metavar="SRC", help="folder of the data set")
    common.add_argument("--output", type=Path, metavar="DIR", help="folder to write to")
    common.add_argument(
        "--geometric-links",
        action="store_true",
        help="link masses by depth, size and descriptors where there is no certain link",
    )
    common.add_argument("--two-views-only", action="store_true", help="leave out breasts with one view")
    common.add_argument(
        "--validation",
        type=float,
        default=0.1,
        metavar="SHARE",
        help="share of the patients; of the training patients if the data set has a test split",
    )
    common.add_argument(
        "--test",
        type=float,
        default=0.2,
        metavar="SHARE",
        help="share of the patients, if the data set has no split",
    )
    common.add_argument("--seed", type=int, default=0, metavar="S", help="seed of the split")
    common.add_argument("--check", action="store_true", help="run `clnet check` on the result")
    common.add_argument("--workers", type=int, metavar="K", help="processes (default: one per core)")
    return common


def _convert(options: argparse.Namespace) -> int:
    converter: DatasetConverter = options.converter
    own_options = {name: getattr(options, name) for name in options.own_options}
    if options.table_only:
        for name, number in converter.count_tables(options.source, **own_options).items():
            print(f"{name:<36}{number:>7}")
        return 0
    if options.output is None:
        raise OptionError("--output DIR is missing: the folder to write the datalist to")

    from clnet.converters.convert import ConversionSettings, convert
    from clnet.converters.report import describe_report
    from clnet.converters.workspace import DATALIST, REPORT, Workspace

    workspace = Workspace.open(options.source, options.output, options.workers)
    settings = ConversionSettings(
        options.geometric_links, options.two_views_only, options.validation, options.test, options.seed
    )
    report = convert(converter.read(workspace, **own_options), workspace, settings)
    print(describe_report(report))
    print(f"\ndatalist   {options.output / DATALIST}\nreport     {options.output / REPORT}")
    return _check(options.output, options.workers) if options.check else 0


def _check(path: Path, workers: int | None) -> int:
    from clnet.converters.check import check_datalist, draw_sample

    result = check_datalist(path, workers)
    picture, not_drawn = draw_sample(result.datalist)
    problems = (*result.problems, *not_drawn)
    for problem in problems[:SHOWN_PROBLEMS]:
        print(f"problem    {problem}")
    if len(problems) > SHOWN_PROBLEMS:
        print(f"           and {len(problems) - SHOWN_PROBLEMS} more")
    pairs = sum(len(pairs) for pairs in result.datalist.sections.values())
    print(f"checked    {pairs} pairs, {result.images} images: {len(problems) or 'no'} problems")
    if picture:
        sheet = (path if path.is_dir() else path.parent) / SHEET
        picture.save(sheet)
        print(f"picture    {sheet}")
    return int(bool(problems))
