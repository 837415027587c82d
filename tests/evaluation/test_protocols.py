"""Protocols: TransReg's rule against a slow reading of it, and what evaluations say about their rules."""

import json
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_findings import random_datalist, random_findings
from slow_reference import SlowImage, most_matches, slow_interpolated_recalls
from small_images import image, sets

from clnet.cli.main import main
from clnet.data.datalist import write_datalist
from clnet.evaluation.froc import RATES, froc, operating_points, recalls_at
from clnet.evaluation.hits import DUPLICATE, FALSE_POSITIVE, find_hits, find_overlaps
from clnet.evaluation.metrics import evaluate
from clnet.evaluation.protocols import (
    PROTOCOLS,
    EvaluationSettings,
    EvaluationSettingsError,
    protocol_words,
    settings_of,
)
from clnet.findings.types import write_findings

A, BESIDE_A, ELSEWHERE = (0, 0, 10, 10), (4, 0, 14, 10), (50, 50, 60, 60)


def as_transreg(results, weights=None, rates=RATES):
    overlaps = find_overlaps(results)
    curve = froc(find_hits(overlaps, 0.2, "one_to_one"), count_duplicates=True)
    weights = np.ones((1, len(results))) if weights is None else np.array([weights], float)
    points = operating_points(curve, rates, np.arange(len(results)), weights, interpolate=True)
    return recalls_at(curve.found_at, overlaps.lesion_image, weights, points)[0].tolist()


@settings(max_examples=300, deadline=None)
@given(sets)
def test_recall_as_transreg_counts_is_what_the_definition_says(results):
    slow = [SlowImage(*result) for result in results]
    lesions = sum(one.lesions for one in slow)
    expected = slow_interpolated_recalls(slow, RATES, Fraction(1, 5)) if lesions else [math.nan] * len(RATES)
    assert as_transreg(results) == pytest.approx(expected, nan_ok=True)


@settings(max_examples=200, deadline=None)
@given(sets, st.data())
def test_interpolated_recall_of_weighted_images_is_that_of_repeated_ones(results, data):
    weights = data.draw(st.lists(st.integers(0, 3), min_size=len(results), max_size=len(results)).filter(any))
    repeated = [result for result, weight in zip(results, weights, strict=True) for _ in range(weight)]
    assert as_transreg(results, weights) == pytest.approx(as_transreg(repeated), nan_ok=True)


@settings(max_examples=200, deadline=None)
@given(sets)
def test_one_matching_serves_every_score(results):
    hits = find_hits(find_overlaps(results), 0.2, "one_to_one")
    for threshold in {score for result in results for score in result.scores.tolist()}:
        kept = hits.overlaps.scores >= threshold
        most = 0
        for result in results:
            slow = SlowImage(*result)
            most += most_matches(
                [
                    [m for m, overlap in enumerate(slow.overlap[n]) if overlap > Fraction(1, 5)]
                    for n, score in enumerate(slow.scores)
                    if score >= threshold
                ]
            )
        assert (hits.lesion[kept] >= 0).sum() == most


def test_a_hit_is_on_a_lesion_that_the_detection_overlaps():
    """The first detection overlaps both lesions, the second only the one that the first overlaps most."""
    both = image([(A, 0.9), ((0, 0, 4, 10), 0.8), (A, 0.7), (ELSEWHERE, 0.6)], [A, BESIDE_A])
    assert find_hits(find_overlaps([both]), 0.2, "one_to_one").lesion.tolist() == [
        1,
        0,
        DUPLICATE,
        FALSE_POSITIVE,
    ]
    assert find_hits(find_overlaps([both]), 0.2).lesion.tolist() == [0, DUPLICATE, 1, FALSE_POSITIVE]


def test_an_overlap_of_exactly_the_threshold_is_no_hit_as_transreg_counts():
    assert as_transreg([image([((0, 0, 2, 10), 0.9)], [A])], rates=[1]) == [0]
    assert as_transreg([image([((0, 0, 2.01, 10), 0.9)], [A])], rates=[1]) == [1]


def test_recall_is_interpolated_by_hand():
    """Two images, two lesions; points (0, 0.5), (0.5, 0.5), (1, 1): half of the way at 0.75."""
    first = image([(A, 0.9), (ELSEWHERE, 0.8), (A, 0.7)], [A])
    second = image([(A, 0.6)], [A])
    assert as_transreg([first, second], rates=[0.125, 0.5, 0.75, 1, 4]) == [0.5, 0.5, 0.75, 1, 1]


def test_a_resample_that_runs_off_the_top_of_the_list_is_still_interpolated():
    """Nearly all false positives stem from one image; a resample without it has to look far down the list."""
    noisy = image([(ELSEWHERE, 0.9 + n * 1e-6) for n in range(5000)], [])
    quiet = image([(ELSEWHERE, 0.6), (A, 0.5), (ELSEWHERE, 0.4)], [A])
    assert as_transreg([noisy, *[quiet] * 3], [0, 1, 1, 1], rates=[0.5, 1]) == [0.5, 1]


