"""The page of the ablation tells the numbers of the evaluations, and what each row is."""

import json
import re
import shlex
from pathlib import Path

import ablation
import compare_links
import numpy as np
import pytest
from ablations.data import only_view
from ablations.evidence import evidence
from ablations.false_positives import describe_false_positives
from ablations.figure import draw
from ablations.kept import read_runs
from ablations.numbers import Numbers
from ablations.outcome import image_views, pack, unpack
from ablations.page import pages
from ablations.tables import TABLES
from kept_runs import QUICK, kept_run, outcome_of
from page_text import percent
from random_findings import random_datalist, random_findings

from clnet.data.pair import Pair, View
from clnet.evaluation.bootstrap import draw_patients
from clnet.evaluation.metrics import evaluate
from clnet.evaluation.resampled import statistics
from clnet.findings.types import Detections, Findings, PairFindings

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("detections", [4, 30])
def test_an_outcome_gives_the_numbers_of_its_record_from_a_fraction_of_its_bytes(detections):
    text, evaluation = outcome_of(pairs=120, detections=detections, links=6)
    weights = draw_patients(evaluation.record.patients, 200, seed=4)
    theirs, ours = statistics(evaluation.record, weights), statistics(unpack(text).record, weights)
    assert set(ours) == {0.2, 0.5}
    for iou in ours:
        for rate, recall in ours[iou].recall.items():
            np.testing.assert_array_equal(recall, theirs[iou].recall[rate])
        for part in ("links", "links_of_several"):
            for measure, values in getattr(ours[iou], part).items():
                np.testing.assert_array_equal(values, getattr(theirs[iou], part)[measure])
    assert len(text) < 100 * 120


def test_the_outcome_of_one_view_is_that_of_an_evaluation_on_it():
    datalist = random_datalist(60)
    found = random_findings(datalist["test"], seed=3)
    whole = evaluate(datalist["test"], found, QUICK)
    alone = Findings("", tuple(type(pair)(pair.pair_id, None, pair.mlo) for pair in found))
    expected = evaluate(only_view(datalist, "mlo")["test"], alone, QUICK).metrics["detection"]
    outcome = unpack(pack(whole.record, image_views(datalist["test"])))
    record = outcome.of_view("mlo")
    once = np.ones((1, record.patients))
    for iou, here in statistics(record, once).items():
        for rate, recall in here.recall.items():
            assert recall[0] == pytest.approx(expected[f"iou={iou:g}"]["recall"][rate]["value"])


def test_a_row_is_the_mean_over_seeds_and_a_difference_is_over_the_seeds_that_both_have():
    runs = {
        ("clnet", 0): kept_run("clnet", 0, skill=3),
        ("clnet", 1): kept_run("clnet", 1, skill=2),
        ("temperature_1", 1): kept_run("temperature_1", 1, skill=0.5),
    }
    numbers, table = Numbers(runs, resamples=200), TABLES["temperature"]
    paper, ours = (numbers.row(table, row) for row in table.rows)
    recall = ours["iou=0.5"]["recall"]["1"]
    assert recall["value"] == pytest.approx(np.mean(list(recall["by_seed"].values())))
    assert recall["low"] <= recall["value"] <= recall["high"]
    minus = paper["iou=0.5"]["minus_reference"]
    assert minus["seeds"] == [1]
    assert minus["recall"]["1"]["value"] == pytest.approx(
        paper["iou=0.5"]["recall"]["1"]["value"] - recall["by_seed"]["1"]
    )
    assert minus["recall"]["1"]["p"] == pytest.approx(2 / 201)


def test_rows_that_were_not_run_say_so_and_orders_against_the_papers_are_named():
    runs = {("vild", 0): kept_run("vild", 0, skill=3), ("clnet", 0): kept_run("clnet", 0, skill=0.5)}
    content = evidence(Numbers(runs, resamples=100), 12, "./scripts/ablation")
    made = pages(content, has_pictures=False)
    text = made["evidence/components.md"]
    assert re.search(r"^\|  \|  \| not run \|", text, re.MULTILINE)
    assert "The paper has *both: CL-Net* above *VILD* by 2.0; here the difference is -" in text
    assert not any("Not run yet." in page for page in made.values())  # CL-Net is in every table
    assert json.loads(json.dumps(content, allow_nan=False))["runs"][0]["setting"] == "vild"


