"""The numbers of an evaluation, all together."""

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from random_findings import random_datalist, random_findings
from slow_reference import SlowImage, slow_recalls

from clnet.cli.main import main
from clnet.data.datalist import write_datalist
from clnet.data.pair import VIEW_NAMES, Pair, View
from clnet.evaluation.cohort import CohortError
from clnet.evaluation.froc import RATES
from clnet.evaluation.metrics import evaluate
from clnet.evaluation.protocols import EvaluationSettings, EvaluationSettingsError
from clnet.findings.types import Detections, Findings, Link, PairFindings, write_findings

QUICK = EvaluationSettings(resamples=50)


@pytest.mark.parametrize("seed", range(3))
def test_recall_per_unit_is_what_the_definition_says(seed):
    """A lesion, a breast and a case are found with any hit in any view; false positives are per image."""
    pairs = random_datalist(12, seed)["test"]
    findings = random_findings(pairs, skill=1, seed=seed)
    detection = evaluate(pairs, findings, QUICK).metrics["detection"]
    images, units = [], {name: {} for name in ("image", "lesion", "breast", "case")}
    for pair, found in zip(pairs, findings, strict=True):
        for name, view in pair.views.items():
            for n, lesion in enumerate(view.lesion_ids):
                place = (len(images), n)
                units["image"][place] = place
                units["lesion"][place] = (pair.pair_id, lesion)
                units["breast"][place] = pair.pair_id
                units["case"][place] = pair.patient_id
            images.append(SlowImage(found.views[name].boxes, found.views[name].scores, view.boxes))
    for key, iou in (("iou=0.2", Fraction(1, 5)), ("iou=0.5", Fraction(1, 2))):
        for unit, names in units.items():
            got = detection[key]["recall" if unit == "image" else f"recall_per_{unit}"]
            values = [got[f"{rate:g}"]["value"] for rate in RATES]
            assert values == pytest.approx(slow_recalls(images, RATES, iou, names)), (key, unit)


def test_intervals_hold_the_value_and_shrink_with_more_patients():
    def width(patients):
        pairs = random_datalist(2 * patients)["test"]
        metrics = evaluate(pairs, random_findings(pairs), EvaluationSettings(resamples=300)).metrics
        found = metrics["detection"]["iou=0.2"]["recall"]["1"]
        assert found["low"] <= found["value"] <= found["high"]
        return found["high"] - found["low"]

    assert width(160) == pytest.approx(width(40) / 2, rel=0.35)


def test_the_mean_and_the_curve_agree_with_the_table():
    pairs = random_datalist(30)["test"]
    detection = evaluate(pairs, random_findings(pairs), QUICK).metrics["detection"]["iou=0.5"]
    table = {float(rate): entry["value"] for rate, entry in detection["recall"].items()}
    assert detection["mean_recall"]["value"] == pytest.approx(
        np.mean([table[rate] for rate in (0.25, 0.5, 1, 2, 4)])
    )
    curve = dict(zip(detection["curve"]["fpi"], detection["curve"]["value"], strict=True))
    assert {rate: curve[rate] for rate in RATES} == table
    assert sorted(curve.values()) == list(curve.values())


def test_the_same_seed_gives_the_same_metrics():
    pairs = random_datalist(20)["test"]
    first, again = (evaluate(pairs, random_findings(pairs), QUICK) for _ in range(2))
    assert json.dumps(first.metrics) == json.dumps(again.metrics)
    assert first.errors == again.errors


def test_errors_are_counted_as_they_are_listed():
    pairs = random_datalist(40)["test"]
    evaluation = evaluate(pairs, random_findings(pairs), QUICK)
    counts = evaluation.metrics["errors"]["counts"]
    assert sum(counts.values()) == len(evaluation.errors) > 0
    for groups in evaluation.metrics["errors"]["subgroups"].values():
        for kind, count in counts.items():
            assert sum(group["counts"][kind] for group in groups.values()) == count
    false_positives = {
        "false_positive_linked_to_lesion",
        "false_pair",
        "lone_false_positive",
        "poor_localisation",
    }
    images = evaluation.metrics["counts"]["images"]
    assert 0 < sum(counts[kind] for kind in false_positives) / images <= 0.5, "the operating point"


