"""Runs side by side."""

import json
import shutil
import warnings

import numpy as np
import pytest
from random_findings import random_datalist, random_findings

from clnet.cli.main import main
from clnet.data.datalist import write_datalist
from clnet.evaluation.compare import ComparisonError, compare
from clnet.evaluation.folder import evaluate_files
from clnet.evaluation.protocols import EvaluationSettings
from clnet.evaluation.record import read_record
from clnet.findings.types import Detections, Findings, PairFindings, write_findings
from clnet.runs.mlflow_evaluations import read_runs

QUICK = EvaluationSettings(resamples=50)


def evaluated(folder, name, datalist=None, settings=QUICK, **findings):
    datalist = datalist or random_datalist(60)
    write_datalist(datalist, folder / "data" / name / "datalist.json")
    write_findings(random_findings(datalist["test"], model=name, **findings), folder / f"{name}.json")
    evaluate_files(folder / "data" / name, folder / f"{name}.json", "test", folder / name, settings)
    return str(folder / name)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    return {
        "weak": evaluated(folder, "weak", skill=0.5),
        "strong": evaluated(folder, "strong", skill=3, seed=2),
        "other": evaluated(folder, "other", skill=0.5, seed=3),
    }


def test_a_record_comes_back_as_it_was(tmp_path):
    datalist = random_datalist(20)
    write_datalist(datalist, tmp_path / "datalist.json")
    write_findings(random_findings(datalist["test"]), tmp_path / "f.json")
    made = evaluate_files(tmp_path, tmp_path / "f.json", "test", tmp_path / "out", QUICK).record
    read = read_record(tmp_path / "out")
    assert list(read.pair_keys) == list(made.pair_keys)
    for iou in (0.2, 0.5):
        np.testing.assert_array_equal(read.curves[iou].found_at, made.curves[iou].found_at)
        np.testing.assert_array_equal(read.curves[iou].false_positives, made.curves[iou].false_positives)
        np.testing.assert_array_equal(np.stack(read.links[iou]), np.stack(made.links[iou]))


def test_a_difference_is_that_of_the_two_evaluations(runs):
    weak, strong = read_runs([runs["weak"], runs["strong"]])
    found = compare([weak, strong], resamples=500)["runs"]["strong"]["iou=0.5"]
    for rate, difference in found["recall"].items():
        values = [run.metrics["detection"]["iou=0.5"]["recall"][rate]["value"] for run in (strong, weak)]
        assert difference["value"] == pytest.approx(values[0] - values[1])
        assert difference["low"] <= difference["value"] <= difference["high"]
    for name, difference in found["links"].items():
        values = [run.metrics["links"]["iou=0.5"]["all"][name]["value"] for run in (strong, weak)]
        assert difference["value"] == pytest.approx(values[0] - values[1])


def test_a_better_run_is_significantly_better_and_an_equal_one_is_not(runs):
    compared = compare(read_runs([runs["weak"], runs["strong"], runs["other"]]), resamples=1000)["runs"]
    strong, other = (compared[name]["iou=0.2"]["mean_recall"] for name in ("strong", "other"))
    assert strong["low"] > 0
    assert strong["p"] == pytest.approx(2 / 1001)
    assert other["low"] < 0 < other["high"]
    assert other["p"] > 0.05


def test_a_run_does_not_differ_from_itself(runs, tmp_path):
    shutil.copytree(runs["weak"], tmp_path / "again")
    compared = compare(read_runs([runs["weak"], str(tmp_path / "again")]), resamples=100)
    assert compared["runs"]["again"]["iou=0.5"]["recall"]["1"] == {"value": 0, "low": 0, "high": 0, "p": 1}


def test_swapping_runs_turns_the_sign(runs):
    there = compare(read_runs([runs["weak"], runs["other"]]), 200)["runs"]["other"]["iou=0.5"]["recall"]["2"]
    back = compare(read_runs([runs["other"], runs["weak"]]), 200)["runs"]["weak"]["iou=0.5"]["recall"]["2"]
    assert back["value"] == -there["value"]
    assert back["p"] == there["p"]
    assert back["low"] == pytest.approx(-there["high"])


def test_what_is_hard_for_both_runs_cancels_out_of_their_difference(runs, tmp_path):
    """The same findings but for one pair in ten: independent resamples would add up both runs' spreads."""
    datalist = random_datalist(60)
    nearly = random_findings(datalist["test"], skill=0.5)
    blind = [
        PairFindings(pair.pair_id, **dict.fromkeys(pair.views, Detections())) if number % 10 == 0 else pair
        for number, pair in enumerate(nearly)
    ]
    write_datalist(datalist, tmp_path / "datalist.json")
    write_findings(Findings("nearly", tuple(blind)), tmp_path / "nearly.json")
    evaluate_files(tmp_path, tmp_path / "nearly.json", "test", tmp_path / "nearly", QUICK)
    weak, nearly = read_runs([runs["weak"], str(tmp_path / "nearly")])
    paired = compare([weak, nearly], 1000)["runs"]["nearly"]["iou=0.2"]["recall"]["4"]
    alone = [run.metrics["detection"]["iou=0.2"]["recall"]["4"] for run in (weak, nearly)]
    independent = np.hypot(*(one["high"] - one["low"] for one in alone))
    assert 0 < paired["high"] - paired["low"] < 0.75 * independent


