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
        with unfinished.open("rb+") as file:
            os.fsync(file.fileno())  # else a crash of the machine may leave the name without the content
        unfinished.replace(path)
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
    shutil.rmtree(path, ignore_errors=True)
    unfinished.rename(path)


def remove_unfinished_folders(parent: Path) -> None:
    """Remove what `whole_folder` left in a folder when its process was killed."""
    for folder in parent.glob(f".*{UNFINISHED}"):
        shutil.rmtree(folder, ignore_errors=True)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder last: without this, a crash of the machine may undo a renaming."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
