"""The benchmark writes what it measured, and keeps what it measured before on the same machine."""

import json

import benchmark
import pytest
import torch
from benchmarks import gpu
from benchmarks.page import page_of
from page_commands import ROOT

from clnet.runs.provenance import versions


@pytest.mark.slow
def test_a_part_is_measured_and_joins_those_of_this_machine_alone(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(benchmark, "PHANTOM_PAIRS", 20)
    file = tmp_path / "performance.json"
    benchmark.main(["--only", "phantom", "--docs", str(tmp_path)])
    assert "pairs_per_second" in capsys.readouterr().out
    content = json.loads(file.read_text())
    assert content["phantom"]["pairs_per_second"] > 0
    assert content["versions"]["torch"] == versions()["torch"]
    assert (tmp_path / "performance.md").read_text().startswith("# Performance")
    here = {name: content[name] for name in ("machine", "versions")}
    assert benchmark.measured_before(file, here) == content
    assert benchmark.measured_before(file, here | {"machine": {"processor": "another"}}) == {}


@pytest.mark.slow
def test_a_gpu_is_measured(tmp_path, capsys, monkeypatch):
    """By the same steps on a CPU, as there is no GPU; it knows neither the size of a program nor peaks."""
    monkeypatch.setattr(gpu, "SIZES", [(64, 64)])
    monkeypatch.setattr(gpu, "ROUNDS", 1)
    monkeypatch.setattr(gpu, "WARM_UPS", 0)
    ways = ("ours, reference", "ours", "transformers, AMP")
    monkeypatch.setattr(gpu, "WAYS", {name: gpu.WAYS[name] for name in ways})
    benchmark.measure_gpu(torch.device("cpu"), "no GPU", tmp_path)
    page = (tmp_path / "performance_gpu.md").read_text(encoding="utf-8")
    assert page in capsys.readouterr().out
    assert "failed" not in page
    measured = json.loads((tmp_path / "performance_gpu.json").read_text())["gpu"]
    ways = measured["network"]["64x64"]
    assert ways["ours"]["greatest_difference"] < 1e-4
    assert ways["transformers, AMP"]["greatest_difference"] < 0.5
    assert measured["attention"]["64x64, float32"]["greatest_difference"] < 1e-4


def test_without_a_gpu_a_measurement_of_it_is_refused(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(SystemExit, match="PyTorch finds no GPU"):
        benchmark.main(["--gpu"])


def test_a_way_that_fails_is_named_and_the_others_are_measured():
    def fails():
        raise RuntimeError("out of memory")

    assert gpu.measured(fails, torch.device("cpu")) == {"error": "RuntimeError: out of memory"}
    assert gpu.measured(lambda: None, torch.device("cpu"))["seconds"] >= 0


def test_the_page_is_that_of_the_numbers_beside_it():
    result = json.loads((ROOT / "docs" / "performance.json").read_text(encoding="utf-8"))
    assert (ROOT / "docs" / "performance.md").read_text(encoding="utf-8") == page_of(result)
