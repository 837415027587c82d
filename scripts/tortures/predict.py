"""`clnet predict` killed at moments spread over its whole run, and started again until it ends by itself."""

import random
import shutil
from pathlib import Path

from tortures.outcome import Outcome
from tortures.victim import FIRST, Victim, command, from_nothing, is_from_nothing

from clnet.phantom import PhantomSettings, make_phantom

BREASTS = 8
MODEL = ("--model", "phantom", "--batch-size", "2")
# Of a run, these follow from the input alone; the reports also hold the time.
EXACT = ("breasts/*/*", "findings.json", "coco.json")


def kills(folder: Path, number: int, seed: int, outcome: Outcome) -> None:
    """Kill so often, and compare every published file with that of a run that was left alone."""
    chance = random.Random(f"{seed} {outcome.tried}")
    whole, names, seconds = undisturbed(folder, outcome)
    most = {False: seconds, True: start(folder, folder / "new", True).alone() if number > FIRST else 0}
    while outcome.tried < number:
        output = folder / "killed"
        shutil.rmtree(output, ignore_errors=True)
        published: set[Path] = set()
        while True:
            is_new = is_from_nothing(outcome.tried)
            victim = start(folder, output, is_new)
            status = victim.wait(computed=chance.uniform(0, most[is_new]))
            if status is not None:
                break
            outcome.note("kills of programs started from nothing", is_new)
            outcome.orphans += (orphans := victim.kill())
            outcome.tried += 1
            found = contents(output)
            wrong = [name for name, data in found.items() if whole.get(name) != data]
            outcome.torn += len(wrong)
            lost = published - found.keys()
            outcome.lost += len(lost)
            published = set(found)
            outcome.survived += not (orphans or wrong or lost)
            outcome.note(f"killed with {_share_done(found)} of the breasts done")
            if wrong or lost:
                outcome.fail(f"after kill {outcome.tried}: torn {wrong}, lost {lost}")
            if outcome.tried == number:
                status = (victim := start(folder, output)).wait()
                break
        outcome.peak_mb = max(outcome.peak_mb, victim.peak_mb)
        if status != 0:
            outcome.stuck += 1
            outcome.fail(f"after kill {outcome.tried}: exit status {status}: {victim.last_line()}")
        now = contents(output)
        outcome.lost += sum(now.get(name) != data for name, data in whole.items())
        outcome.lost += len(names - names_in(output))
        left = [path.name for path in output.rglob("*.unfinished")]
        if left or now.keys() - whole.keys():
            outcome.fail(f"after kill {outcome.tried}: left over {left}")
        outcome.note("runs that ended by themselves")
        outcome.keep()


def start(folder: Path, output: Path, is_new: bool = False) -> Victim:
    """Start `clnet predict` on the phantom; `is_new`: from nothing."""
    words = ["predict", folder / "phantom" / "images", "--output", output, *MODEL]

    def act() -> int:
        return from_nothing("-m", "clnet.cli", *words) if is_new else command(*words)

    return Victim(act, folder / "predict.txt", folder)


def contents(output: Path) -> dict[Path, bytes]:
    """What must be the same whenever it is there; what is still hidden does not count."""
    files = [file for pattern in EXACT for file in output.glob(pattern) if file.is_file()]
    return {
        file.relative_to(output): file.read_bytes() for file in files if not file.parent.name.startswith(".")
    }


def names_in(output: Path) -> set[Path]:
    """The names of all files."""
    return {file.relative_to(output) for file in output.rglob("*") if file.is_file()}


def undisturbed(folder: Path, outcome: Outcome) -> tuple[dict[Path, bytes], set[Path], float]:
    """Make a phantom; the files, their names and the seconds computed by a run on it that is left alone."""
    make_phantom(folder / "phantom", PhantomSettings(BREASTS, rows=160, columns=112), workers=1)
    for name in ("first", "whole"):  # the first fills caches
        seconds = (victim := start(folder, folder / name)).alone()
    outcome.peak_mb = max(outcome.peak_mb, victim.peak_mb)
    return contents(folder / "whole"), names_in(folder / "whole"), seconds


def _share_done(found: dict[Path, bytes]) -> str:
    done = len({name.parent for name in found if len(name.parts) == 3})
    return "none" if not done else "all" if done == BREASTS else "some"
