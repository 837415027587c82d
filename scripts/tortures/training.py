"""A training killed at moments spread over its whole run, and resumed until it ends: the same, to the bit?"""

import math
import random
import shutil
from pathlib import Path
from typing import Any

import torch
from tortures.outcome import Outcome
from tortures.victim import FIRST, Victim, bundle, from_nothing, is_from_nothing

from clnet.phantom import PhantomSettings, make_phantom

ROOT = Path(__file__).parents[2]
RUN = "geometric-seed0"
PAIRS = 24
NEW_DATABASE = 10  # every so many trainings begin in a folder without MLflow's database
TINY = {
    "size": "[64, 48]",
    "batch_size": 2,
    "val_interval": 1,
    "warmup_iterations": 2,
    "width": 32,
    "network_def#detector#object_queries": 8,
    "network_def#detector#layers": 2,
    "max_epochs": 4,
    "average_momentum": 0.1,
}


def kills(folder: Path, number: int, seed: int, outcome: Outcome) -> None:
    """Kill so often, and compare the weights of each run that was resumed with those of one left alone."""
    chance = random.Random(f"{seed} {outcome.tried}")
    make_phantom(folder / "data", PhantomSettings(PAIRS, rows=96, columns=64), workers=1)
    start(folder, "first").alone()  # fills caches
    most = {False: start(folder, "whole").alone(), True: 0.0}
    if number > FIRST:
        most[True] = start(folder, "new", True).alone()
    whole, chains = weights(folder / "whole"), 0
    while outcome.tried < number:
        # Most find the MLflow database of those before, with its 200 broken runs.
        shutil.rmtree(folder / "killed" / (RUN if chains % NEW_DATABASE else ""), ignore_errors=True)
        chains += 1
        while True:
            is_new = is_from_nothing(outcome.tried)
            victim = start(folder, "killed", is_new)
            is_last = outcome.tried == number
            status = victim.wait(computed=math.inf if is_last else chance.uniform(0, most[is_new]))
            if status is not None:
                break
            outcome.note("kills of programs started from nothing", is_new)
            outcome.orphans += (orphans := victim.kill())
            outcome.tried += 1
            is_torn = not _loads(folder / "killed")
            outcome.torn += is_torn
            outcome.survived += not (orphans or is_torn)
            outcome.note(f"killed with {_epochs(folder / 'killed')} epochs done")
        outcome.peak_mb = max(outcome.peak_mb, victim.peak_mb)
        outcome.note("runs that ended by themselves")
        if status != 0:
            outcome.stuck += 1
            outcome.fail(f"after kill {outcome.tried}: exit status {status}: {victim.last_line()}")
        elif not _are_equal(weights(folder / "killed"), whole):
            outcome.lost += 1
            outcome.fail(f"after kill {outcome.tried}: other weights than those of an undisturbed run")
        outcome.keep()


def start(folder: Path, name: str, is_new: bool = False) -> Victim:
    """Start a training, or resume it if there is a checkpoint; `is_new`: from nothing."""
    options: dict[str, Any] = {**TINY, "dataset_dir": folder / "data", "output_dir": folder / name}
    if (folder / name / RUN / "last.pt").exists():
        options["resume"] = True
    else:  # a run that was killed before its first checkpoint begins anew, in a new folder
        shutil.rmtree(folder / name / RUN, ignore_errors=True)
    words = ["run", "training", "--config_file", str(ROOT / "bundle" / "configs" / "train.yaml")]
    for key, value in options.items():
        words += [f"--{key}", str(value)]

    def act() -> int:
        return from_nothing("-m", "monai.bundle", *words) if is_new else bundle(*words)

    return Victim(act, folder / "training.txt", ROOT)


def weights(output: Path) -> dict[str, Any]:
    """Both checkpoints of a run."""
    return {
        name: torch.load(output / RUN / name, weights_only=True, map_location="cpu")
        for name in ("last.pt", "model.pt")
    }


def _loads(output: Path) -> bool:
    """Whether every checkpoint that is there can be loaded."""
    try:
        for file in (output / RUN).glob("*.pt"):
            torch.load(file, weights_only=True)
    except Exception:  # whatever it says, the file is torn
        return False
    return True


def _epochs(output: Path) -> int:
    file = output / RUN / "last.pt"
    return torch.load(file, weights_only=True)["trainer"]["epoch"] if file.exists() else 0


def _are_equal(one: Any, other: Any) -> bool:
    if isinstance(one, torch.Tensor):
        return torch.equal(one, other)
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_are_equal(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(_are_equal, one, other))
    return bool(one == other)
