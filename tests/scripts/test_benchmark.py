"""The benchmark writes what it measured, and keeps what it measured before on the same machine."""

import json

import benchmark
import pytest
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


def test_the_page_is_that_of_the_numbers_beside_it():
    result = json.loads((ROOT / "docs" / "performance.json").read_text(encoding="utf-8"))
    assert (ROOT / "docs" / "performance.md").read_text(encoding="utf-8") == page_of(result)
