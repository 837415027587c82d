"""Files and folders that are whole or not there, whenever a process is killed and whenever a disk is full."""

import errno
import hashlib
import os
import shutil
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from clnet.errors import ClnetError

UNFINISHED = ".unfinished"
LOCK = ".lock"
CANNOT_WRITE = 3
"""The exit status of a process that ends with a `WriteError`."""

FULL = "the disk is full. Free some space and start again; what was complete is kept"
NOT_ALLOWED = "may not be written. Change its permissions, or give another folder"
IN_THE_WAY = "there is a file where a folder is expected. Give another folder"
SECONDS_TO_WAIT = 3.0  # workers of a writer that was killed hold its lock a moment longer
REASONS = {
    errno.ENOSPC: FULL,
    errno.EDQUOT: FULL,
    errno.EFBIG: FULL,
    errno.EROFS: NOT_ALLOWED,
    errno.EACCES: NOT_ALLOWED,
    errno.EPERM: NOT_ALLOWED,
    errno.ENOTDIR: IN_THE_WAY,
    errno.EEXIST: IN_THE_WAY,
    errno.EISDIR: "there is a folder where a file is expected. Give another folder",
    errno.EIO: "the disk does not work. Give a folder on another one",
}


class WriteError(ClnetError):
    """What was to be written cannot be; the message says where, why and what to do."""


def system_words(error: OSError | WriteError) -> str:
    """Why something could not be written, in the system's words, which name no path."""
    cause = error.__cause__ if isinstance(error, WriteError) else error
    return str(getattr(cause, "strerror", None) or type(cause).__name__)


class BusyError(ClnetError):
    """Another process is writing to a folder."""


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
    unfinished = path.with_name(f"{path.name}.{uuid.uuid4().hex[:12]}{UNFINISHED}")
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            yield unfinished
            sync(unfinished)  # else a crash of the machine may leave the name without the content
            unfinished.replace(path)
            sync(path.parent)
        except BaseException:
            with suppress(OSError):
                unfinished.unlink(missing_ok=True)
            raise


def write_bytes(path: str | Path, data: bytes) -> None:
    """Write bytes, whole or not at all."""
    with whole_file(path) as unfinished:
        unfinished.write_bytes(data)


def write_text(path: str | Path, text: str) -> None:
    """Write text as UTF-8, whole or not at all.

    The name of a file that is not UTF-8 holds lone surrogates; they are written as JSON writes them.
    """
    write_bytes(path, text.encode(errors="backslashreplace"))


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
    with writing(path):
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(parents=True)
        yield unfinished
        for part in (*unfinished.rglob("*"), unfinished):
            sync(part)
        shutil.rmtree(path, ignore_errors=True)
        unfinished.rename(path)
        sync(path.parent)


def make_folder(path: Path) -> None:
    """Create a folder, and those on the way to it, unless it is there."""
    with writing(path):
        path.mkdir(parents=True, exist_ok=True)


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Around the writing of a file or folder: if it cannot be written, a `WriteError` says why."""
    try:
        yield
    except (OSError, RuntimeError) as error:
        cause = _system_error(error)
        reason = None if cause is None else REASONS.get(cause.errno or 0)
        if cause is None or reason is None or not _concerns(cause, path):
            raise
        raise WriteError(f"{path}: {reason}") from cause


def _system_error(error: BaseException | None) -> OSError | None:
    """What the system said: torch.save makes a RuntimeError of it, pydicom an OSError without its number."""
    while error is not None and not (isinstance(error, OSError) and error.errno):
        error = error.__cause__ or error.__context__
    return error


def _concerns(error: OSError, path: Path) -> bool:
    """Whether an error is about what is written, not about what was read meanwhile."""
    if not isinstance(error.filename, str | os.PathLike):
        return True
    named = Path(error.filename).absolute()
    return path.absolute().is_relative_to(named) or named.is_relative_to(path.absolute().parent)


@contextmanager
def in_turn(lock: Path) -> Iterator[None]:
    """One process at a time: wait until no other is between the same lines with the same file as its lock."""
    make_folder(lock.parent)
    with FileLock(lock):
        yield


@contextmanager
def only_writer(folder: Path) -> Iterator[None]:
    """Create a folder and be the only process that writes to it, until the block ends or the process does."""
    make_folder(folder)
    with writing(folder):
        lock = FileLock(folder / LOCK)
        try:
            lock.acquire(timeout=SECONDS_TO_WAIT)
        except Timeout:
            raise BusyError(
                f"{folder}: another process is writing there. Wait until it has finished, or give another "
                "folder"
            ) from None
    try:
        yield
    finally:
        lock.release()


def digests(folder: Path) -> dict[str, str]:
    """The SHA-256 of each file of a folder, by name."""
    return {file.name: _digest(file) for file in sorted(folder.iterdir())}


def are_intact(folder: Path, expected: Mapping[str, str]) -> bool:
    """Whether a folder has files with these `digests`."""
    try:
        return all(_digest(folder / name) == digest for name, digest in expected.items())
    except OSError:
        return False


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def remove_file(path: Path) -> None:
    """Remove a file, if it is there, so that a crash of the machine does not bring it back."""
    if path.exists():
        path.unlink()
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
