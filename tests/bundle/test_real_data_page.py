"""docs/real_data.md and docs/quickstart.md, command by command, on tiny data."""

import json
import re
import runpy
import shutil
import sys
from pathlib import Path

import in_process
import pytest
import torch
import yaml
from bundle_runs import ROOT, TINY
from miniatures import CbisDdsm
from page_commands import commands_of, made_small, run_command

from clnet.networks.resnet import ResNetBackbone

SMALL = {
    "size": "[64, 48]",
    "batch_size": 1,
    "warmup_iterations": 1,
    "network_def#encoder#layers": 1,
    "network_def#detector#layers": 2,
    "network_def#detector#object_queries": 8,
}
# Of each network only what makes it slow is made small.
SMALL_FILM = {**SMALL, "max_epochs": 1, "width": 32}
SMALL_PAPER = {**SMALL, "workers": 0, "iterations": 2}


@pytest.fixture
def checkout(tmp_path):
    """What the commands may change is a copy."""
    for name in ("bundle", "scripts"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__", "model.*"))
    (tmp_path / "docs").mkdir()
    for page in ("README.md", "docs/model_card.md"):
        shutil.copy(ROOT / page, tmp_path / page)
    return tmp_path


def small_cbis_ddsm(folder):
    """The layout of the download, with both views of most breasts and one view of some."""
    data = CbisDdsm(folder)
    for patient in range(24):
        split = "Training" if patient < 16 else "Test"
        for view in ("CC", "MLO") if patient % 4 else ("MLO",):
            data.mass(f"P_{patient:05d}", "LEFT", view, 1, (8, 30, 25, 51), split)
    data.tables()


@pytest.mark.slow
def test_every_command_on_training_with_real_data_runs(checkout, monkeypatch):
    monkeypatch.chdir(checkout)
    small_cbis_ddsm("data/CBIS-DDSM")
    for name in ("resnet18", "resnet50"):
        torch.save(ResNetBackbone(name).state_dict(), f"data/{name}.pth")
    for words in commands_of("docs/real_data.md"):
        if words[:2] == ["python", "scripts/ship_model.py"]:
            command = [checkout / "scripts" / "ship_model.py", *words[2:]]
            done = in_process.run_outside([sys.executable, *command], checkout)
            assert done.returncode == 0, done.stderr
        else:
            small = SMALL_FILM if "film.yaml" in " ".join(words) else SMALL_PAPER
            run_command(made_small(words, **small), checkout)
    output = checkout / "output"
    for name, backbone in (("film-seed0", "resnet18"), ("paper", "resnet50"), ("paper-one-gpu", "resnet50")):
        run = json.loads((output / name / "run.json").read_text())
        assert run["status"] == "finished"
        assert run["config"]["network_def"]["encoder"]["backbone"]["name"] == backbone
    for name in ("film-validation", "film-test", "paper"):
        assert (output / f"evaluate-{name}" / "report.html").exists()
    check_that_the_film_model_is_shipped(checkout)


def check_that_the_film_model_is_shipped(checkout):
    models, configs = checkout / "bundle" / "models", checkout / "bundle" / "configs"
    assert (models / "model.pt").read_bytes() == (
        checkout / "output" / "film-seed0" / "model.pt"
    ).read_bytes()
    metrics = json.loads((models / "record" / "film_test.json").read_text())
    assert metrics["counts"]["images"] == 14  # six breasts with both views, two with one
    recall = metrics["detection"]["iou=0.2"]["recall"]["1"]
    assert json.loads((configs / "metadata.json").read_text())["eval_metrics"]["recall_iou0.2_fpi1"] == round(
        recall["value"], 4
    )
    threshold = json.loads((models / "record" / "film_threshold.json").read_text())["min_score"]
    for name in ("film", "inference"):
        assert yaml.safe_load((configs / f"{name}.yaml").read_text())["min_score"] == threshold
    for page in ("README.md", "docs/model_card.md", "bundle/docs/README.md"):
        assert "14 scanned films of 8 breasts of 8 patients with 14 boxes" in (checkout / page).read_text()
    log = json.loads((models / "record" / "film_test_log.json").read_text())
    assert [entry["trial"] for entry in log[:2]] == [True, True]
    assert log[-1]["model"] == metrics["model"]
    assert log[-1]["protocols"] == ["default", "film", "transreg"]
    assert str(checkout) not in "".join(file.read_text() for file in (models / "record").glob("film_*"))


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
    assert (checkout / "output" / "evaluate-geometric" / "report.html").exists()