def test_subgroups_together_are_the_whole():
    pairs = random_datalist(40)["test"]
    metrics = evaluate(pairs, random_findings(pairs), QUICK).metrics
    whole = metrics["detection"]["iou=0.2"]["recall"]["1"]["value"]
    for name in ("view", "laterality", "density", "age", "pathology", "seen in", "size in pixels"):
        groups = metrics["subgroups"]["iou=0.2"][name].values()
        assert sum(group["boxes"] for group in groups) == metrics["counts"]["lesion_boxes"]
        hits = sum(group["boxes"] * group["recall"]["1"]["value"] for group in groups)
        assert hits / metrics["counts"]["lesion_boxes"] == pytest.approx(whole)


def test_the_row_of_several_lesions_is_over_breasts_with_several():
    pairs = random_datalist(60)["test"]
    links = evaluate(pairs, random_findings(pairs), QUICK).metrics["links"]["iou=0.2"]
    several = [
        {i for view in pair.views.values() for i in view.lesion_ids} for pair in pairs if len(pair.views) == 2
    ]
    assert links["all"]["counts"]["lesions"] == sum(map(len, several))
    assert links["several_lesions"]["counts"]["lesions"] == sum(len(ids) for ids in several if len(ids) > 1)


def test_the_row_of_single_pairs_is_over_breasts_with_one_lesion_in_both_views():
    """Of breasts whose only lesion has a box in each view and is found in both: the share linked rightly."""
    box = (10, 10, 30, 30)
    pairs, findings = [], []

    def add(name, cc, mlo, links, detections_in_mlo=1):
        views = {
            view: View(Path(view), [box, (50, 50, 70, 70)][: len(ids)], tuple(ids))
            for view, ids in (("cc", cc), ("mlo", mlo))
        }
        pairs.append(Pair(name, name, "L", **views))
        seen = Detections([box] * detections_in_mlo, [0.9] * detections_in_mlo)
        findings.append(PairFindings(name, Detections([box], [0.9]), seen, tuple(links)))

    for number in range(3):
        add(f"right {number}", "1", "1", [Link(0, 0, 0.9)])
    add("to the dustbin", "1", "1", [Link(0, None, 0.9)])
    add("missed in mlo", "1", "1", [], detections_in_mlo=0)
    add("two lesions", "12", "12", [Link(0, 0, 0.9)])
    add("in cc alone", "1", "", [Link(0, None, 0.9)])
    add("one lesion in each view", "1", "2", [Link(0, 0, 0.9)])
    metrics = evaluate(pairs, Findings("m", tuple(findings)), QUICK).metrics
    row = metrics["links"]["iou=0.5"]["single_pair"]
    assert row["counts"] == {"right": 3, "wrong": 1, "lesions": 5, "detected": 4, "detected_right": 3}
    assert row["accuracy"]["value"] == 3 / 4
    assert row["accuracy"]["low"] < 3 / 4 < row["accuracy"]["high"], "over patients"


def nothing_found(pairs):
    return Findings(
        "blind", tuple(PairFindings(p.pair_id, **dict.fromkeys(p.views, Detections())) for p in pairs)
    )


def test_findings_without_detections_and_links():
    pairs = random_datalist(10)["test"]
    metrics = evaluate(pairs, nothing_found(pairs), QUICK).metrics
    assert metrics["detection"]["iou=0.2"]["recall"]["4"] == {"value": 0, "low": 0, "high": 0}
    assert metrics["links"] is None
    assert metrics["errors"]["score_above"] is None


def test_a_set_without_lesions_has_no_recall():
    pairs = [
        pair for pair in random_datalist(40)["test"] if not any(len(v.boxes) for v in pair.views.values())
    ]
    metrics = evaluate(pairs, random_findings(pairs), QUICK).metrics
    assert metrics["detection"]["iou=0.5"]["recall_per_case"]["1"] == {
        "value": None,
        "low": None,
        "high": None,
    }
    assert metrics["counts"]["negative_images"] == metrics["counts"]["images"] > 0


