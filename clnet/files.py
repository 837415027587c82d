"""Files and folders that are whole or not there, whenever a process is killed."""

import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

UNFINISHED = ".unfinished"


@contextmanager
def whole_file(path: str | Path) -> Iterator[Path]:
    """Write a file under an unfinished name; it gets its own name when the block ends without an error.

    Folders on the way to it are created. If the block raises, the unfinished file is removed, and a file
    that was there before stays as it was. The unfinished name is unique, so that several processes may write
    the same file: the last one wins.

    Args:
        path: the file's own name.

    Yields:
        The unfinished name, in the same folder.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f"{path.name}.{uuid.uuid4().hex[:12]}{UNFINISHED}")
    try:
        yield unfinished
        sync(unfinished)  # else a crash of the machine may leave the name without the content
        unfinished.replace(path)
        sync(path.parent)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise


def write_bytes(path: str | Path, data: bytes) -> None:
    """Write bytes, whole or not at all."""
    with whole_file(path) as unfinished:
        unfinished.write_bytes(data)


def write_text(path: str | Path, text: str) -> None:
    """Write text as UTF-8, whole or not at all."""
    write_bytes(path, text.encode())


@contextmanager
def whole_folder(path: Path) -> Iterator[Path]:
    """Fill a folder under a hidden name; it gets its own name when the block ends without an error.

    A folder that was there before is replaced. Only one process may write it.

    Args:
        path: the folder's own name.

    Yields:
        The hidden name, beside it; the folder is empty.
    """
    unfinished = path.with_name(f".{path.name}{UNFINISHED}")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    yield unfinished
    for part in (*unfinished.rglob("*"), unfinished):
        sync(part)
    shutil.rmtree(path, ignore_errors=True)
    unfinished.rename(path)
    sync(path.parent)


def remove_file(path: Path) -> None:
    """Remove a file, if it is there, so that a crash of the machine does not bring it back."""
    path.unlink(missing_ok=True)
    sync(path.parent)


def set_aside(path: Path) -> Path:
    """Rename a damaged file, so that nobody reads it and nothing is lost.

    Returns:
        Its new name, in the same folder.
    """
    aside = path.with_name(f"{path.name}.{uuid.uuid4().hex[:12]}.damaged")
    path.replace(aside)
    sync(path.parent)
    return aside


def sync(path: Path) -> None:
    """Wait until the content of a file, or the names in a folder, are on the disk."""
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def remove_unfinished_files(parent: Path) -> None:
    """Remove what `whole_file` left in a folder when its process was killed; nobody may be writing there."""
    for file in parent.glob(f"*{UNFINISHED}"):
        file.unlink(missing_ok=True)


def remove_unfinished_folders(parent: Path) -> None:
    """Remove what `whole_folder` left in a folder when its process was killed."""
    for folder in parent.glob(f".*{UNFINISHED}"):
        shutil.rmtree(folder, ignore_errors=True)
