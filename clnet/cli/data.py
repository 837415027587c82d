"""`clnet phantom`, `clnet pairs` and `clnet inspect`: images, and what clnet sees in them."""

import argparse
import json
import sys
from pathlib import Path

from clnet.cli.help_text import DefaultsFormatter


def add_phantom(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `clnet phantom`."""
    command = commands.add_parser(
        "phantom",
        help="make the embedded data set: DICOM pairs whose boxes and links are known exactly",
        description="Make a phantom: images/*.dcm, datalist.json (training, validation, test), preview.png. "
        "The same settings give the same bytes.",
        formatter_class=DefaultsFormatter,
    )
    command.add_argument("--output", type=Path, required=True, metavar="DIR", help="folder to write to")
    command.add_argument("--pairs", type=int, default=40, metavar="N", help="number of pairs")
    command.add_argument(
        "--seed", type=int, default=0, metavar="S", help="seed; another one gives another phantom"
    )
    command.add_argument(
        "--size", type=int, nargs=2, default=(320, 224), metavar=("H", "W"), help="rows and columns"
    )
    command.add_argument("--difficulty", default="standard", help="easy, standard, hard or patient")
    command.add_argument("--workers", type=int, metavar="K", help="processes (default: one per core)")
    command.set_defaults(run=_phantom)


def _phantom(options: argparse.Namespace) -> None:
    from clnet.data.counted import counted
    from clnet.phantom import PhantomSettings, make_phantom

    rows, columns = options.size
    settings = PhantomSettings(options.pairs, options.seed, rows, columns, options.difficulty)
    datalist = make_phantom(options.output, settings, options.workers)
    for section, pairs in datalist.sections.items():
        lesions = {
            (pair.pair_id, i) for pair in pairs for view in pair.views.values() for i in view.lesion_ids
        }
        links = sum(len(pair.links) for pair in pairs)
        words = (
            f"{counted(len(pairs), 'pair')}, {counted(len(lesions), 'mass')}, {links} linked in both views"
        )
        print(f"{section:<12}{words}")
    print(f"datalist  {options.output / 'datalist.json'}\npicture   {options.output / 'preview.png'}")


def add_pairs(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `clnet pairs`."""
    command = commands.add_parser(
        "pairs",
        help="show which files of a folder are the CC and MLO of each breast, and what is left out and why",
        description="Choose the CC and MLO view of each breast among DICOM files, by their headers alone, "
        "and list what is left out and why.",
    )
    command.add_argument("paths", type=Path, nargs="+", metavar="PATH", help="a folder, or DICOM files")
    command.add_argument("--json", action="store_true", help="print one object with pairs and left_out")
    command.add_argument(
        "--secondary-capture", action="store_true", help="accept mammograms stored as Secondary Capture"
    )
    command.add_argument("--workers", type=int, metavar="K", help="processes (default: one per core)")
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


def add_inspect(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `clnet inspect`."""
    command = commands.add_parser(
        "inspect",
        help="show what the reader and the preprocessing see in image files",
        description="Show what the reader and the preprocessing see: view, laterality, size, bits, spacing, "
        "where the breast is, and every step that leads to the model's input. "
        "The exit status is 1 if an image was refused.",
        formatter_class=DefaultsFormatter,
    )
    command.add_argument(
        "paths", type=Path, nargs="+", metavar="PATH", help="an image file, or a folder of them"
    )
    command.add_argument("--json", action="store_true", help="print a list with one object per image")
    command.add_argument(
        "--picture", type=Path, metavar="OUT.png", help="draw the images with their breast boxes"
    )
    command.add_argument(
        "--size",
        type=int,
        nargs=2,
        default=(1024, 512),
        metavar=("H", "W"),
        help="rows and columns of the model's input",
    )
    command.add_argument(
        "--no-voi", action="store_true", help="do not apply the VOI LUT or window of DICOM files"
    )
    command.set_defaults(run=_inspect)


def _inspect(options: argparse.Namespace) -> int:
    from clnet.files import make_folder
    from clnet.preprocessing.inspection import contact_sheet, describe, inspect_images

    inspections = inspect_images(
        options.paths, tuple(options.size), apply_voi=not options.no_voi, draw=options.picture is not None
    )
    facts = [inspection.facts for inspection in inspections]
    if options.json:
        print(json.dumps(facts, indent=1, ensure_ascii=False))
    else:
        print("\n\n".join(describe(fact) for fact in facts) or "no images there")
    if options.picture:
        make_folder(options.picture.parent)
        contact_sheet(inspections).save(options.picture)
        print(f"picture   {options.picture}", file=sys.stderr)
    return int(any(fact["refused"] for fact in facts))
