"""`clnet predict INPUT --output DIR`: from DICOM files to findings and reports."""

import argparse
from pathlib import Path

from clnet.cli.help_text import DefaultsFormatter


def add_predict(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `clnet predict`."""
    command = commands.add_parser(
        "predict",
        help="find lesions in DICOM files; write DICOM reports, COCO and pictures",
        description="Find masses in every breast of an input and link them across its views. Writes "
        "findings.json, coco.json, summary.json, a picture per breast, and DICOM reports per study. What was "
        "analysed before is not analysed again. The exit status is 1 if a file was refused or nothing "
        "could be analysed, and 3 if the results cannot be written.",
        formatter_class=DefaultsFormatter,
    )
    command.add_argument(
        "input", type=Path, metavar="INPUT", help="a DICOM file, a folder of them, or a datalist"
    )
    command.add_argument("--output", type=Path, required=True, metavar="DIR", help="folder to write to")
    command.add_argument(
        "--model",
        metavar="MODEL",
        help="the folder of a MONAI bundle or of a training run, or phantom: the small model of the phantom "
        "(default: the shipped model, trained on films)",
    )
    command.add_argument("--device", help="such as cpu or cuda:0 (default: a GPU, if there is one)")
    command.add_argument(
        "--min-score",
        type=float,
        metavar="S",
        help="minimum score of a lesion in the reports (default: the model's)",
    )
    command.add_argument(
        "--workers",
        type=int,
        default=2,
        metavar="K",
        help="processes that read files, and as many that write",
    )
    command.add_argument("--batch-size", type=int, default=8, metavar="N", help="breasts per batch")
    command.add_argument(
        "--secondary-capture", action="store_true", help="accept mammograms stored as Secondary Capture"
    )
    command.add_argument(
        "--reports",
        metavar="KINDS",
        default="measurements,presentation,picture",
        help="DICOM reports of each study, separated by commas: measurements (SR, TID 1500), presentation "
        "(softcopy presentation state), picture (Secondary Capture), cad (Mammography CAD SR)",
    )
    command.add_argument(
        "--deidentify",
        action="store_true",
        help="leave out of the DICOM reports who the patient is, for sharing (Basic Profile of DICOM PS3.15)",
    )
    command.set_defaults(run=_predict)


def _predict(options: argparse.Namespace) -> int:
    from clnet.predict.folder_run import PredictSettings, predict
    from clnet.predict.summary import describe
    from clnet.runs.allocator import keep_freed_memory

    settings = PredictSettings(
        options.model,
        options.device,
        options.min_score,
        options.workers,
        options.batch_size,
        options.secondary_capture,
        tuple(filter(None, options.reports.split(","))),
        options.deidentify,
    )
    keep_freed_memory()
    summary = predict(options.input, options.output, settings)
    if summary is None:  # not the first of several processes
        return 0
    print(describe(summary, options.output))
    return summary.exit_status