def test_a_view_that_was_not_looked_at_counts_as_an_image_and_is_told():
    pairs = random_datalist(10, missing_views=False)["test"]
    findings = random_findings(pairs)
    half = Findings("half", tuple(PairFindings(found.pair_id, found.cc) for found in findings))
    counts = evaluate(pairs, half, QUICK).metrics["counts"]
    assert (counts["images"], counts["skipped_views"]) == (20, 10)


def test_findings_that_do_not_fit_are_named():
    pairs = random_datalist(10)["test"]
    findings = random_findings(pairs)
    with pytest.raises(CohortError, match="do not cover 1 of 10 pairs, the first of them 'pair 4'"):
        evaluate(pairs, Findings("m", findings.pairs[:4] + findings.pairs[5:]), QUICK)
    missing = next(pair for pair in random_datalist(40)["test"] if len(pair.views) == 1)
    (absent,) = set(VIEW_NAMES) - set(missing.views)
    odd = PairFindings(missing.pair_id, **{absent: Detections([[0, 0, 1, 1]], [0.5])})
    with pytest.raises(CohortError, match=f"{missing.pair_id!r}: the findings have 1 boxes in {absent}"):
        evaluate([missing], Findings("m", (odd,)), QUICK)


@pytest.mark.parametrize("wrong", [{"ious": ()}, {"ious": (0.0,)}, {"operating_rate": 0}, {"resamples": 0}])
def test_invalid_settings_are_named(wrong):
    with pytest.raises(EvaluationSettingsError, match=next(iter(wrong))):
        EvaluationSettings(**wrong)


@pytest.fixture
def files(tmp_path):
    datalist = random_datalist(30)
    write_datalist(datalist, tmp_path / "datalist.json")
    write_findings(random_findings(datalist["test"], model="a model"), tmp_path / "findings.json")
    return tmp_path


def run(files, *more, out="out"):
    return main(
        [
            *(
                "evaluate",
                "--datalist",
                str(files / "datalist.json"),
                "--findings",
                str(files / "findings.json"),
            ),
            *("--output", str(files / out), "--resamples", "50", *more),
        ]
    )


def test_the_command_writes_a_folder_and_prints_tables(files, capsys):
    assert run(files) == 0
    said = capsys.readouterr().out
    for words in (
        "30 pairs of 15 patients",
        "R@0.125",
        "Links of score ≥ 0.5",
        "lone_false_positive",
        "density: A",
    ):
        assert words in said
    out = files / "out"
    assert {file.name for file in out.iterdir()} == {
        "metrics.json",
        "errors.json",
        "record.npz",
        "froc.png",
        "report.html",
    }
    metrics = json.loads((out / "metrics.json").read_text(encoding="utf-8"))
    for iou in ("iou=0.2", "iou=0.5"):
        assert list(metrics["detection"][iou]["recall"]) == ["0.125", "0.25", "0.5", "1", "2", "4"]
        assert set(metrics["detection"][iou]["recall"]["1"]) == {"value", "low", "high"}
        assert {"precision", "recall", "f1", "accuracy"} < set(metrics["links"][iou]["several_lesions"])
    assert metrics["data"]["datalist"] == "../datalist.json"
    errors = json.loads((out / "errors.json").read_text(encoding="utf-8"))
    assert len(errors) == sum(metrics["errors"]["counts"].values())
    assert (out / "froc.png").read_bytes().startswith(b"\x89PNG")


def test_options_reach_the_evaluation(files):
    assert (
        run(files, "--iou", "0.3", "--count-duplicates", "--operating-rate", "1", "--link-score", "0.2") == 0
    )
    metrics = json.loads((files / "out" / "metrics.json").read_text(encoding="utf-8"))
    assert list(metrics["detection"]) == ["iou=0.3"]
    chosen = {
        "count_duplicates": True,
        "operating_rate": 1,
        "link_score": 0.2,
        "resamples": 50,
        "ious": [0.3],
    }
    assert chosen.items() <= metrics["settings"].items()


def test_a_wrong_section_or_file_is_one_line(files, capsys):
    assert run(files, "--section", "validation") == 2
    assert "no pairs to evaluate" in capsys.readouterr().err
    (files / "findings.json").write_text(
        '{"schema": 1, "model": "m", "pairs": [{"pair_id": "x", "views": 3}]}'
    )
    assert run(files) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "findings.json: pair 'x', views is 3" in said