def test_each_protocol_has_its_rules():
    pairs = random_datalist(40)["test"]
    findings = random_findings(pairs)
    recall = {}
    for name in PROTOCOLS:
        metrics = evaluate(pairs, findings, settings_of(name, resamples=10)).metrics
        assert metrics["protocol"] == f"protocol {name}"
        recall[name] = metrics["detection"]["iou=0.2"]["recall"]["0.5"]["value"]
    counted = evaluate(pairs, findings, EvaluationSettings(resamples=10, count_duplicates=True)).metrics
    assert recall["film"] == counted["detection"]["iou=0.2"]["recall"]["0.5"]["value"] <= recall["default"]
    plain = evaluate(pairs, findings, EvaluationSettings(resamples=10)).metrics
    assert recall["default"] == plain["detection"]["iou=0.2"]["recall"]["0.5"]["value"]
    images = [
        SlowImage(found.views[name].boxes, found.views[name].scores, view.boxes)
        for pair, found in zip(pairs, findings, strict=True)
        for name, view in pair.views.items()
    ]
    assert [recall["transreg"]] == pytest.approx(slow_interpolated_recalls(images, [0.5], Fraction(1, 5)))


def test_the_words_name_what_was_changed():
    def words(protocol, **changes):
        return protocol_words(json.loads(json.dumps(vars(settings_of(protocol, **changes)))))

    assert words("film") == "protocol film"
    assert words("film", operating_rate=1, seed=3) == "protocol film", "these are no rules of counting"
    assert words("film", ious=[0.3]) == "protocol film, changed: ious 0.3"
    assert (
        words("transreg", ious=[0.2, 0.5], interpolate=False)
        == "protocol transreg, changed: interpolate False, ious 0.2 and 0.5"
    )


def test_an_unknown_protocol_or_matching_is_named():
    with pytest.raises(EvaluationSettingsError, match="'flim'; expected one of film, default, transreg"):
        settings_of("flim")
    with pytest.raises(EvaluationSettingsError, match="matching is 'x'; expected by_score or one_to_one"):
        EvaluationSettings(matching="x")


@pytest.fixture
def files(tmp_path):
    datalist = random_datalist(30)
    write_datalist(datalist, tmp_path / "datalist.json")
    write_findings(random_findings(datalist["test"]), tmp_path / "findings.json")
    return tmp_path


def run(files, name, *options):
    command = ["evaluate", "--datalist", str(files / "datalist.json"), "--findings"]
    command += [str(files / "findings.json"), "--output", str(files / name), "--resamples", "20", *options]
    assert main(command) == 0
    return json.loads((files / name / "metrics.json").read_text(encoding="utf-8"))


def test_the_command_says_its_protocol_everywhere(files, capsys):
    run(files, "film", "--protocol", "film")
    said = capsys.readouterr().out
    for title in ("Recall, IoU ≥ 0.2", "Links of score ≥ 0.5", "Errors at 0.5 FP/image, IoU ≥ 0.2"):
        assert f"{title}, protocol film" in said
    assert "R@0.25" in said
    assert "R@0.125" not in said
    metrics = run(files, "film changed", "--protocol", "film", "--iou", "0.3", "--no-count-duplicates")
    assert metrics["protocol"] == "protocol film, changed: count_duplicates False, ious 0.3"
    assert "0.125" in metrics["detection"]["iou=0.3"]["recall"], "it stays in the file"
    assert "Recall, IoU ≥ 0.3, protocol film, changed: count_duplicates False" in capsys.readouterr().out
    run(files, "transreg", "--protocol", "transreg")
    assert "Recall, IoU > 0.2, protocol transreg" in capsys.readouterr().out
    page = (files / "transreg" / "report.html").read_text(encoding="utf-8")
    assert '"protocol":"protocol transreg"' in page


def test_the_help_names_every_protocol(capsys):
    with pytest.raises(SystemExit):
        main(["evaluate", "--help"])
    said = capsys.readouterr().out
    assert all(name in said for name in PROTOCOLS)


def test_runs_are_compared_by_their_protocol(files, capsys):
    first = run(files, "one", "--protocol", "transreg")
    again = run(files, "two", "--protocol", "transreg")
    assert first["detection"] == again["detection"]
    run(files, "three", "--protocol", "film")
    capsys.readouterr()
    assert main(["compare", str(files / "one"), str(files / "two"), "--output", str(files / "both")]) == 0
    assert "two − one, IoU > 0.2, protocol transreg" in capsys.readouterr().out
    comparison = json.loads((files / "both" / "comparison.json").read_text(encoding="utf-8"))
    assert comparison["protocol"] == "protocol transreg"
    assert comparison["runs"]["two"]["iou=0.2"]["recall"]["0.5"]["value"] == 0
    assert main(["compare", str(files / "one"), str(files / "three")]) == 2
    assert "one was evaluated with matching one_to_one, three with by_score" in capsys.readouterr().err


def test_an_evaluation_written_before_protocols_is_one_of_the_default(files, capsys):
    metrics = run(files, "old")
    run(files, "new")
    for name in ("protocol", "matching", "interpolate"):
        del metrics["settings"][name]
    del metrics["protocol"]
    (files / "old" / "metrics.json").write_text(json.dumps(metrics), encoding="utf-8")
    assert main(["report", str(files / "old")]) == 0
    assert '"protocol":"protocol default"' in (files / "old" / "report.html").read_text(encoding="utf-8")
    assert main(["compare", str(files / "old"), str(files / "new")]) == 0
