"""docs/evaluation.md: its example is a findings file, its commands run, its table of errors is the code's."""

import json
import re
import shlex
import shutil
from pathlib import Path

from clnet.cli.main import main
from clnet.evaluation.error_types import ERROR_TYPES
from clnet.evaluation.protocols import PROTOCOLS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "evaluation.md").read_text(encoding="utf-8")


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", PAGE, flags=re.DOTALL)


def test_the_example_and_the_commands_work(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(ROOT / "tests" / "data" / "cbis-ddsm", "tests/data/cbis-ddsm")
    findings, coco_results = blocks("json")
    Path("output").mkdir()
    Path("output/findings.json").write_text(findings, encoding="utf-8")
    Path("output/detector.json").write_text(coco_results, encoding="utf-8")
    evaluate, evaluate_coco, report, evaluate_film, threshold, compare = (
        shlex.split(command)[1:] for command in blocks("bash")
    )
    assert main(evaluate) == 0
    metrics = json.loads(Path("output/by_hand/metrics.json").read_text(encoding="utf-8"))
    # By hand: five of six boxes are found, and the two false positives in four images may pass.
    assert metrics["detection"]["iou=0.2"]["recall"]["0.5"]["value"] == 5 / 6
    assert metrics["links"]["iou=0.2"]["all"]["counts"] == {
        "right": 2,
        "wrong": 1,
        "lesions": 3,
        "detected": 2,
        "detected_right": 2,
    }
    assert main(evaluate_coco) == 0
    # By hand: three of six boxes are found; one false positive in four images; one image without results.
    metrics = json.loads(Path("output/detector/metrics.json").read_text(encoding="utf-8"))
    assert metrics["detection"]["iou=0.2"]["recall"]["0.5"]["value"] == 3 / 6
    assert metrics["counts"]["skipped_views"] == 1
    assert main(evaluate_film) == 0
    metrics = json.loads(Path("output/by_hand_film/metrics.json").read_text(encoding="utf-8"))
    assert metrics["protocol"] == "protocol film"
    capsys.readouterr()
    assert main(threshold) == 0
    assert "0.5 false positives per image, recall 83.3% of lesion boxes" in capsys.readouterr().out
    Path("output/by_hand/report.html").unlink()
    assert main(report) == 0
    assert Path("output/by_hand/report.html").exists()
    assert main([word.replace("by_hand", "by_hand_2") for word in evaluate]) == 0
    assert main(compare) == 0
    assert Path("output/comparison/froc.png").exists()


def test_the_table_of_errors_is_the_codes():
    for name, words in ERROR_TYPES.items():
        assert f"| `{name}` | {words} |" in PAGE


def test_the_table_of_protocols_is_the_codes():
    rows = dict(re.findall(r"^\| `(film|default|transreg)` \| (.*)$", PAGE, flags=re.MULTILINE))
    assert list(rows) == list(PROTOCOLS)
    for name, row in rows.items():
        hit, duplicate, recall, rates, _ = row.split(" | ")
        rules = PROTOCOLS[name].rules
        assert [float(iou) for iou in re.findall(r"0\.\d", hit)] == list(rules.ious)
        assert ("Hungarian" in hit) == (">" in hit) == (rules.matching == "one_to_one")
        assert (duplicate == "a false positive") == rules.count_duplicates
        assert ("interpolated" in recall) == rules.interpolate
        shown = PROTOCOLS[name].shown_rates
        assert rates == f"{shown[0]:g} to {shown[-1]:g}"
