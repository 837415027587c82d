"""The bundle that comes with clnet: where it is, and a copy to train and change."""

import shutil
from pathlib import Path

from clnet.errors import ClnetError

NOT_COPIED = shutil.ignore_patterns("__pycache__", "*.ts", "*.onnx")


class BundleError(ClnetError):
    """A bundle or a run that is missing or cannot be used."""


def bundle_folder() -> Path:
    """The shipped bundle: inside the installed package, or at the top of the checkout."""
    package = Path(__file__).parent.parent
    installed = package / "bundle"
    return installed if installed.is_dir() else package.parent / "bundle"


def copy_bundle(folder: str | Path) -> None:
    """Copy the shipped bundle, its configs, models and docs, to a new or empty folder."""
    folder = Path(folder)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise BundleError(f"{folder}: not an empty folder; give a new one with --copy")
    shutil.copytree(bundle_folder(), folder, ignore=NOT_COPIED, dirs_exist_ok=True)
