"""The ablation: its runs are what its tables say, and its numbers those of the evaluations."""

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from ablation import main, options_of, wanted
from ablations.data import half, with_view
from ablations.false_positives import look_at_false_positives
from ablations.figure import draw
from ablations.kept import KeptRun, differences, read_runs
from ablations.numbers import Numbers
from ablations.outcome import image_views, pack, unpack
from ablations.page import evidence, page
from ablations.runs import EXPERIMENT, Plan, RunError, shell, train, training_cpu_seconds, training_seconds
from ablations.settings import SETTINGS
from ablations.tables import TABLES
from mlflow import MlflowClient
from page_text import percent
from random_findings import random_datalist, random_findings

from clnet.data.datalist import write_datalist
from clnet.data.pair import Pair, View
from clnet.evaluation.bootstrap import draw_patients
from clnet.evaluation.metrics import EvaluationSettings, evaluate
from clnet.evaluation.resampled import statistics
from clnet.inference.findings import Detections, Findings, PairFindings
from clnet.training.command_line import check_command_line, run_config
from clnet.training.facts import data_fingerprint

ROOT = Path(__file__).parents[2]
QUICK = EvaluationSettings(resamples=1)


def outcome_of(skill=1.0, seed=1, pairs=60, **findings):
    """The outcome of random findings as text, and the evaluation that it is of."""
    datalist = random_datalist(pairs)
    found = random_findings(datalist["test"], skill=skill, seed=seed, **findings)
    evaluation = evaluate(datalist["test"], found, QUICK)
    return pack(evaluation.record, image_views(datalist["test"])), evaluation


def kept_run(setting, seed, **findings):
    text, _ = outcome_of(seed=seed + 1, **findings)
    part = {"outcome": text, "seconds": 3.0, "metrics": {}}
    return KeptRun(
        {
            **{"setting": setting, "seed": seed, "epochs": 12, "git_commit": "c0de" * 10},
            **{"training_seconds": 60.0, "best": {"epoch": 8}, "data_fingerprint": "f00d", "settings": {}},
            "machine": {"processor": "one", "cores": 2},
            "pairs": {"training": 9, "validation": 9, "test": 60},
            "sections": {"test": part, "validation": part},
        }
    )


@pytest.fixture
def plan(tmp_path):
    datalist = random_datalist(4)
    write_datalist(datalist, tmp_path / "data" / "datalist.json")
    return Plan("temperature_1", 3, 12, tmp_path / "output", tmp_path / "data")


@pytest.mark.parametrize("name", SETTINGS)
def test_the_commands_of_a_setting_name_options_that_exist(name, plan, monkeypatch):
    monkeypatch.chdir(ROOT)
    wanted_run = Plan(name, 0, 12, plan.output, plan.data)
    check_command_line(wanted_run.training()[2:])
    check_command_line(wanted_run.evaluating("test")[2:])


def test_every_setting_stands_in_a_table_and_the_other_way_round():
    assert {row.setting for table in TABLES.values() for row in table.rows} == set(SETTINGS)
    for table in TABLES.values():
        assert {name for pair in table.contrasts for name in pair} <= {row.setting for row in table.rows}
        assert all(len(row.labels) == len(table.heads) for row in table.rows)


def test_settings_do_what_their_names_say(plan, monkeypatch):
    monkeypatch.chdir(ROOT)

    def config(name):
        return run_config(Plan(name, 0, 12, plan.output, plan.data).training())

    assert config("temperature_1")["loss"]["loss"]["link"]["temperature"] == 1.0
    assert config("clnet")["loss"]["loss"]["link"]["temperature"] == 0.1
    assert config("no_auxiliary_3")["loss"]["loss"]["link"]["auxiliary"] is False
    assert config("add_0.25")["loss"]["loss"]["link"]["cost_method"] == "add"
    assert config("encoder_2")["network"]["encoder_layers"] == 2
    assert config("vild_queries_40")["network"]["match_learning"] == "none"


def test_a_run_that_serves_several_tables_is_wanted_once_and_main_tables_come_first():
    names = list(wanted(options_of(["--seeds", "2"])))
    assert len(names) == len(set(names))
    twice = [name for name, seed in names if seed == 1]
    assert set(twice) == {
        *("deformable_detr", "vild", "linker_only", "clnet", "pair_verification", "paired_query"),
        *("pair_score_0.25", "pair_score_0.5"),  # evaluations of clnet
    }
    assert names.index(("paired_query", 1)) < names.index(("add_0.25", 0))
    assert list(wanted(options_of(["--only", "temperature"]))) == [("temperature_1", 0), ("clnet", 0)]


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
    expected = evaluate(with_view(datalist, "mlo")["test"], alone, QUICK).metrics["detection"]
    outcome = unpack(pack(whole.record, image_views(datalist["test"])))
    record = outcome.of_view("mlo")
    once = np.ones((1, record.patients))
    for iou, here in statistics(record, once).items():
        for rate, recall in here.recall.items():
            assert recall[0] == pytest.approx(expected[f"iou={iou:g}"]["recall"][rate]["value"])


