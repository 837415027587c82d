"""Files that are whole or not there, whenever a process is killed and however many write the same one."""

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


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
    unfinished = path.with_name(f"{path.name}.{uuid.uuid4().hex[:12]}.unfinished")
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
