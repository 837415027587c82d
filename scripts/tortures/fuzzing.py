"""Coverage-guided fuzzing of the readers of bytes that are not those of a library; see fuzz_target.py."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

from tortures.outcome import Outcome
from tortures.readers import BYTE_READERS

HERE = Path(__file__).parent
LONGEST_INPUT, HANGS_SECONDS, MOST_MB = 8192, 600, 2048


def fuzz(folder: Path, seconds: int, seed: int, outcome: Outcome) -> None:
    """Fuzz every reader for so many seconds, from the small corpus beside this file."""
    for name in BYTE_READERS:
        corpus = folder / name
        shutil.copytree(HERE / "corpus" / name, corpus)
        words = [
            *(sys.executable, HERE / "fuzz_target.py", name, corpus),
            *(f"-max_total_time={seconds}", f"-timeout={HANGS_SECONDS}", f"-rss_limit_mb={MOST_MB}"),
            *(f"-max_len={LONGEST_INPUT}", f"-seed={seed}", "-print_final_stats=1"),
            f"-artifact_prefix={folder}/{name}-",
        ]
        done = subprocess.run(list(map(str, words)), capture_output=True, text=True, check=False)
        stats = dict(re.findall(r"stat::(\w+): +(\d+)", done.stderr))
        if "number_of_executed_units" not in stats:
            raise RuntimeError(f"fuzzing of {name} ended with {done.returncode}:\n{done.stderr[-4000:]}")
        inputs = int(stats["number_of_executed_units"])
        outcome.tried += inputs
        outcome.survived += inputs - bool(done.returncode)
        outcome.peak_mb = max(outcome.peak_mb, int(stats["peak_rss_mb"]))
        outcome.note(f"{name}, inputs", inputs)
        covered = re.findall(r"cov: (\d+) ft: (\d+)", done.stderr)
        outcome.note(f"{name}, edges covered", int(covered[-1][0]) if covered else 0)
        outcome.note(f"{name}, inputs that covered something new", len(list(corpus.iterdir())))
        if done.returncode:
            found = next(iter(folder.glob(f"{name}-*")), None)
            data = found.read_bytes()[:200] if found else b""
            error = re.search(r"=== Uncaught Python exception: ===\n(.*)", done.stdout + done.stderr)
            outcome.stuck += "timeout" in done.stderr
            outcome.fail(f"{name}: {error[1] if error else done.stderr[-300:]}; input {data!r}")
        outcome.keep()
