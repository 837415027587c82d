"""The page on robustness, from a tiny phantom to numbers."""

import json
from dataclasses import replace
from types import SimpleNamespace

import in_process
import pytest
import robustness
from disturbances import DISTURBANCES


@pytest.mark.slow
def test_a_tiny_phantom_is_disturbed_and_evaluated_once(tmp_path, monkeypatch, capsys):
    missing = replace(DISTURBANCES["missing_view"], levels=(0, 1))
    monkeypatch.setattr(robustness, "DISTURBANCES", {"missing_view": missing})
    monkeypatch.setattr("shipped.subprocess", SimpleNamespace(run=in_process.instead_of_subprocess))
    words = ["--output", str(tmp_path / "output"), "--docs", str(tmp_path / "docs"), "--pairs", "16"]
    robustness.main(words)
    assert capsys.readouterr().out.count("evaluated in") == 2
    content = json.loads((tmp_path / "docs" / "robustness.json").read_text())
    whole, halved = content["disturbances"]["missing_view"]
    assert [whole["level"], halved["level"]] == [0, 1]
    assert whole["counts"]["images"] == 2 * halved["counts"]["images"] == 8
    assert not (tmp_path / "output" / "disturbed").exists()
    page = (tmp_path / "docs" / "robustness.md").read_text()
    assert "## A view is missing" in page
    assert "| share of breasts with one view | 0 | 1 |" in page
    assert (tmp_path / "docs" / "images" / "robustness.png").exists()
    robustness.main(words)
    assert "evaluated in" not in capsys.readouterr().out