def test_the_page_begins_with_what_its_tables_answer_seed_by_seed():
    skills = {("vild", 0): 3, ("vild", 1): 2, ("clnet", 0): 0.5, ("clnet", 1): 1}
    runs = {(name, seed): kept_run(name, seed, skill=skill) for (name, seed), skill in skills.items()}
    content = evidence(Numbers(runs, resamples=50), 12, "command")
    vild, clnet = (content["tables"]["components"]["rows"][place]["numbers"]["iou=0.5"] for place in (1, 3))
    ours, theirs = (row["recall"]["0.25"]["by_seed"] for row in (clnet, vild))
    first, second = (f"{100 * (ours[seed] - theirs[seed]):+.1f}" for seed in "01")
    text = pages(content, has_pictures=False)["evidence.md"]
    assert re.search(
        rf"\[Does the linker help detection\?\]\(evidence/components.md\) \| CL-Net − VILD \|.*\| "
        rf"{re.escape(first)}, {re.escape(second)} \|",
        text,
    )
    assert "CL-Net − Deformable DETR" not in text  # which was not run
    # VILD and CL-Net are in two of the paper's tables, which have CL-Net above.
    assert "tables order 2 pairs of rows; 0 have the same order here" in text


def test_seeds_are_resampled_beside_patients():
    skills = {("vild", 0): 3, ("vild", 1): 2, ("clnet", 0): 0.5, ("clnet", 1): 1, ("clnet", 2): 1.5}
    runs = {(name, seed): kept_run(name, seed, skill=skill) for (name, seed), skill in skills.items()}
    numbers, table = Numbers(runs, resamples=400), TABLES["components"]
    found = numbers.seeds_resampled(table, "clnet", "vild", 0.5, "0.25")
    recall = {
        row.setting: numbers.row(table, row)["iou=0.5"]["recall"]["0.25"]
        for row in table.rows
        if row.setting in ("clnet", "vild")
    }
    assert found["value"] == pytest.approx(recall["clnet"]["value"] - recall["vild"]["value"])
    patients = numbers.contrast(table, "clnet", "vild")["iou=0.5"]["recall"]["0.25"]
    assert found["high"] - found["low"] > patients["high"] - patients["low"]
    del runs["vild", 0]
    assert Numbers(runs, resamples=10).seeds_resampled(table, "clnet", "vild", 0.5, "0.25") is None


def test_each_table_has_the_command_that_makes_it_and_the_time_it_took():
    runs = {("vild", 0): kept_run("vild", 0)}
    runs["vild", 0].content["training_seconds"] = 3594.0  # and two evaluations of 3 seconds
    made = pages(evidence(Numbers(runs, resamples=20), 12, "./scripts/ablation --seeds 2"), False)
    command = "```bash\n./scripts/ablation --seeds 2 --only"
    assert (
        f"{command} components\n```\n\ntrains these 1 runs, which took 1.0 hours in all"
        in made["evidence/components.md"]
    )
    with_vild = {name for name, table in TABLES.items() if "vild" in {row.setting for row in table.rows}}
    assert {name for name in TABLES if f"evidence/{name}.md" in made} == with_vild
    for name in with_vild:
        assert f"{command} {name}\n```" in made[f"evidence/{name}.md"]


def test_a_row_that_is_only_evaluated_has_no_time_of_training():
    runs = {(name, 0): kept_run(name, 0) for name in ("clnet", "pair_score_0.5")}
    for run in runs.values():
        run.content.update(training_seconds=3594.0, training_cpu_seconds=1800.0)
    made = pages(evidence(Numbers(runs, resamples=20), 12, "command"), has_pictures=False)
    assert "2 runs, 1 of them trained" in made["evidence.md"]
    text = made["evidence/machine_time.md"]
    assert "2 runs, 1 of them trained" in text
    assert "CPU time was recorded for 1 trainings: 0.5 hours." in text
    assert "| `pair_score_0.5` | 0 | 0.1 |  |" in text


def test_the_picture_shows_tables_with_something_to_compare(tmp_path):
    runs = {("vild", 0): kept_run("vild", 0, skill=3), ("clnet", 0): kept_run("clnet", 0, skill=0.5)}
    one = {("clnet", 0): runs["clnet", 0]}
    for known, is_drawn in ((runs, True), (one, False)):
        tables = evidence(Numbers(known, resamples=10), 12, "")["tables"]
        tables.pop("single_view", None)  # CL-Net alone has two rows there
        assert draw(tables, tmp_path / f"{is_drawn}.png") is is_drawn
        assert (tmp_path / f"{is_drawn}.png").exists() is is_drawn


