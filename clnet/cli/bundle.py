"""`clnet bundle`: the configs, models and docs that are shipped, to train and change."""

import argparse
from pathlib import Path


def add_bundle(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `clnet bundle`."""
    command = commands.add_parser(
        "bundle",
        help="copy the MONAI bundle (configs, models, docs) to a folder of your own",
        description="Print the folder of the MONAI bundle that comes with clnet, or copy the bundle.",
    )
    command.add_argument("--copy", type=Path, metavar="DIR", help="new or empty folder to copy it to")
    command.add_argument(
        "--model",
        choices=["film", "phantom"],
        default="film",
        help="which of its models becomes the copy's own (default: film)",
    )
    command.set_defaults(run=_bundle)


def _bundle(options: argparse.Namespace) -> None:
    from clnet.predict.shipped import bundle_folder, copy_bundle

    folder = bundle_folder()
    if options.copy:
        copy_bundle(options.copy, options.model)
        folder = options.copy
    print(f"bundle    {folder}")
    print(f"training  python -m monai.bundle run training --config_file {folder / 'configs' / 'train.yaml'}")