def test_half_of_the_data_is_half_of_the_training_patients_and_nothing_else():
    datalist = random_datalist(8)
    training = tuple(random_datalist(41).sections["test"])
    renamed = [
        type(pair)(f"t{pair.pair_id}", f"t{pair.patient_id}", pair.laterality, pair.cc, pair.mlo)
        for pair in training
    ]
    datalist = type(datalist)("d", {"training": tuple(renamed), "test": datalist["test"]})
    less = half(datalist)
    patients = [{pair.patient_id for pair in one["training"]} for one in (less, datalist)]
    assert len(patients[0]) == len(patients[1]) // 2
    assert less["test"] == datalist["test"]


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


def test_rows_that_were_not_run_say_so_and_orders_against_the_papers_are_told():
    runs = {("vild", 0): kept_run("vild", 0, skill=3), ("clnet", 0): kept_run("clnet", 0, skill=0.5)}
    content = evidence(Numbers(runs, resamples=100), 12, "./scripts/ablation")
    text = page(content, has_picture=False)
    assert re.search(r"^\|  \|  \| not run \|", text, re.MULTILINE)
    assert "The paper has *both: CL-Net* above *VILD* by 2.0; here the difference is -" in text
    assert "Not run yet: `./scripts/ablation --only encoder_depth`." not in text  # CL-Net is in it
    assert json.loads(json.dumps(content, allow_nan=False))["runs"][0]["setting"] == "vild"


def test_the_picture_shows_tables_with_something_to_compare(tmp_path):
    runs = {("vild", 0): kept_run("vild", 0, skill=3), ("clnet", 0): kept_run("clnet", 0, skill=0.5)}
    one = {("clnet", 0): runs["clnet", 0]}
    for known, is_drawn in ((runs, True), (one, False)):
        tables = evidence(Numbers(known, resamples=10), 12, "")["tables"]
        tables.pop("single_view")  # CL-Net alone has two rows there
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
    look = look_at_false_positives(
        pairs, Findings("", tuple(PairFindings(f"{n}", cc) for n, cc in enumerate(findings)))
    )
    # By the rule of the tables the mimic at 0.7 and the empty place at 0.6 pass, the mimic at 0.3 does not.
    # With duplicates counted the two at 0.8 are all that pass.
    assert look == {"recall": 0.875, "recall_duplicates_counted": 0.5, "on_mimics": 0.5}


def test_the_page_tells_of_false_positives_where_runs_were_looked_at():
    runs = {("clnet", 0): kept_run("clnet", 0), ("vild", 1): kept_run("vild", 1, skill=0.6)}
    look = {"recall": 0.5, "recall_duplicates_counted": 0.25, "on_mimics": 0.125}
    runs["vild", 1].content["sections"]["test"]["false_positives"] = look
    text = page(evidence(Numbers(runs, 20), 12, "command"), has_picture=False)
    assert "| VILD, none | 1 | 50.0 | 25.0 | 12.5 |" in text
    assert text.count("A closer look") == 2  # in the two tables in which VILD stands on the test section


def test_the_page_of_evidence_and_the_readme_tell_the_numbers_that_are_kept():
    content = json.loads((ROOT / "docs" / "evidence.json").read_text(encoding="utf-8"))
    assert (ROOT / "docs" / "evidence.md").read_text(encoding="utf-8") == page(content, has_picture=True)
    kept = {(run["setting"], run["seed"]) for run in content["runs"]}
    assert kept == set(read_runs(ROOT / "docs" / "evidence" / "runs", content["epochs"]))
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


def test_a_kept_run_counts_until_a_setting_or_the_data_changes(plan, monkeypatch):
    monkeypatch.chdir(ROOT)
    kept = {"settings": plan.settings(), "data_fingerprint": "f00d"}
    assert list(differences(kept, plan, "f00d")) == []
    assert list(differences(kept, plan, "other")) == ["other data"]
    kept["settings"]["learning_rate"] = "0.1"
    assert list(differences(kept, plan, "f00d")) == ["learning_rate was 0.1, is 0.001"]
    del kept["settings"]["learning_rate"]  # a word that did not exist when the run was made
    assert list(differences(kept, plan, "f00d")) == []


