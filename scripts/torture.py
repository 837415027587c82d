"""What a power cut, a full disk and an attacker would find: hurts the programs and counts what is lost."""

import argparse
import importlib
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any

from machine import machine
from tortures.outcome import Outcome
from tortures.page import page_of

ROOT = Path(__file__).parent.parent
VERSIONS = (
    "clnet",
    "torch",
    "monai",
    "pydicom",
    "numpy",
    "pillow",
    "pylibjpeg-libjpeg",
    "pylibjpeg-openjpeg",
)
Act = Callable[[Path, int, int, Outcome], None]


@dataclass(frozen=True)
class Part:
    """One torture.

    Attributes:
        module, function: of `tortures` that does it; imported when it is its turn.
        short, usual, full: how much: kills, inputs, or seconds for each reader or server.
        needs: a file without which it cannot be done, and how to get it.
        resumes: whether it can add to what was done before.
    """

    module: str
    function: str
    short: int
    usual: int
    full: int
    needs: tuple[str, str] = ("", "")
    resumes: bool = True

    def act(self, folder: Path, amount: int, seed: int, outcome: Outcome) -> None:
        """Do it, until so much has been tried."""
        function: Act = getattr(importlib.import_module(f"tortures.{self.module}"), self.function)
        function(folder, amount, seed, outcome)

    def missing(self) -> str:
        """What is not there and how to get it; "" if it can be done."""
        file, advice = self.needs
        return "" if not file or shutil.which(file) or (ROOT / file).exists() else f"{file}: {advice}"


LABEL_VENV = (".venv-label/.installed", "./scripts/setup_label makes it")
DCMTK = ("storescu", "./scripts/apt storescu=dcmtk installs it")
UNSHARE = ("unshare", "it is part of Linux")
PARTS = {
    "predict": Part("predict", "kills", 2, 20, 200),
    "training": Part("training", "kills", 2, 20, 200),
    "label": Part("saves", "kills", 10, 200, 200, LABEL_VENV, resumes=False),
    "serve": Part("serve", "kills", 0, 20, 200, DCMTK),
    "full_disk": Part("disks", "full", 0, 6, 40, UNSHARE),
    "vanishing": Part("disks", "vanish", 1, 20, 200),
    "inputs": Part("inputs", "mutants", 400, 5000, 50_000),
    "fuzzing": Part("fuzzing", "fuzz", 3, 60, 900, resumes=False),
    "serve_http": Part("web", "serve", 0, 60, 900, resumes=False),
    "label_http": Part("web", "label", 0, 60, 900, LABEL_VENV, resumes=False),
}


def options_of(words: Sequence[str]) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog="./scripts/torture", description=__doc__)
    parser.add_argument("--only", action="append", choices=PARTS, help="a part; may be given several times")
    amount = parser.add_mutually_exclusive_group()
    amount.add_argument("--short", action="store_true", help="a little of each part, in about a minute")
    amount.add_argument("--full", action="store_true", help="200 kills, 50,000 inputs, 15 minutes per reader")
    amount.add_argument("--amount", type=int, metavar="N", help="kills, inputs, or seconds, of each part")
    parser.add_argument("--seed", type=int, default=0, help="of the kill points and the damage (0)")
    parser.add_argument("--docs", type=Path, default=ROOT / "docs", help="where the page is written (docs)")
    parser.add_argument("--resume", action="store_true", help="add to the kept figures of these versions")
    parser.add_argument("--page", action="store_true", help="only write the page, from the kept figures")
    return parser.parse_args(words)


def main(words: Sequence[str]) -> int:
    """Do all parts or those asked for; the exit status is 1 if anything was lost, torn, left or stuck."""
    options = options_of(words)
    file = options.docs / "reliability.json"
    options.docs.mkdir(parents=True, exist_ok=True)
    result: dict[str, Any] = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    is_good = True
    for name in () if options.page else options.only or PARTS:
        part = PARTS[name]
        amount = options.amount or (
            part.short if options.short else part.full if options.full else part.usual
        )
        if not amount or part.missing():
            print(f"{name:<12}left out{': ' + part.missing() if amount else ''}", flush=True)
            continue
        outcome = Outcome()
        kept = dict(result.get(name, {}))
        if options.resume and part.resumes and _are_alike(kept.pop("about", {}), about(options.seed)):
            outcome = Outcome(**kept)
        began = time.monotonic() - outcome.seconds

        def save(outcome: Outcome, name: str = name, began: float = began) -> None:
            outcome.seconds = time.monotonic() - began
            result[name] = {"about": about(options.seed), **outcome.to_json()}
            file.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")

        outcome.save = save
        with tempfile.TemporaryDirectory(prefix=f"torture_{name}_") as folder:
            part.act(Path(folder), amount, options.seed, outcome)
        outcome.keep()
        is_good &= outcome.is_good
        print(
            f"{name:<12}tried {outcome.tried}, survived {outcome.survived}, lost {outcome.lost}, torn "
            f"{outcome.torn}, orphans {outcome.orphans}, stuck {outcome.stuck}, {outcome.seconds:.0f} s, at "
            f"most {outcome.peak_mb} MB",
            *(f"    {failure}" for failure in outcome.failures),
            sep="\n",
            flush=True,
        )
    (options.docs / "reliability.md").write_text(page_of(result), encoding="utf-8")
    print(f"written to {file} and reliability.md beside it")
    return int(not is_good)


def about(seed: int) -> dict[str, Any]:
    """Where and when a part was done."""
    return {
        "machine": machine(),
        "versions": {name: version(name) for name in VERSIONS},
        "date": date.today().isoformat(),
        "seed": seed,
    }


def _are_alike(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether two parts were done with the same versions and seed, if on other days."""
    return all(one.get(key) == other[key] for key in ("machine", "versions", "seed"))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
