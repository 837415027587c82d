"""docs/real_data.md and docs/quickstart.md, command by command, on tiny data."""

import json
import re
import runpy
from pathlib import Path

import in_process
import pytest
import torch
from bundle_runs import ROOT, TINY
from miniatures import CbisDdsm
from page_commands import commands_of, made_small, run_command

from clnet.networks.resnet import ResNetBackbone

# Of the paper's network only what makes it slow is made small.
SMALL_PAPER = {
    "size": "[64, 48]",
    "workers": 0,
    "iterations": 2,
    "batch_size": 1,
    "warmup_iterations": 1,
    "network_def#encoder#layers": 1,
    "network_def#detector#layers": 2,
    "network_def#detector#object_queries": 8,
}


SMALL_FILM = {key: value for key, value in SMALL_PAPER.items() if key != "iterations"} | {"max_epochs": 1}


@pytest.fixture
def checkout(tmp_path):
    for name in ("bundle", "scripts"):
        (tmp_path / name).symlink_to(ROOT / name)
    return tmp_path


@pytest.mark.slow
def test_every_command_on_training_with_real_data_runs(checkout, monkeypatch):
    monkeypatch.chdir(checkout)
    data = CbisDdsm("data/CBIS-DDSM")
    for patient in range(20):
        split = "Training" if patient < 16 else "Test"
        for view in ("CC", "MLO"):
            data.mass(f"P_{patient:05d}", "LEFT", view, 1, (8, 30, 25, 51), split)
    data.tables()
    for name in ("resnet18", "resnet50"):
        torch.save(ResNetBackbone(name).state_dict(), f"data/{name}.pth")
    for words in commands_of("docs/real_data.md"):
        small = SMALL_FILM if "film.yaml" in words[-1] else SMALL_PAPER
        run_command(made_small(words, **small), checkout)
    output = checkout / "output"
    for name in ("paper", "paper-one-gpu"):
        run = json.loads((output / name / "run.json").read_text())
        assert run["status"] == "finished"
        assert run["config"]["network_def"]["encoder"]["backbone"]["name"] == "resnet50"
    for name in ("paper", "film"):
        assert (output / f"evaluate-{name}" / "report.html").exists()


@pytest.mark.slow
def test_the_quick_start_is_one(checkout):
    for words in commands_of("docs/quickstart.md"):
        if words[0] == "./scripts/demo":  # CI runs it as it is
            assert Path(ROOT / words[0]).exists()
        else:
            run_command(made_small(words, **TINY, max_epochs=1), checkout)
    page = (ROOT / "docs" / "quickstart.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    (checkout / "example.py").write_text(code)
    with in_process.like_a_new_process(checkout):
        runpy.run_path("example.py", run_name="__main__")
    assert (checkout / "output" / "evaluate-clnet" / "report.html").exists()
