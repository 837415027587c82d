"""Saves labels in the Label app's venv, in ways that requests to a server could not.

    python label_saves.py kills STUDIES N     a process that saves a label is killed, N times
    python label_saves.py together STUDIES N  threads of two processes save N labels each for one pair

Prints what was found then, as JSON.
"""

import json
import os
import resource
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from killing import calls_of, kill_after

from clnet.apps.label.datastore import StudyFolder
from clnet.apps.label.labels import label_of, save_pair_label
from clnet.apps.label.pairs import ImagePair, find_image_pairs

WRITERS = 8


def label(lesion: str) -> dict[str, Any]:
    """A label of both views, with boxes that only this lesion has."""
    boxes = [[index, index + 1, index + 3, index + 5] for index in range(len(lesion) * 3)]
    ids = [f"{lesion}{index}" for index in range(len(boxes))]
    return {view: {"boxes": boxes, "lesion_ids": ids} for view in ("cc", "mlo")}


def open_pair(studies: str | Path) -> tuple[StudyFolder, ImagePair]:
    """The datastore and its first pair."""
    datastore = StudyFolder(studies, ["*.dcm"])
    return datastore, next(iter(find_image_pairs(datastore)))


def name_of(found: dict[str, Any] | None) -> str:
    """Which label this is; "mixed" if its views differ."""
    if found is None:
        return "none"
    names = {json.dumps(part) for part in found.values()}
    return found["cc"]["lesion_ids"][0][:-1] if len(names) == 1 else "mixed"


def save_newer(studies: str | Path) -> None:
    """Open the datastore and save a label."""
    datastore, pair = open_pair(studies)
    save_pair_label(datastore, pair, label("newer"), {})


def kills(studies: Path, number: int) -> Counter[str]:
    """What stands in the datastore after kills spread over the whole of a save."""
    datastore, pair = open_pair(studies)
    save_pair_label(datastore, pair, label("old"), {})
    with copy_of(studies) as trial:
        first = calls_of(lambda: open_pair(trial))
    with copy_of(studies) as trial:
        last = calls_of(lambda: save_newer(trial))
    found: Counter[str] = Counter()
    for kill in range(number):
        with copy_of(studies) as trial:
            calls = first + (last - first) * kill // number
            found["killed"] += kill_after(calls, partial(save_newer, trial))
            try:
                datastore, pair = open_pair(trial)
                found[name_of(label_of(datastore, pair))] += 1
                save_pair_label(datastore, pair, label("last"), {})
                found["saved afterwards"] += name_of(label_of(datastore, pair)) == "last"
            except Exception as error:  # what must not happen
                found[f"does not start: {type(error).__name__}"] += 1
            found["left over"] += len(list(trial.rglob("*.unfinished")))
    most = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    found["peak MB"] = most // 1024
    return found


@contextmanager
def copy_of(studies: Path) -> Iterator[Path]:
    """A copy, in memory if that can be, as nothing here needs a disk."""
    memory = Path("/dev/shm")  # noqa: S108
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as trial:
        yield Path(shutil.copytree(studies, trial, dirs_exist_ok=True))


def together(studies: Path, number: int) -> Counter[str]:
    """What readers find while threads of two processes save labels of one pair."""
    datastore, pair = open_pair(studies)
    save_pair_label(datastore, pair, label("first"), {})
    found: Counter[str] = Counter()

    def write(writer: int) -> list[str]:
        names = []
        for turn in range(number):
            save_pair_label(datastore, pair, label(f"w{writer}n{turn}n"), {})
            names.append("mixed" if name_of(label_of(datastore, pair)) == "mixed" else "whole")
        return names

    def write_all() -> None:
        with ThreadPoolExecutor(WRITERS) as pool:
            for names in pool.map(write, range(WRITERS)):
                found.update(names)

    child = os.fork()
    if child == 0:
        datastore, pair = open_pair(studies)
        write_all()
        os._exit(found["mixed"] > 0)
    write_all()
    found["mixed"] += os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return found


if __name__ == "__main__":
    way, folder, times = sys.argv[1:]
    said = {"kills": kills, "together": together}[way](Path(folder), int(times))
    sys.stdout.write(json.dumps(said) + "\n")