def test_runs_on_other_pairs_lesions_or_settings_are_refused(runs, tmp_path):
    fewer = evaluated(tmp_path, "fewer", random_datalist(50))
    moved = evaluated(tmp_path, "moved", random_datalist(60, seed=9))
    strict = evaluated(tmp_path, "strict", settings=EvaluationSettings(resamples=50, count_duplicates=True))
    elsewhere = evaluated(tmp_path, "elsewhere", settings=EvaluationSettings(ious=(0.3,), resamples=50))
    for run, words in (
        (fewer, "weak and fewer: 10 pairs are in only one of them"),
        (moved, "weak and moved: the same pairs, but different patients, views or lesions"),
        (strict, "weak was evaluated with count_duplicates False, strict with True"),
        (elsewhere, "no IoU threshold in common"),
    ):
        with pytest.raises(ComparisonError, match=words):
            compare(read_runs([runs["weak"], run]), 10)
    with pytest.raises(ComparisonError, match="1 run given"):
        compare(read_runs([runs["weak"]]), 10)
    with pytest.raises(ComparisonError, match="two runs are named"):
        compare(read_runs([runs["weak"], runs["weak"]]), 10)


def test_the_command_prints_a_table_and_writes_numbers_and_a_picture(runs, tmp_path, capsys):
    options = ["--resamples", "100", "--output", str(tmp_path / "c")]
    arguments = ["compare", runs["weak"], runs["strong"], *options]
    assert main(arguments) == 0
    said = capsys.readouterr().out
    assert "strong − weak, IoU ≥ 0.5" in said
    assert "R@0.25" in said
    compared = json.loads((tmp_path / "c" / "comparison.json").read_text(encoding="utf-8"))
    assert compared["reference"] == "weak"
    assert (tmp_path / "c" / "froc.png").read_bytes().startswith(b"\x89PNG")


def test_a_folder_without_an_evaluation_is_named(tmp_path, capsys):
    assert main(["compare", str(tmp_path), str(tmp_path)]) == 2
    assert "metrics.json: there is no such file" in capsys.readouterr().err
    (tmp_path / "metrics.json").write_text('{"schema": 1}')
    assert main(["compare", str(tmp_path), str(tmp_path)]) == 2
    assert "metrics.json: not an evaluation" in capsys.readouterr().err
    (tmp_path / "metrics.json").write_text('{"schema": 1, "detection": {}, "settings": {}}')
    (tmp_path / "record.npz").write_text("no arrays")
    assert main(["compare", str(tmp_path), str(tmp_path)]) == 2
    assert "record.npz: cannot be read" in capsys.readouterr().err


@pytest.mark.slow
def test_runs_are_fetched_from_mlflow(runs, tmp_path, monkeypatch, capsys):
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.chdir(tmp_path)
    uri = f"sqlite:///{(tmp_path / 'mlflow.db').as_posix()}"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        client = mlflow.MlflowClient(uri)
        experiment = client.create_experiment("e", (tmp_path / "artifacts").as_uri())
        ids = [client.create_run(experiment).info.run_id for _ in range(3)]
    # At the top of the artifacts, or in a folder of theirs.
    for run_id, name, place in zip(ids, ("weak", "strong"), ("evaluation", None), strict=False):
        client.log_artifacts(run_id, runs[name], place)
    arguments = ["compare", *(f"mlflow:{run_id}" for run_id in ids[:2]), "--resamples", "50"]
    assert main([*arguments, "--tracking-uri", uri]) == 0
    assert f"mlflow:{ids[1]} − mlflow:{ids[0]}" in capsys.readouterr().out
    assert main(["compare", f"mlflow:{ids[0]}", f"mlflow:{ids[2]}", "--tracking-uri", uri]) == 2
    assert "its artifacts hold no metrics.json" in capsys.readouterr().err
    assert main(["compare", f"mlflow:{ids[0]}", "mlflow:nobody", "--tracking-uri", uri]) == 2
    assert "mlflow:nobody" in capsys.readouterr().err


def test_mlflow_is_asked_only_where_it_is_known(monkeypatch, capsys):
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    assert main(["compare", "mlflow:x", "mlflow:y"]) == 2
    assert "--tracking-uri" in capsys.readouterr().err