def test_false_positives_are_told_by_whether_they_show_a_mimic_or_a_mass_once_more():
    mass, mimic, nothing = ([0, 0, 10, 10], [50, 50, 60, 60], [80, 80, 90, 90])
    view = View(Path("image.dcm"), np.array([mass]), ("1",))
    pairs = [
        Pair(f"{n}", f"{n}", "L", view, None, attributes={"mimics": {"cc": [mimic], "mlo": []}})
        for n in range(8)
    ]

    def found(*boxes_and_scores):
        boxes, scores = zip(*boxes_and_scores, strict=True)
        return Detections(np.array(boxes, np.float32), np.array(scores, np.float32))

    # Eight images: two false positives may pass. The three masses at 0.5 lie between the two rules.
    sure = found((mass, 0.9), (mass, 0.8))
    findings = [found((mass, 0.9), (mimic, 0.7)), found((mass, 0.9), (nothing, 0.6)), *[sure] * 2]
    findings += [found((mass, 0.5))] * 3 + [found((mimic, 0.3), (mass, 0.2))]
    look = describe_false_positives(
        pairs, Findings("", tuple(PairFindings(f"{n}", cc) for n, cc in enumerate(findings)))
    )
    # By the rule of the tables the mimic at 0.7 and the empty place at 0.6 pass, the mimic at 0.3 does not.
    # With duplicates counted the two at 0.8 are all that pass.
    assert look == {"recall": 0.875, "recall_duplicates_counted": 0.5, "on_mimics": 0.5}


def test_the_page_tells_of_false_positives_where_runs_were_looked_at():
    runs = {("clnet", 0): kept_run("clnet", 0), ("vild", 1): kept_run("vild", 1, skill=0.6)}
    look = {"recall": 0.5, "recall_duplicates_counted": 0.25, "on_mimics": 0.125}
    runs["vild", 1].content["sections"]["test"]["false_positives"] = look
    made = pages(evidence(Numbers(runs, 20), 12, "command"), has_pictures=False)
    assert "| VILD, none | 1 | 50.0 | 25.0 | 12.5 |" in made["evidence/match_learning.md"]
    closer = {name for name, page in made.items() if "A closer look" in page}
    # The two tables that show VILD on the test section.
    assert closer == {"evidence/components.md", "evidence/match_learning.md"}


def test_the_evidence_pages_and_the_readme_report_the_numbers_that_are_kept():
    docs = ROOT / "docs"
    content = json.loads((docs / "evidence.json").read_text(encoding="utf-8"))
    made = pages(content, has_pictures=True)
    for name, text in made.items():
        assert (docs / name).read_text(encoding="utf-8") == text, name
    assert {f"evidence/{path.name}" for path in (docs / "evidence").glob("*.md")} == set(made) - {
        "evidence.md"
    }
    kept = {(run["setting"], run["seed"]) for run in content["runs"]}
    assert kept == set(read_runs(docs / "evidence" / "runs", content["epochs"]))
    links = json.loads((ROOT / "docs" / "evidence" / "links.json").read_text(encoding="utf-8"))
    assert content["links_beside_geometry"] == links
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    told = {row["setting"]: row["numbers"] for row in content["tables"]["components"]["rows"]}
    for setting, words in {"deformable_detr": "Deformable DETR", "vild": "VILD", "clnet": "CL-Net:"}.items():
        recall = told[setting]["iou=0.5"]["recall"]
        row = next(line for line in readme.splitlines() if line.startswith(f"| {words}"))
        assert row.split(" | ", 1)[1] == " | ".join(percent(recall[t]) for t in ("0.25", "0.5", "1")) + " |"


def test_runs_of_different_phantoms_are_not_put_side_by_side():
    other = kept_run("vild", 0)
    other.content["data_fingerprint"] = "0ther"
    with pytest.raises(ValueError, match="different phantoms"):
        Numbers({("vild", 0): other, ("clnet", 0): kept_run("clnet", 0)})


def test_links_of_the_evidence_pages_lead_somewhere_and_their_commands_are_understood():
    docs = ROOT / "docs"
    for page in (docs / "evidence").glob("*.md"):
        text = page.read_text(encoding="utf-8")
        for target in re.findall(r"\]\(([^)#\s]+)", text):
            assert (page.parent / target).exists(), f"{page.name}: {target}"
        for command in re.findall(r"```bash\n\./scripts/(\w+)(.*)\n```", text):
            {"ablation": ablation, "compare_links": compare_links}[command[0]].options_of(
                shlex.split(command[1])
            )
    front = (docs / "evidence.md").read_text(encoding="utf-8")
    assert len(front.split()) < 1500
    index = (docs / "evidence" / "README.md").read_text(encoding="utf-8")
    written = json.loads((docs / "evidence.json").read_text(encoding="utf-8"))["tables"]
    assert all(f"]({name}.md)" in index for name in written)
