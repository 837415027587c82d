"""The torture harness: a little of it runs, it counts what it must, and its page is that of its figures."""

import copy
import json
import os
import random
import signal
import subprocess
import sys
import time

import pytest
import torture
from page_commands import ROOT
from tortures import mutations
from tortures.orphans import orphans_of
from tortures.page import page_of
from tortures.readers import verdict

from clnet.errors import ClnetError


@pytest.mark.slow
def test_a_little_torture_loses_nothing(tmp_path):
    parts = ("predict", "training", "vanishing", "inputs", "fuzzing")
    words = [word for part in parts for word in ("--only", part)]
    done = subprocess.run(
        [ROOT / "scripts" / "torture", "--short", *words, "--docs", tmp_path],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr[-4000:]
    result = json.loads((tmp_path / "reliability.json").read_text())
    for name in parts:
        part = result[name]
        assert part["tried"] == part["survived"] >= torture.PARTS[name].short
        assert not (part["lost"] or part["torn"] or part["orphans"] or part["stuck"] or part["failures"])
    assert (tmp_path / "reliability.md").read_text() == page_of(result)


def test_the_page_is_that_of_the_figures_beside_it():
    result = json.loads((ROOT / "docs" / "reliability.json").read_text(encoding="utf-8"))
    assert (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8") == page_of(result)


def test_a_process_that_outlives_its_parent_is_found_and_ended():
    parent = "import subprocess; print(subprocess.Popen(['sleep', '60']).pid, flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", parent], stdout=subprocess.PIPE, stdin=subprocess.PIPE, start_new_session=True
    ) as process:
        child = int(process.stdout.readline())
        process.kill()
    assert orphans_of(process.pid, seconds=0.1) == 1
    deadline = time.monotonic() + 10
    with pytest.raises(ProcessLookupError):
        while time.monotonic() < deadline:
            os.kill(child, signal.SIGCONT)
            time.sleep(0.05)
    assert orphans_of(process.pid, seconds=0.1) == 0


def test_mutants_follow_from_their_numbers_and_differ():
    data = bytes(range(256)) * 4
    mutants = [mutations.mutate_bytes(data, random.Random(number)) for number in range(200)]
    assert mutants == [mutations.mutate_bytes(data, random.Random(number)) for number in range(200)]
    assert len(set(mutants)) > 180


def test_damage_to_json_does_not_depend_on_the_damage_before():
    data = json.dumps({"pairs": [{"boxes": [[0, 1, 2, 3]], "ids": ["1"]}] * 3}).encode()
    values = copy.deepcopy(mutations.JSON_VALUES)
    mutants = [mutations.mutate_json(data, random.Random(number)) for number in range(500)]
    assert mutants == [mutations.mutate_json(data, random.Random(number)) for number in range(500)]
    assert repr(mutations.JSON_VALUES) == repr(values)


def raising(error):
    def read(_):
        raise error

    return read


def test_only_refusals_that_name_the_file_and_nobody_else_are_good(tmp_path):
    file = tmp_path / "mutant.dcm"
    assert verdict(len, "abc") == "read"
    assert verdict(raising(ClnetError("mutant.dcm: is damaged")), file) == "ClnetError"
    for message, complaint in (
        ("is damaged", "does not name the file"),
        ("mutant.dcm: \x1b[31m", "cannot be shown"),
        ("mutant.dcm: " + "x" * 5000, "cannot be shown"),
        ("mutant.dcm: of Secret^Name", "names the patient"),
    ):
        with pytest.raises(RuntimeError, match=complaint):
            verdict(raising(ClnetError(message)), file, "Secret^Name")
    with pytest.raises(KeyError):
        verdict(raising(KeyError("x")), file)
