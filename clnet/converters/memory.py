"""Work that was done is not done again: a second run reads what the first one found out about each file.

A result belongs to a file as it was: to its path, size and time of change. Another one of these, another
function, other arguments or another version of clnet, and the work is done anew.
"""

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from tqdm import tqdm

from clnet import __version__
from clnet.data.image_errors import ImageError
from clnet.files import write_text

FILES_PER_WORKER = 50  # fewer are done sooner than another process starts


class Memory:
    """What was found out about files, kept in a JSON file between runs.

    Args:
        file: where it is kept; None: not at all.
        workers: processes to work with; by default as many as there are processors, fewer for few files.
    """

    def __init__(self, file: Path | None = None, workers: int | None = None) -> None:
        self.file = file
        self.workers = workers
        self._known: dict[str, Any] = _read(file) if file else {}

    def map(
        self,
        work: Callable[..., Any],
        jobs: Iterable[Path] | Mapping[Path, Sequence[Any]],
        description: str,
        writes: Mapping[Path, Path] | None = None,
    ) -> dict[Path, Any | ImageError]:
        """Do some work on each file, in several processes, and show a bar.

        Args:
            work: a function of a module; gives what JSON can hold. If it refuses the file by an `ImageError`,
                that is the result, and is not remembered, for the user may mend what is missing.
            jobs: the files, or for each file the further arguments of `work`.
            description: of the bar.
            writes: the file that `work` writes for a file; if it is gone, the work is done anew.
        """
        arguments = dict(jobs) if isinstance(jobs, Mapping) else dict.fromkeys(jobs, ())
        writes = writes or {}
        keys = {file: _key(work, file, further) for file, further in arguments.items()}
        results: dict[Path, Any] = {
            file: self._known[key]
            for file, key in keys.items()
            if key in self._known and (file not in writes or writes[file].is_file())
        }
        missing = [file for file in keys if file not in results]
        try:
            with tqdm(
                total=len(keys), initial=len(results), desc=description, unit="file", disable=None
            ) as bar:
                for file, result in zip(missing, self._do(work, missing, arguments), strict=True):
                    results[file] = result
                    bar.update()
        finally:  # what is done is done, even if the user stops it here
            done = {keys[file]: results[file] for file in missing if file in results}
            self._remember(
                {key: result for key, result in done.items() if not isinstance(result, ImageError)}
            )
        return {file: results[file] for file in keys}

    def _do(
        self, work: Callable[..., Any], files: Sequence[Path], arguments: Mapping[Path, Sequence[Any]]
    ) -> Iterator[Any]:
        workers = self.workers or min(os.cpu_count() or 1, 1 + len(files) // FILES_PER_WORKER)
        attempt = partial(_result_or_refusal, work)
        further = [arguments[file] for file in files]
        if workers == 1:
            yield from map(attempt, files, further)
            return
        with ProcessPoolExecutor(workers, get_context("spawn")) as pool:
            yield from pool.map(attempt, files, further, chunksize=5)

    def _remember(self, results: Mapping[str, Any]) -> None:
        if not results:
            return
        self._known.update(results)
        if self.file:
            write_text(self.file, json.dumps(self._known, sort_keys=True))


def _result_or_refusal(work: Callable[..., Any], file: Path, further: Sequence[Any]) -> Any:
    try:
        return work(file, *further)
    except ImageError as error:
        return error


def _key(work: Callable[..., Any], file: Path, further: Sequence[Any]) -> str:
    """A digest, so that no path of a patient's folder stands in the memory."""
    try:
        status = file.stat()
        state = f"{status.st_size}|{status.st_mtime_ns}"
    except OSError:
        state = "missing"
    words = f"{__version__}|{work.__module__}.{work.__qualname__}|{file.absolute()}|{state}|{further!r}"
    return hashlib.sha256(words.encode()).hexdigest()[:32]


def _read(file: Path) -> dict[str, Any]:
    """What is remembered; a memory that cannot be read is no memory."""
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}
