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
    subject = replace(robustness.SUBJECTS["phantom"], disturbances={"missing_view": missing})
    monkeypatch.setitem(robustness.SUBJECTS, "phantom", subject)
    monkeypatch.setattr("shipped.subprocess", SimpleNamespace(run=in_process.instead_of_subprocess))
    words = ["--output", str(tmp_path / "output"), "--docs", str(tmp_path / "docs"), "--pairs", "16"]
    robustness.main(words)
    assert capsys.readouterr().out.count("evaluated in") == 2
    content = json.loads((tmp_path / "docs" / "robustness.json").read_text())["phantom"]
    (halved,) = content["disturbances"]["missing_view"]
    assert halved["level"] == 1
    assert content["undisturbed"]["pairs"] == 4
    assert 0 < halved["boxes"] < content["undisturbed"]["boxes"]
    lost = halved["recall"]["value"] - content["undisturbed"]["recall"]["value"]
    assert halved["change"]["value"] == pytest.approx(lost)
    assert not (tmp_path / "output" / "phantom" / "images").exists()
    page = (tmp_path / "docs" / "robustness.md").read_text()
    assert "## The phantom" in page
    assert "| a view is missing | share of breasts 1 |" in page
    assert (tmp_path / "docs" / "images" / "robustness.png").exists()
    robustness.main(words)
    assert "evaluated in" not in capsys.readouterr().out


def point(value, low, high):
    return {
        "level": 1,
        "recall": {"value": 0.8 + value, "low": 0.7, "high": 0.9},
        "change": {"value": value, "low": low, "high": high, "p": 0.5},
        "boxes": 300,
    }


def test_the_page_says_what_costs_something_beyond_its_interval():
    content = {
        "undisturbed": {"pairs": 151, "boxes": 319, "recall": {"value": 0.8, "low": 0.7, "high": 0.9}},
        "disturbances": {
            "wrong_partner": [point(-0.2, -0.3, -0.1)],
            "mirrored": [point(-0.02, -0.05, 0.01)],
        },
    }
    words = "\n".join(robustness.part("film", content, {"value": 0.7, "low": 0.6, "high": 0.8}))
    assert "IoU ≥ 0.2, [protocol `film`](evaluation.md#protocols)" in words
    assert "beyond its interval: another patient's MLO. No cost was shown for: mirrored." in words
    assert "with each view alone 70.0 (60.0 to 80.0)" in words
    assert (
        "| another patient's MLO | share of breasts 1 | 60.0 (70.0 to 90.0) | -20.0 (-30.0 to -10.0)" in words
    )
