"""`clnet predict` onto disks that are too small, and with inputs that vanish while it runs."""

import json
import math
import random
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from tortures.outcome import Outcome
from tortures.predict import BREASTS, MODEL, contents, start, undisturbed

from clnet.files import CANNOT_WRITE

# A file system in memory, seen by these commands alone: the run, more room, the run again.
SCRIPT = """
mount -t tmpfs -o size="$1"k tmpfs "$2" || exit 99
shift; disk="$1"; kept="$2"; shift 2
"$@" --output "$disk/output" && echo status 0 || echo status $?
mount -o remount,size=64m "$disk"
"$@" --output "$disk/output" && echo status 0 || echo status $?
cp -r "$disk/output" "$kept"
"""


def full(folder: Path, number: int, seed: int, outcome: Outcome) -> None:
    """As many disks, from one that holds nothing to one that nearly holds all; then there is room again."""
    del seed  # the sizes are spread evenly
    whole = undisturbed(folder, outcome)[0]
    kilobytes = sum(file.stat().st_size for file in (folder / "whole").rglob("*") if file.is_file()) // 1024
    (folder / "disk").mkdir()
    command = [sys.executable, "-m", "clnet.cli", "predict", folder / "phantom" / "images", *MODEL]
    for index in range(outcome.tried, number):
        kept, size = folder / f"kept{index}", 8 + kilobytes * index // number
        words = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", SCRIPT, "sh", size]
        words += [folder / "disk", kept, *command]
        said = subprocess.run(list(map(str, words)), capture_output=True, text=True, check=False)
        if said.returncode == 99:
            raise RuntimeError(f"no file system in memory can be mounted here: {said.stderr}")
        statuses = [line.split()[1] for line in said.stdout.splitlines() if line.startswith("status ")]
        is_told = "the disk is full" in said.stderr and "Traceback" not in said.stderr
        now = contents(kept)
        lost = sum(now.get(name) != data for name, data in whole.items())
        outcome.tried += 1
        outcome.lost += lost
        outcome.note(f"exit status {statuses[0]} of the first run")
        if statuses[0] == str(CANNOT_WRITE) and not is_told:
            outcome.fail(f"{size} kB: {said.stderr[-300:]}")
        if statuses[0] not in ("0", str(CANNOT_WRITE)) or statuses[1] != "0":
            outcome.stuck += 1
            outcome.fail(f"{size} kB: exit statuses {' and '.join(statuses)}: {said.stderr[-300:]}")
        outcome.survived = outcome.tried - outcome.stuck
        outcome.keep()


def vanish(folder: Path, number: int, seed: int, outcome: Outcome) -> None:
    """As many runs, in each of which an image is removed at a random moment.

    The findings in the other breasts must be there; in other batches their numbers are rounded differently.
    """
    chance = random.Random(f"{seed} {outcome.tried}")
    whole, _, seconds = undisturbed(folder, outcome)
    breasts = {
        name: json.loads(data) for name, data in whole.items() if name.match("breasts/*/findings.json")
    }
    images = folder / "phantom" / "images"
    shutil.copytree(images, folder / "all")
    while outcome.tried < number:
        shutil.rmtree(folder / "output", ignore_errors=True)
        victim = start(folder, folder / "output")
        status = victim.wait(computed=chance.uniform(0, seconds))
        gone = chance.choice(sorted(images.iterdir()))
        gone.unlink()
        status = victim.wait() if status is None else status
        shutil.copy(folder / "all" / gone.name, gone)
        now = contents(folder / "output")
        same = sum(_are_alike(json.loads(now.get(name, b"null")), data) for name, data in breasts.items())
        outcome.tried += 1
        outcome.peak_mb = max(outcome.peak_mb, victim.peak_mb)
        outcome.orphans += victim.orphans()
        outcome.note(f"exit status {status}")
        outcome.note("images that were missed", BREASTS - same)
        if status not in (0, 1):
            outcome.stuck += 1
            outcome.fail(f"without {gone.name}: exit status {status}")
        if same < BREASTS - 1:
            outcome.lost += BREASTS - 1 - same
            outcome.fail(f"without {gone.name}: {same} breasts as before")
        outcome.survived += status in (0, 1) and same >= BREASTS - 1
        outcome.keep()


def _are_alike(one: Any, other: Any) -> bool:
    """Whether two JSON values are the same but for rounding."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_are_alike(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_are_alike, one, other))
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-3, abs_tol=1e-3)
    return bool(one == other)
