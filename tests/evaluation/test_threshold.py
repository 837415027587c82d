"""The threshold of reports by a rate of false positives."""

import json
import math

import pytest
from random_findings import random_datalist, random_findings

from clnet.cli.main import main
from clnet.data.datalist import Datalist, write_datalist
from clnet.evaluation.folder import evaluate_files
from clnet.evaluation.hits import ImageResult, find_hits, find_overlaps
from clnet.evaluation.protocols import PROTOCOLS, settings_of
from clnet.evaluation.threshold import ThresholdError, threshold_at_rate
from clnet.findings.types import Detections, Findings, PairFindings, write_findings

PAIRS = random_datalist(40)["test"]
FINDINGS = random_findings(PAIRS)


def evaluated(folder, protocol, section="validation", findings=FINDINGS):
    write_datalist(Datalist("random", {section: PAIRS}), folder / "datalist.json")
    write_findings(findings, folder / "findings.json")
    settings = settings_of(protocol, resamples=10)
    evaluate_files(folder, folder / "findings.json", section, folder / "out", settings, report=False)
    return folder / "out"


def rate_and_recall(min_score, protocol):
    """Every detection below the threshold is taken out first; what is left is counted anew."""
    results = []
    for pair, found in zip(PAIRS, FINDINGS, strict=True):
        for name, view in pair.views.items():
            kept = found.views[name].scores >= min_score
            results.append(
                ImageResult(found.views[name].boxes[kept], found.views[name].scores[kept], view.boxes)
            )
    rules = PROTOCOLS[protocol].rules
    outcome = find_hits(find_overlaps(results), 0.2, rules.matching).lesion
    wrong = outcome < 0 if rules.count_duplicates else outcome == -1
    return wrong.sum() / len(results), (outcome >= 0).sum() / sum(len(each.lesions) for each in results)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("rate", [0.25, 0.37, 1])
def test_the_rate_is_kept_and_a_lower_score_would_break_it(tmp_path, protocol, rate):
    folder = evaluated(tmp_path, protocol)
    chosen = threshold_at_rate(folder, rate)
    assert rate_and_recall(chosen.min_score, protocol) == pytest.approx((chosen.rate, chosen.recall))
    assert chosen.rate <= rate
    just_below = math.nextafter(chosen.min_score, -math.inf)
    assert rate_and_recall(just_below, protocol)[0] > rate


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_every_protocol_writes_the_scores_of_its_rates(tmp_path, protocol):
    folder = evaluated(tmp_path, protocol)
    metrics = json.loads((folder / "metrics.json").read_text(encoding="utf-8"))
    for iou in PROTOCOLS[protocol].rules.ious:
        written = metrics["detection"][f"iou={iou:g}"]["score_above"]
        assert list(written) == ["0.125", "0.25", "0.5", "1", "2", "4"]
        for rate, score in written.items():
            assert threshold_at_rate(folder, float(rate), iou).min_score == math.nextafter(score, math.inf)


def test_the_command_says_what_the_threshold_does(tmp_path, capsys):
    folder = evaluated(tmp_path, "film")
    assert main(["threshold", str(folder), "--rate", "1", "--iou", "0.5"]) == 0
    said = capsys.readouterr().out
    chosen = threshold_at_rate(folder, 1, 0.5)
    assert said.splitlines()[0] == f"min_score {chosen.min_score}"
    assert f"recall {100 * chosen.recall:.1f}% of lesion boxes, IoU ≥ 0.5, protocol film" in said
    assert "warning" not in said


def test_choosing_on_the_test_section_is_warned_of(tmp_path, capsys):
    assert main(["threshold", str(evaluated(tmp_path, "film", section="test"))]) == 0
    assert "warning: a threshold chosen on the test section" in capsys.readouterr().out


def test_where_all_detections_may_pass_there_is_no_least_score(tmp_path, capsys):
    nothing = (PairFindings(pair.pair_id, **dict.fromkeys(pair.views, Detections())) for pair in PAIRS)
    folder = evaluated(tmp_path, "film", findings=Findings("blind", tuple(nothing)))
    assert threshold_at_rate(folder, 0.5)[:3] == (-math.inf, 0, 0)
    assert main(["threshold", str(folder)]) == 0
    assert "min_score: none is needed" in capsys.readouterr().out


def test_a_wrong_rate_or_overlap_is_named(tmp_path):
    folder = evaluated(tmp_path, "film")
    with pytest.raises(ThresholdError, match="rate is 0; expected a number above 0"):
        threshold_at_rate(folder, 0)
    with pytest.raises(ThresholdError, match=r"not evaluated at IoU 0.3, but at 0.2, 0.5; change --iou"):
        threshold_at_rate(folder, 0.5, 0.3)
