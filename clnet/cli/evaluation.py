"""`clnet evaluate`, `report`, `compare` and `threshold`: from findings to numbers, pages and comparisons."""

import argparse
from pathlib import Path

from clnet.cli.help_text import DefaultsFormatter


def add_evaluate(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `clnet evaluate`."""
    command = commands.add_parser(
        "evaluate",
        help="compute recall, link metrics and errors of findings, with intervals",
        description="Evaluate a findings file or COCO results, of clnet or of any other system, on a section "
        "of a datalist. Writes metrics.json, errors.json, record.npz, froc.png and report.html, and prints "
        "the tables.",
        formatter_class=DefaultsFormatter,
    )
    command.add_argument(
        "--datalist", type=Path, required=True, metavar="FILE", help="datalist, or a folder with one"
    )
    command.add_argument("--section", default="test", help="of the datalist: training, validation or test")
    command.add_argument(
        "--findings",
        type=Path,
        required=True,
        metavar="FILE",
        help="findings file, or COCO results: a list of image_id, bbox and score",
    )
    command.add_argument(
        "--coco-images",
        type=Path,
        metavar="FILE",
        help="COCO file whose images have the ids of the COCO results; without it, ids are file names",
    )
    command.add_argument("--output", type=Path, required=True, metavar="DIR", help="folder to write to")
    command.add_argument(
        "--protocol",
        default="default",
        metavar="NAME",
        help="rules of counting: film for real films (duplicates are false positives), default (duplicates "
        "are neither), or transreg, as TransReg counts; docs/evaluation.md has the table (default: default)",
    )
    command.add_argument(
        "--iou",
        type=float,
        nargs="+",
        metavar="IOU",
        help="minimum overlap of a hit, instead of the protocol's",
    )
    command.add_argument(
        "--count-duplicates",
        action=argparse.BooleanOptionalAction,
        help="whether further detections on a lesion that is already hit are false positives, instead of "
        "the protocol's rule",
    )
    command.add_argument(
        "--operating-rate",
        type=float,
        default=0.5,
        metavar="FPI",
        help="false positives per image at which errors are listed",
    )
    command.add_argument("--link-score", type=float, default=0.5, metavar="S", help="minimum score of a link")
    _add_bootstrap(command)
    command.add_argument("--no-report", action="store_true", help="do not write report.html")
    _add_max_pairs(command)
    command.set_defaults(run=_evaluate)


def _evaluate(options: argparse.Namespace) -> None:
    from clnet.evaluation.folder import evaluate_files
    from clnet.evaluation.protocols import settings_of
    from clnet.evaluation.tables import metrics_tables

    changes = {"ious": options.iou, "count_duplicates": options.count_duplicates}
    settings = settings_of(
        options.protocol,
        **{name: value for name, value in changes.items() if value is not None},
        operating_rate=options.operating_rate,
        link_score=options.link_score,
        resamples=options.resamples,
        seed=options.seed,
    )
    evaluation = evaluate_files(
        options.datalist,
        options.findings,
        options.section,
        options.output,
        settings,
        report=not options.no_report,
        max_pairs=options.max_pairs,
        coco_images=options.coco_images,
    )
    print(metrics_tables(evaluation.metrics))
    print(f"\nmetrics   {options.output / 'metrics.json'}\npicture   {options.output / 'froc.png'}")
    if not options.no_report:
        print(f"report    {options.output / 'report.html'}")


def add_report(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `clnet report`."""
    command = commands.add_parser(
        "report",
        help="write the page of an evaluation: numbers, curves, errors, and a viewer of the pairs",
        description="Write report.html in a folder that `clnet evaluate` or the bundle's `evaluating` wrote: "
        "one self-contained page that names no patient. The datalist, its images and the findings must be "
        "where they were; without images the viewer shows only boxes.",
        formatter_class=DefaultsFormatter,
    )
    command.add_argument("folder", type=Path, metavar="DIR", help="folder of an evaluation")
    _add_max_pairs(command)
    command.set_defaults(run=_report)


def _report(options: argparse.Namespace) -> None:
    from clnet.evaluation.folder import report_on_folder

    print(f"report    {report_on_folder(options.folder, options.max_pairs)}")


def add_compare(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `clnet compare`."""
    command = commands.add_parser(
        "compare",
        help="compare evaluated runs: differences with intervals and p-values",
        description="Compare runs that `clnet evaluate` evaluated on the same pairs: each further run minus "
        "the first, by paired bootstrap over patients.",
        formatter_class=DefaultsFormatter,
    )
    command.add_argument(
        "runs", nargs="+", metavar="RUN", help="a folder that `clnet evaluate` wrote, or mlflow:RUN_ID"
    )
    command.add_argument(
        "--output", type=Path, metavar="DIR", help="folder to write comparison.json and froc.png to"
    )
    command.add_argument(
        "--tracking-uri", metavar="URI", help="MLflow server (default: the environment's MLFLOW_TRACKING_URI)"
    )
    _add_bootstrap(command)
    command.set_defaults(run=_compare)


def _compare(options: argparse.Namespace) -> None:
    from clnet.evaluation.compare import compare, write_comparison
    from clnet.evaluation.tables import comparison_tables
    from clnet.runs.mlflow_evaluations import read_runs

    runs = read_runs(options.runs, options.tracking_uri)
    comparison = compare(runs, options.resamples, options.seed)
    print(comparison_tables(comparison))
    if options.output:
        write_comparison(comparison, runs, options.output)
        print(f"\nnumbers   {options.output / 'comparison.json'}\npicture   {options.output / 'froc.png'}")


def add_threshold(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `clnet threshold`."""
    command = commands.add_parser(
        "threshold",
        help="choose the score threshold of reports by a rate of false positives",
        description="Print the lowest score at which an evaluation has at most this many false positives per "
        "image, for --min-score of `clnet predict`. Choose it on the validation section.",
        formatter_class=DefaultsFormatter,
    )
    command.add_argument("folder", type=Path, metavar="DIR", help="folder of an evaluation")
    command.add_argument("--rate", type=float, default=0.5, metavar="FPI", help="false positives per image")
    command.add_argument(
        "--iou", type=float, metavar="IOU", help="minimum overlap of a hit (default: the first)"
    )
    command.set_defaults(run=_threshold)


def _threshold(options: argparse.Namespace) -> None:
    from clnet.evaluation.folder import read_metrics
    from clnet.evaluation.tables import threshold_text
    from clnet.evaluation.threshold import threshold_at_rate

    threshold = threshold_at_rate(options.folder, options.rate, options.iou)
    print(threshold_text(threshold, read_metrics(options.folder)))


def _add_max_pairs(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--max-pairs",
        type=int,
        default=200,
        metavar="N",
        help="most pairs in the viewer of report.html, the worst errors first",
    )


def _add_bootstrap(command: argparse.ArgumentParser) -> None:
    command.add_argument("--resamples", type=int, default=2000, metavar="N", help="bootstrap resamples")
    command.add_argument("--seed", type=int, default=0, metavar="S", help="bootstrap seed")
