"""The picture of the film model shows the median of each kind, not the best."""

import sys
from dataclasses import replace

import film_figure
import pytest
from PIL import Image

from clnet.data.datalist import Datalist, read_datalist, write_datalist
from clnet.evaluation.folder import evaluate_files
from clnet.findings.types import Detections, Findings, Link, PairFindings, write_findings

FILMS = film_figure.ROOT / "tests" / "data" / "cbis-ddsm"
CC, MLO = [117, 289, 154, 320], [96, 399, 125, 433]  # on the mass of the left breast
ELSEWHERE = [20, 100, 50, 130]


def found(score, link=0.9):
    return PairFindings("p", Detections([CC], [score]), Detections([MLO], [score]), (Link(0, 0, link),))


def missed(score):
    return PairFindings("p", Detections([CC], [score]), Detections([ELSEWHERE], [0.9]))


def false_positive(score):
    return PairFindings("p", Detections([CC, ELSEWHERE], [0.8, score]), Detections([MLO], [0.7]))


# In each row the middle one of the scores is the median.
KINDS = {
    "found": [found(0.9), found(0.6), found(0.5)],
    "missed": [missed(0.01), missed(0.1), missed(0.2)],
    "false positive": [false_positive(0.99), false_positive(0.55), false_positive(0.4)],
}


@pytest.fixture
def evaluation(tmp_path):
    """The folder of an evaluation of nine breasts, all of which are one film with different findings."""
    left = read_datalist(FILMS)["test"][0]
    pairs, findings = [], []
    for kind, rows in KINDS.items():
        for number, row in enumerate(rows):
            name = f"{kind}_{number}"
            pairs.append(replace(left, pair_id=name, patient_id=name))
            findings.append(replace(row, pair_id=name))
    write_datalist(Datalist("films", {"validation": tuple(pairs)}), tmp_path / "datalist.json")
    write_findings(Findings("a model", tuple(findings)), tmp_path / "findings.json")
    evaluate_files(tmp_path, tmp_path / "findings.json", "validation", tmp_path / "evaluation", report=False)
    return tmp_path / "evaluation"


def test_the_breast_nearest_to_the_median_of_each_kind_is_drawn(evaluation, monkeypatch, capsys):
    image = evaluation / "film.png"
    words = ["film_figure.py", str(evaluation), "--min-score", "0.3", "--image", str(image)]
    monkeypatch.setattr(sys, "argv", words)
    film_figure.main()
    assert capsys.readouterr().out.splitlines() == [
        "found: found_1, score 0.60, one of 3",
        "missed: missed_1, score 0.10, one of 3",
        "false positive: false positive_1, score 0.55, one of 3",
    ]
    with Image.open(image) as picture:
        assert picture.height == 770  # views of 560 pixels, their title and names above, the legend below
        assert picture.width > 3 * 560


def test_a_mass_that_is_found_without_its_link_is_of_no_kind():
    left = read_datalist(FILMS)["test"][0]
    unlinked = {left.pair_id: found(0.9, link=0.1)}
    assert film_figure.examples([left], unlinked, min_score=0.3) == []


def test_breasts_with_several_masses_are_left_out():
    right = read_datalist(FILMS)["test"][1]
    assert film_figure.examples([right], {}, min_score=0.3) == []


def test_a_kind_without_a_breast_is_named():
    with pytest.raises(SystemExit, match="no breast of the kind 'missed'"):
        film_figure.nearest_to_median([], "missed")
