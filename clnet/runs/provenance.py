"""What was run: settings, data, code, versions and command, without anything that is secret."""

import hashlib
import json
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

import clnet
from clnet.data.datalist import SECTIONS, DatalistError
from clnet.data.pair import VIEW_NAMES

PACKAGES = ("clnet", "torch", "monai", "pytorch-ignite", "numpy", "scipy", "pydicom", "mlflow")

_SECRET_NAME = re.compile(r"password|passwd|secret|token|credential|api_?key", re.IGNORECASE)
_LOGIN_IN_URL = re.compile(r"(?<=://)[^/@\s]+@")
_HIDDEN = "***"


def run_provenance(config: Mapping[str, Any], datalist: str | Path, seed: int | None) -> dict[str, Any]:
    """All that tells one run from another.

    Args:
        config: the settings as they are used.
        datalist: the file, or a folder with a ``datalist.json``.
        seed: of the random numbers.

    Returns:
        ``config``, ``seed``, ``data_fingerprint``, ``git_commit`` (None outside a checkout), ``versions`` by
        package, and ``command``.
    """
    return {
        "config": without_secrets(config),
        "seed": seed,
        "data_fingerprint": data_fingerprint(datalist),
        "git_commit": git_commit(),
        "versions": versions(),
        # The first word is the interpreter, whose folder is nobody's business.
        "command": [Path(sys.orig_argv[0]).name, *command_without_secrets(sys.orig_argv[1:])],
    }


def data_fingerprint(datalist: str | Path) -> str:
    """SHA-256 (hex) over a datalist, with the names and sizes of its image files.

    It is the same wherever the datalist and its images lie. Pixels are not read, so that it is quick.

    Args:
        datalist: the file, or a folder with a ``datalist.json``.
    """
    path = Path(datalist)
    if path.is_dir():
        path = path / "datalist.json"
    try:
        content = json.loads(path.read_bytes())
        pairs = [pair for section in SECTIONS for pair in content.get(section, ())]
        for view in (pair[name] for pair in pairs for name in VIEW_NAMES if pair.get(name)):
            image = path.parent / view["image"]
            view["image"] = [image.name, image.stat().st_size if image.exists() else "missing"]
    except (OSError, ValueError, AttributeError, KeyError, TypeError) as error:
        raise DatalistError(f"{path}: cannot be read as a datalist: {error!r}") from error
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def git_commit() -> str | None:
    """The commit of the checkout that this package lies in, with "-dirty" if files were changed since."""
    root, git = Path(clnet.__file__).parent.parent, shutil.which("git")
    if git is None or not (root / ".git").exists():
        return None
    # Excluding all tags leaves the hash itself.
    command = [git, "-C", str(root), "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)  # noqa: S603
    except (OSError, subprocess.SubprocessError):
        return None
    return answer.stdout.strip() or None


def versions() -> dict[str, str]:
    """Of Python and of those of `PACKAGES` that are installed."""
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found


def without_secrets(value: Any, name: str = "") -> Any:
    """The same settings, where texts under names such as "password" and logins in addresses are hidden.

    Args:
        value: nested mappings and lists of plain values; anything else becomes text.
        name: the key that the value stands under.
    """
    if isinstance(value, Mapping):
        return {str(key): without_secrets(item, str(key)) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [without_secrets(item, name) for item in value]
    if value is None or isinstance(value, (bool, int, float)):
        return value
    return _HIDDEN if _SECRET_NAME.search(name) else _LOGIN_IN_URL.sub(f"{_HIDDEN}@", str(value))


def command_without_secrets(arguments: list[str]) -> list[str]:
    """A command line that shows no x of ``--password x`` or ``--password=x``, and no logins in addresses."""
    shown: list[str] = []
    previous = ""
    for argument in arguments:
        name, equals, value = argument.partition("=")
        if argument.startswith("--") and equals:
            shown.append(f"{name}={without_secrets(value, name)}")
        else:
            of_option = previous if previous.startswith("--") and "=" not in previous else ""
            shown.append(without_secrets(argument, "" if argument.startswith("--") else of_option))
        previous = argument
    return shown