def state_of(plan, status, **changed):
    """Make the folder of a training in that state."""
    plan.folder.mkdir(parents=True, exist_ok=True)
    (plan.folder / "last.pt").touch()
    config = {**run_config(plan.training()), **changed}
    run = {"status": status, "config": config, "data_fingerprint": data_fingerprint(plan.data)}
    (plan.folder / "run.json").write_text(json.dumps(run))


def test_a_training_begins_goes_on_or_is_done(plan, monkeypatch):
    monkeypatch.chdir(ROOT)
    called = []

    def how():
        called.clear()
        train(plan, lambda words, log: called.append(words[words.index("--resume") + 1]))
        return called

    assert how() == ["False"]
    state_of(plan, "running")
    assert how() == ["True"]
    state_of(plan, "finished")
    assert how() == []
    state_of(plan, "finished", learning_rate=0.5)
    assert how() == ["False"]
    assert not plan.folder.exists()  # of other settings
    plan.folder.mkdir()  # cut off before its first checkpoint
    assert how() == ["False"]
    assert not plan.folder.exists()


def test_a_row_that_is_only_evaluated_takes_the_weights_of_another(plan):
    refined = Plan("pair_score_0.5", 3, 12, plan.output, plan.data)
    words = refined.evaluating("validation")
    assert words[words.index("--weights") + 1].endswith("clnet-seed3-12epochs/model.pt")
    assert words[words.index("--validate#postprocessing#pair_score_weight") + 1] == "0.5"
    assert refined.folder.name == "clnet-seed3-12epochs"


def test_a_command_that_fails_is_told_by_its_last_words(tmp_path):
    call, _ = shell({})
    with pytest.raises(RunError, match=r"clnet: no such thing \(all of it: .*log\)"):
        call(["-c", "import sys; sys.exit('first\\nclnet: no such thing\\n')"], tmp_path / "log")


def test_the_time_of_a_training_is_without_the_pause_between_its_starts(tmp_path):
    starts = [{"time": "2030-01-01T00:00:00+00:00"}, {"time": "2030-01-01T02:00:00+00:00"}]
    run = {"starts": starts, "ended": "2030-01-01T02:00:30+00:00"}
    (tmp_path / "run.json").write_text(json.dumps(run))
    began = 1893456000  # 2030-01-01
    lines = [{"time": began + 100, "cpu_seconds": 70}, {"time": began + 7220, "cpu_seconds": 15}]
    (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert training_seconds(tmp_path) == pytest.approx(130)
    assert training_cpu_seconds(tmp_path) == 85
    (tmp_path / "metrics.jsonl").write_text(json.dumps({"time": began + 100}) + "\n")
    assert training_cpu_seconds(tmp_path) is None


@pytest.mark.slow
def test_a_tiny_ablation_from_nothing_and_once_more(tmp_path, monkeypatch, capsys):
    for name in set(TABLES) - {"temperature"}:
        monkeypatch.delitem(TABLES, name)
    monkeypatch.setitem(
        TABLES, "temperature", replace(TABLES["temperature"], rows=TABLES["temperature"].rows[1:])
    )
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    monkeypatch.chdir(ROOT)
    said = []
    for _ in range(2):
        main(
            [
                *("--budget", "1", "--output", str(tmp_path / "output"), "--docs", str(tmp_path / "docs")),
                *("--pairs", "24", "--resamples", "20", "--", "--size", "[64, 48]", "--batch_size", "4"),
                *("--network#width", "32", "--val_interval", "1"),
            ]
        )
        said.append(capsys.readouterr().out)
    assert "finished  clnet-seed0-1epochs" in said[0]
    assert "kept      clnet-seed0-1epochs" in said[1]
    assert "begun" not in said[1]
    text = (tmp_path / "docs" / "evidence.md").read_text()
    assert "| **0.1** |" in text
    run = json.loads((tmp_path / "docs" / "evidence" / "runs" / "clnet-seed0-1epochs.json").read_text())
    assert run["settings"]["max_epochs"] == "1"
    client = MlflowClient(f"sqlite:///{tmp_path}/output/mlflow.db")
    experiment = client.get_experiment_by_name(EXPERIMENT)
    found = {run.info.run_name: run for run in client.search_runs([experiment.experiment_id])}
    parent = found.pop("ablation-1epochs")
    assert len(found) == 3  # a training, evaluated on two sections
    assert {run.data.tags["mlflow.parentRunId"] for run in found.values()} == {parent.info.run_id}
    assert parent.info.status == "FINISHED"
