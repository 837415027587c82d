"""The bundle that comes with clnet: where it is, and a copy to train and change."""

import re
import shutil
from pathlib import Path

from clnet.errors import ClnetError

PHANTOM, PHANTOM_NOTICE = "phantom", "Phantom model, not for patients"
NOT_COPIED = shutil.ignore_patterns("__pycache__", "*.ts", "*.onnx")


class BundleError(ClnetError):
    """A bundle or a run that is missing or cannot be used."""


def bundle_folder() -> Path:
    """The shipped bundle: inside the installed package, or at the top of the checkout."""
    package = Path(__file__).parent.parent
    installed = package / "bundle"
    return installed if installed.is_dir() else package.parent / "bundle"


def copy_bundle(folder: str | Path, model: str = "film") -> None:
    """Copy the shipped bundle, its configs, models and docs, to a new or empty folder.

    Args:
        folder: to copy to.
        model: which of its models, "film" or "phantom", becomes the copy's own.
    """
    folder = Path(folder)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise BundleError(f"{folder}: not an empty folder; give a new one with --copy")
    shutil.copytree(bundle_folder(), folder, ignore=NOT_COPIED, dirs_exist_ok=True)
    if model == PHANTOM:
        shutil.copy(folder / "models" / "phantom.pt", folder / "models" / "model.pt")
        _replace(folder / "configs" / "inference.yaml", r"^trained_by: \[\w+\]", "trained_by: null")
        _replace(folder / "configs" / "metadata.json", r'(?<="intended_use": ")[^"]*', f"{PHANTOM_NOTICE}.")


def _replace(file: Path, pattern: str, words: str) -> None:
    text, count = re.subn(pattern, words, file.read_text(encoding="utf-8"), flags=re.MULTILINE)
    if count != 1:
        raise BundleError(f"{file}: {pattern} occurs {count} times; expected once")
    file.write_text(text, encoding="utf-8")
