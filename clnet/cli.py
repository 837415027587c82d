"""`clnet …`: what a bundle has no word for.

Each command is a function that takes the parsed arguments. What it needs is imported when it runs, so that
`clnet --help` answers at once.
"""

import argparse
import json
import os
import sys
from pathlib import Path

from clnet import __version__
from clnet.commands.convert import add_check, add_convert
from clnet.errors import ClnetError


def main(arguments: list[str] | None = None) -> int:
    """Run a command; errors that the user can mend are printed as one line."""
    options = _parser().parse_args(arguments)
    try:
        status = int(options.run(options) or 0)
        sys.stdout.flush()
        return status
    except BrokenPipeError:  # whoever reads, such as `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except ClnetError as error:
        print(f"clnet {options.command}: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"clnet {options.command}: stopped", file=sys.stderr)
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="clnet", description="Find masses in the CC and MLO views of a breast, and link the same mass."
    )
    parser.add_argument("--version", action="version", version=f"clnet {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    _add_phantom(commands)
    _add_pairs(commands)
    _add_inspect(commands)
    add_convert(commands)
    add_check(commands)
    _add_predict(commands)
    _add_evaluate(commands)
    _add_report(commands)
    _add_compare(commands)
    return parser


def _add_phantom(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    command = commands.add_parser(
        "phantom",
        help="make the embedded data set: DICOM pairs whose boxes and links are exactly known",
        description="Make a phantom: images/*.dcm, datalist.json (training, validation, test), preview.png. "
        "The same settings give the same bytes.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    command.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder to write to")
    command.add_argument("--pairs", type=int, default=40, metavar="N", help="how many pairs to make")
    command.add_argument("--seed", type=int, default=0, metavar="S", help="another seed, another phantom")
    command.add_argument(
        "--size", type=int, nargs=2, default=(320, 224), metavar=("H", "W"), help="rows and columns"
    )
    command.add_argument("--difficulty", default="standard", help="easy, standard or hard")
    command.add_argument("--workers", type=int, metavar="K", help="processes (default: one for each core)")
    command.set_defaults(run=_phantom)


def _phantom(options: argparse.Namespace) -> None:
    from clnet.data.phantom import PhantomSettings, make_phantom

    rows, columns = options.size
    settings = PhantomSettings(options.pairs, options.seed, rows, columns, options.difficulty)
    datalist = make_phantom(options.out, settings, options.workers)
    for section, pairs in datalist.sections.items():
        lesions = {
            (pair.pair_id, i) for pair in pairs for view in pair.views.values() for i in view.lesion_ids
        }
        links = sum(len(pair.links) for pair in pairs)
        print(f"{section:<11}{len(pairs):>5} pairs {len(lesions):>5} masses, {links} linked in both views")
    print(f"datalist  {options.out / 'datalist.json'}\npicture   {options.out / 'preview.png'}")


def _add_pairs(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    command = commands.add_parser(
        "pairs",
        help="show which files of a folder are the CC and MLO of each breast, and what is left out and why",
        description="Choose the CC and MLO view of each breast among DICOM files, by their headers alone, "
        "and list what is left out and why.",
    )
    command.add_argument("paths", type=Path, nargs="+", metavar="PATH", help="a folder, or DICOM files")
    command.add_argument("--json", action="store_true", help="print one object with pairs and left_out")
    command.add_argument(
        "--secondary-capture",
        action="store_true",
        help="accept Secondary Capture images, for data sets known to store mammograms so",
    )
    command.add_argument("--workers", type=int, metavar="K", help="processes (default: one for each core)")
    command.set_defaults(run=_pairs)


def _pairs(options: argparse.Namespace) -> None:
    from clnet.data.study import find_pairs

    selection = find_pairs(options.paths, options.secondary_capture, options.workers)
    if options.json:
        pairs = [
            {
                "laterality": pair.laterality,
                "cc": str(pair.cc.file) if pair.cc else None,
                "mlo": str(pair.mlo.file) if pair.mlo else None,
                "warnings": pair.warnings,
            }
            for pair in selection.pairs
        ]
        left_out = [{"file": str(item.file), "reason": item.reason} for item in selection.left_out]
        print(json.dumps({"pairs": pairs, "left_out": left_out}, indent=1, ensure_ascii=False))
        return
    for pair in selection.pairs:
        cc, mlo = (view.file if view else "-" for view in (pair.cc, pair.mlo))
        print(f"{pair.laterality}  CC {cc}   MLO {mlo}")
        for warning in pair.warnings:
            print(f"   warning: {warning}")
    for item in selection.left_out:
        print(f"left out  {item.file}: {item.reason.removeprefix(f'{item.file}: ')}")
    print(f"{len(selection.pairs)} pairs, {len(selection.left_out)} files left out")


def _add_inspect(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    command = commands.add_parser(
        "inspect",
        help="show what the reader and the preprocessing see in image files",
        description="Show what the reader and the preprocessing see: view, laterality, size, bits, spacing, "
        "where the breast is, and the exact chain that leads to the model's input. "
        "The exit status is 1 if an image was refused.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    command.add_argument(
        "paths", type=Path, nargs="+", metavar="PATH", help="an image file, or a folder of them"
    )
    command.add_argument("--json", action="store_true", help="print a list with one object for each image")
    command.add_argument(
        "--picture", type=Path, metavar="OUT.png", help="draw the images with their breast boxes"
    )
    command.add_argument(
        "--size", type=int, nargs=2, default=(1024, 512), metavar=("H", "W"), help="of the model's input"
    )
    command.add_argument(
        "--no-voi", action="store_true", help="do not apply the VOI LUT or window of DICOM files"
    )
    command.set_defaults(run=_inspect)


def _inspect(options: argparse.Namespace) -> int:
    from clnet.inspection import contact_sheet, describe, inspect_images

    inspections = inspect_images(
        options.paths, tuple(options.size), apply_voi=not options.no_voi, draw=options.picture is not None
    )
    facts = [inspection.facts for inspection in inspections]
    if options.json:
        print(json.dumps(facts, indent=1, ensure_ascii=False))
    else:
        print("\n\n".join(describe(fact) for fact in facts) or "no images there")
    if options.picture:
        options.picture.parent.mkdir(parents=True, exist_ok=True)
        contact_sheet(inspections).save(options.picture)
        print(f"picture   {options.picture}", file=sys.stderr)
    return int(any(fact["refused"] for fact in facts))


def _add_predict(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    command = commands.add_parser(
        "predict",
        help="find lesions in DICOM files; write DICOM SR, COCO and pictures",
        description="Find masses in every breast of an input and link them across its views. Writes "
        "findings.json, coco.json, summary.json, and for each breast two DICOM SR and a picture. What is "
        "done is not done again. The exit status is 1 if a file was refused.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    command.add_argument(
        "input", type=Path, metavar="INPUT", help="a DICOM file, a folder of them, or a datalist"
    )
    command.add_argument("--output", type=Path, required=True, metavar="DIR", help="folder to write to")
    command.add_argument("--bundle", type=Path, metavar="DIR", help="MONAI bundle (default: the checkout's)")
    command.add_argument("--device", help="such as cpu or cuda:0 (default: a GPU, if there is one)")
    command.add_argument(
        "--min-score", type=float, default=0.3, metavar="S", help="least score of lesions in reports"
    )
    command.add_argument("--workers", type=int, default=2, metavar="K", help="processes that read files")
    command.add_argument("--batch-size", type=int, default=8, metavar="N", help="pairs at a time")
    command.add_argument(
        "--secondary-capture", action="store_true", help="accept mammograms stored as Secondary Capture"
    )
    command.set_defaults(run=_predict)


def _predict(options: argparse.Namespace) -> int:
    from clnet.inference.predict import PredictSettings, predict
    from clnet.inference.summary import describe
    from clnet.training.allocator import keep_freed_memory

    settings = PredictSettings(
        options.bundle,
        options.device,
        options.min_score,
        options.workers,
        options.batch_size,
        options.secondary_capture,
    )
    keep_freed_memory()
    summary = predict(options.input, options.output, settings)
    if summary is None:  # not the first of several processes
        return 0
    print(describe(summary, options.output))
    return summary.exit_status


def _add_evaluate(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    command = commands.add_parser(
        "evaluate",
        help="say what findings are worth: recall, links and errors, with intervals",
        description="Evaluate a findings file, of clnet or of any other system, on a section of a datalist. "
        "Writes metrics.json, errors.json, record.npz, froc.png and report.html, and prints the tables.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    command.add_argument(
        "--datalist", type=Path, required=True, metavar="FILE", help="datalist, or a folder with one"
    )
    command.add_argument("--section", default="test", help="of the datalist: training, validation or test")
    command.add_argument("--findings", type=Path, required=True, metavar="FILE", help="findings file")
    command.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder to write to")
    command.add_argument(
        "--iou", type=float, nargs="+", default=(0.2, 0.5), metavar="IOU", help="the overlap that makes a hit"
    )
    command.add_argument(
        "--count-duplicates",
        action="store_true",
        help="count further detections on a lesion that is already hit as false positives",
    )
    command.add_argument(
        "--operating-rate",
        type=float,
        default=0.5,
        metavar="FPI",
        help="false positives per image at which errors are told apart",
    )
    command.add_argument(
        "--link-score", type=float, default=0.5, metavar="S", help="least score of links that count"
    )
    _add_bootstrap(command)
    command.add_argument("--no-report", action="store_true", help="do not make report.html")
    _add_max_pairs(command)
    command.set_defaults(run=_evaluate)


def _evaluate(options: argparse.Namespace) -> None:
    from clnet.evaluation.folder import evaluate_files
    from clnet.evaluation.metrics import EvaluationSettings
    from clnet.evaluation.tables import metrics_tables

    settings = EvaluationSettings(
        tuple(options.iou),
        options.count_duplicates,
        options.operating_rate,
        options.link_score,
        options.resamples,
        options.seed,
    )
    evaluation = evaluate_files(
        options.datalist,
        options.section,
        options.findings,
        options.out,
        settings,
        report=not options.no_report,
        max_pairs=options.max_pairs,
    )
    print(metrics_tables(evaluation.metrics))
    print(f"\nmetrics   {options.out / 'metrics.json'}\npicture   {options.out / 'froc.png'}")
    if not options.no_report:
        print(f"report    {options.out / 'report.html'}")


def _add_report(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    command = commands.add_parser(
        "report",
        help="make the page of an evaluation: numbers, curves, errors, and a viewer of the pairs",
        description="Make report.html in a folder that `clnet evaluate` or the bundle's `evaluating` wrote: "
        "one page that needs nothing else to be opened, and names no patient. The datalist, its images and "
        "the findings must be where they were; without images the viewer shows boxes alone.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    command.add_argument("folder", type=Path, metavar="DIR", help="folder of an evaluation")
    _add_max_pairs(command)
    command.set_defaults(run=_report)


def _report(options: argparse.Namespace) -> None:
    from clnet.evaluation.folder import report_on_folder

    print(f"report    {report_on_folder(options.folder, options.max_pairs)}")


def _add_max_pairs(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--max-pairs",
        type=int,
        default=200,
        metavar="N",
        help="most pairs in the viewer of report.html, the worst errors first",
    )


def _add_compare(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    command = commands.add_parser(
        "compare",
        help="set evaluated runs side by side: differences with intervals and p-values",
        description="Compare runs that `clnet evaluate` evaluated on the same pairs: each further run minus "
        "the first, by paired bootstrap over patients.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    command.add_argument(
        "runs", nargs="+", metavar="RUN", help="a folder that `clnet evaluate` wrote, or mlflow:RUN_ID"
    )
    command.add_argument(
        "--out", type=Path, metavar="DIR", help="folder to write comparison.json and froc.png to"
    )
    command.add_argument(
        "--tracking-uri", metavar="URI", help="of MLflow (default: the environment's MLFLOW_TRACKING_URI)"
    )
    _add_bootstrap(command)
    command.set_defaults(run=_compare)


def _compare(options: argparse.Namespace) -> None:
    from clnet.evaluation.compare import compare, read_runs, write_comparison
    from clnet.evaluation.tables import comparison_tables

    runs = read_runs(options.runs, options.tracking_uri)
    comparison = compare(runs, options.resamples, options.seed)
    print(comparison_tables(comparison))
    if options.out:
        write_comparison(comparison, runs, options.out)
        print(f"\nnumbers   {options.out / 'comparison.json'}\npicture   {options.out / 'froc.png'}")


def _add_bootstrap(command: argparse.ArgumentParser) -> None:
    command.add_argument("--resamples", type=int, default=2000, metavar="N", help="of the bootstrap")
    command.add_argument("--seed", type=int, default=0, metavar="S", help="of the bootstrap")


if __name__ == "__main__":
    sys.exit(main())
