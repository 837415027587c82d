"""Preprocessed pairs on disk, so that each is read, decoded and resized once, not in every run."""

import functools
import hashlib
import json
import pickle
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from monai.transforms.compose import Compose
from monai.transforms.transform import Transform

import clnet
from clnet.data.pair import VIEW_NAMES
from clnet.files import WriteError, whole_file

# What a preprocessed pair depends on beside the pair itself.
CODE = ("boxes.py", "data/*.py", "preprocessing/*.py")
MARKED = ("boxes", "lesion_ids")
# A truncated file, one of another kind, one that may not be read.
UNREADABLE = (OSError, EOFError, RuntimeError, pickle.UnpicklingError, KeyError, ValueError)


class CachePaird(Transform):
    """Does what deterministic transforms do, and keeps the results in a folder.

    A result is found by the path, size and time of change of the images, the marked boxes, the pixel sizes,
    the settings of the transforms and the code of this package: whatever changes one of them makes another
    result. So an image is read once, and only looked up after that. Files are whole or not there: any number
    of processes may share the folder, and any of it may be deleted at any time. It holds pixels, no names.

    Args:
        transform: `LoadPaird` and `PreprocessPaird`; the result holds tensors and plain values only.
        folder: made when it is needed.
    """

    def __init__(self, transform: Compose, folder: str | Path) -> None:
        self.transform = transform
        self.folder = Path(folder)
        self._settings = json.dumps([_describe(transform), torch.__version__, _code()], sort_keys=True)

    def __call__(self, data: Any) -> dict[str, Any]:
        """The item as the transforms make it."""
        path = self._path(data)
        try:
            item: dict[str, Any] = torch.load(path, weights_only=True)
            for view in VIEW_NAMES:
                if item[f"{view}_meta"]:
                    item[f"{view}_meta"]["file"] = data[view]
        except UNREADABLE:  # not there, most of the time
            item = self.transform(dict(data))
            self._keep(item, path)
        return {**item, "pair_id": data["pair_id"]}

    def _path(self, data: Mapping[str, Any]) -> Path:
        digest = hashlib.blake2b(self._settings.encode(), digest_size=20)
        digest.update(str(data["laterality"]).encode())
        for view in VIEW_NAMES:
            digest.update(f"\n{view}".encode())
            if data[view] is not None:
                digest.update(_version(Path(data[view])).encode())
                marked = [data[f"{view}_{key}"].tolist() for key in MARKED]
                digest.update(json.dumps([marked, data.get(f"{view}_pixel_size")]).encode())
        name = digest.hexdigest()
        return self.folder / name[:2] / f"{name[2:]}.pt"

    def _keep(self, item: Mapping[str, Any], path: Path) -> None:
        anonymous = {**item, "pair_id": ""}
        for view in VIEW_NAMES:
            if item[f"{view}_meta"]:
                anonymous[f"{view}_meta"] = {**item[f"{view}_meta"], "file": ""}
        try:
            with whole_file(path) as unfinished:
                torch.save(anonymous, unfinished)
        except (WriteError, OSError, RuntimeError) as error:  # such as a full disk: only time is lost
            warnings.warn(f"{self.folder}: preprocessed pairs cannot be kept there ({error})", stacklevel=2)


def _version(file: Path) -> str:
    """What changes with a file; one that cannot be read is left to the reader to refuse."""
    try:
        state = file.stat()
    except OSError:
        return "unreadable"
    return json.dumps([str(file.resolve()), state.st_size, state.st_mtime_ns])


def _describe(transform: Any) -> Any:
    """A transform with its settings, in a form that JSON can hold."""
    if isinstance(transform, Compose):
        return [_describe(part) for part in transform.transforms]
    settings = {name: repr(value) for name, value in vars(transform).items()}
    return [type(transform).__qualname__, settings]


@functools.cache
def _code() -> str:
    """A digest of the code that makes a preprocessed pair."""
    package = Path(clnet.__file__).parent
    digest = hashlib.blake2b()
    for pattern in CODE:
        for file in sorted(package.glob(pattern)):
            digest.update(file.read_bytes())
    return digest.hexdigest()
