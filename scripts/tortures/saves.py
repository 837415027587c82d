"""Processes that are killed while they save a label, by label_saves.py in the Label app's venv."""

import json
import subprocess
from pathlib import Path

from tortures.outcome import Outcome

from clnet.phantom import PhantomSettings, make_phantom

ROOT = Path(__file__).parents[2]
PYTHON = ROOT / ".venv-label" / "bin" / "python"


def kills(folder: Path, number: int, seed: int, outcome: Outcome) -> None:
    """Kill so often, at points spread over the calls of a save; then let several save one pair at once."""
    del seed  # the points are spread evenly
    make_phantom(folder / "phantom", PhantomSettings(2), workers=1)
    found = _say("kills", folder / "phantom" / "images", number)
    outcome.tried = number
    outcome.survived = found["old"] + found["newer"]
    outcome.torn = found.get("mixed", 0)
    outcome.lost = found.get("none", 0)
    outcome.stuck = number - found["saved afterwards"]
    outcome.peak_mb = found["peak MB"]
    outcome.notes = {"the old label was there": found["old"], "the new one was": found["newer"]}
    outcome.notes["killed before the save had ended"] = found["killed"]
    if found["left over"]:
        outcome.fail(f"{found['left over']} unfinished files were left over")
    together = _say("together", folder / "phantom" / "images", max(number // 10, 1))
    outcome.torn += together["mixed"]
    outcome.notes["labels saved at once and read back whole"] = together["whole"]
    outcome.keep()


def _say(way: str, studies: Path, number: int) -> dict[str, int]:
    words = [PYTHON, "-W", "ignore", ROOT / "scripts" / "label_saves.py", way, studies, number]
    said = subprocess.run(list(map(str, words)), capture_output=True, text=True, check=False)
    if said.returncode:
        raise RuntimeError(f"label_saves.py {way}:\n{said.stderr[-4000:]}")
    found: dict[str, int] = json.loads(said.stdout.splitlines()[-1])
    return found
