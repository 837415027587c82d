"""Cache what was computed for each file, so that a second run does not do the work again.

A result is valid for a file as it was: its path, size and modification time. If one of these changes, or the
function, its arguments or the version of clnet, the result is computed again.
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
from clnet.processes import end_with_parent

FILES_PER_WORKER = 50  # starting another process for fewer files takes longer than it saves


class FileCache:
    """Results by file, stored in a JSON file between runs.

    Args:
        file: where the results are stored; None to store nothing.
        workers: number of processes; by default one per processor, fewer for few files.
    """

    def __init__(self, file: Path | None = None, workers: int | None = None) -> None:
        self.file = file
        self.workers = workers
        self._results: dict[str, Any] = _read(file) if file else {}

    def map(
        self,
        function: Callable[..., Any],
        jobs: Iterable[Path] | Mapping[Path, Sequence[Any]],
        description: str,
        outputs: Mapping[Path, Path] | None = None,
    ) -> dict[Path, Any | ImageError]:
        """Call a function for each file, in several processes, with a progress bar.

        Args:
            function: a module-level function that returns what JSON can hold. If it raises an `ImageError`,
                that is the result; it is not cached, since the user may repair the file.
            jobs: the files, or for each file the further arguments of `function`.
            description: of the progress bar.
            outputs: the file that `function` writes for each file; if it is missing, the call is repeated.
        """
        arguments = dict(jobs) if isinstance(jobs, Mapping) else dict.fromkeys(jobs, ())
        outputs = outputs or {}
        keys = {file: _key(function, file, further) for file, further in arguments.items()}
        results: dict[Path, Any] = {
            file: self._results[key]
            for file, key in keys.items()
            if key in self._results and (file not in outputs or outputs[file].is_file())
        }
        missing = [file for file in keys if file not in results]
        try:
            with tqdm(
                total=len(keys), initial=len(results), desc=description, unit="file", disable=None
            ) as bar:
                for file, result in zip(missing, self._call(function, missing, arguments), strict=True):
                    results[file] = result
                    bar.update()
        finally:  # also when the user interrupts it
            done = {keys[file]: results[file] for file in missing if file in results}
            self._store({key: result for key, result in done.items() if not isinstance(result, ImageError)})
        return {file: results[file] for file in keys}

    def _call(
        self, function: Callable[..., Any], files: Sequence[Path], arguments: Mapping[Path, Sequence[Any]]
    ) -> Iterator[Any]:
        workers = self.workers or min(os.cpu_count() or 1, 1 + len(files) // FILES_PER_WORKER)
        call = partial(_result_or_image_error, function)
        further = [arguments[file] for file in files]
        if workers == 1:
            yield from map(call, files, further)
            return
        with ProcessPoolExecutor(workers, get_context("spawn"), end_with_parent) as pool:
            yield from pool.map(call, files, further, chunksize=5)

    def _store(self, results: Mapping[str, Any]) -> None:
        if not results:
            return
        self._results.update(results)
        if self.file:
            write_text(self.file, json.dumps(self._results, sort_keys=True))


def _result_or_image_error(function: Callable[..., Any], file: Path, further: Sequence[Any]) -> Any:
    try:
        return function(file, *further)
    except ImageError as error:
        return error


def _key(function: Callable[..., Any], file: Path, further: Sequence[Any]) -> str:
    """A digest, so that the cache holds no path of a patient's folder."""
    try:
        status = file.stat()
        state = f"{status.st_size}|{status.st_mtime_ns}"
    except OSError:
        state = "missing"
    name = f"{function.__module__}.{function.__qualname__}"
    return hashlib.sha256(f"{__version__}|{name}|{file.absolute()}|{state}|{further!r}".encode()).hexdigest()[
        :32
    ]


def _read(file: Path) -> dict[str, Any]:
    """The stored results; none if the file cannot be read."""
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}
