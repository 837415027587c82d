"""The ablation: its runs are those of its tables, each is made once, an interrupted one is resumed."""

import json
import re
import shlex
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from ablation import COMMAND, main, options_of, plan_of, wanted
from ablations.kept import differences, read_runs
from ablations.runs import (
    DECIDES,
    EXPERIMENT,
    Plan,
    RunError,
    shell,
    train,
    training_cpu_seconds,
    training_seconds,
)
from ablations.settings import SETTINGS
from ablations.tables import TABLES, Row, Table
from mlflow import MlflowClient
from random_findings import random_datalist
from warm_processes import InsteadOfPopen

from clnet.data.datalist import write_datalist
from clnet.runs.command_line import check_command_line, run_config
from clnet.runs.provenance import data_fingerprint

ROOT = Path(__file__).parents[2]


@pytest.fixture
def plan(tmp_path):
    datalist = random_datalist(4)
    write_datalist(datalist, tmp_path / "data" / "datalist.json")
    return Plan("vild", 3, 12, tmp_path / "output", tmp_path / "data")


@pytest.mark.parametrize("name", SETTINGS)
def test_the_commands_of_a_setting_name_options_that_exist(name, plan, monkeypatch):
    monkeypatch.chdir(ROOT)
    wanted_run = Plan(name, 0, 12, plan.output, plan.data)
    check_command_line(wanted_run.training()[2:])
    check_command_line(wanted_run.evaluating("test")[2:])


def test_every_setting_is_in_a_table_and_every_row_is_a_setting_of_its_data():
    rows = [(row.setting, name) for name, table in TABLES.items() for row in table.rows]
    assert sorted(name for name, _ in rows) == sorted(set(dict(rows)))
    starts = {setting.start for setting in SETTINGS.values()} - {""}
    assert set(dict(rows)) | starts <= set(SETTINGS)
    assert all(SETTINGS[setting].data == table for setting, table in rows)


def test_a_training_is_as_long_as_its_config_says(plan, monkeypatch):
    monkeypatch.chdir(ROOT)
    for name in ("geometric", "clnet", "geometric_film", "vild_film"):
        own = run_config(["training", "--config_file", str(files_of(name))])
        assert SETTINGS[name].epochs == own["max_epochs"]


def files_of(name):
    return [f"bundle/configs/{config}.yaml" for config in ("train", *SETTINGS[name].configs)]


def test_settings_do_what_their_names_say(plan, monkeypatch):
    monkeypatch.chdir(ROOT)

    def network(name):
        return run_config(Plan(name, 0, 12, plan.output, plan.data).training())["network_def"]

    assert network("geometric")["matcher"]["_target_"].endswith("GeometricLinker")
    assert network("clnet")["matcher"]["loss"]["temperature"] == 0.1
    assert network("vild_film")["matcher"]["_target_"].endswith("NoMatcher")
    assert network("vild_film")["encoder"]["backbone"]["name"] == "resnet18"


def test_first_seeds_come_first_and_films_only_where_they_are():
    names = list(wanted(options_of([])))
    assert len(names) == len(set(names)) == 23
    assert [seed for _, seed in names] == sorted(seed for _, seed in names)
    assert ("clnet", 4) in names
    assert ("vild", 3) not in names
    films = list(wanted(options_of(["--only", "film", "--film", "films", "--seeds", "2"])))
    assert {name for name, _ in films} == {row.setting for row in TABLES["film"].rows}
    assert ("paired_query_film", 1) not in films
    assert ("clnet_film", 1) in films
    assert ("clnet_film", 2) not in films


def test_a_kept_run_counts_until_a_setting_or_the_data_changes(plan, monkeypatch):
    monkeypatch.chdir(ROOT)
    kept = {"settings": plan.settings(), "data_fingerprint": "f00d"}
    assert list(differences(kept, plan, "f00d")) == []
    assert list(differences(kept, plan, "other")) == ["different data"]
    kept["settings"]["learning_rate"] = "0.1"
    assert list(differences(kept, plan, "f00d")) == ["learning_rate was 0.1, is 0.001"]
    kept["settings"] = replace(plan, words=("--width", "32")).settings()
    width_of_the_encoder, *_ = differences(kept, plan, "f00d")  # which the network only refers to
    assert width_of_the_encoder == "network_def.encoder.width was 32, is 64"
    kept["settings"] = replace(plan, words=("--average_momentum", "1.0")).settings()
    assert list(differences(kept, plan, "f00d")) == ["average_momentum was 1.0, is 0.002"]
    kept["settings"] = plan.settings()
    del kept["settings"]["learning_rate"]  # which did not exist when the run was made
    kept["settings"]["loss._target_"] = "a.former.Name"
    assert list(differences(kept, plan, "f00d")) == []


def test_the_documented_command_need_not_train_the_kept_runs_again(plan, monkeypatch):
    monkeypatch.chdir(ROOT)
    options = options_of(shlex.split(COMMAND)[1:])
    folders = dict.fromkeys(("film", "phantom", "patient"), plan.data)
    for (name, seed), run in read_runs(ROOT / "docs" / "evidence" / "runs").items():
        wanted_run = plan_of(name, seed, options, folders, "")
        assert list(differences(run.content, wanted_run, run.content["data_fingerprint"])) == [], name


WIRING = {
    *("device", "workers", "cache_dir", "cache_rate", "save_interval", "show_bars", "shipped_weights"),
    *("bundle_root", "output_dir", "dataset_dir", "phantom_dir", "phantom_pairs", "datalist", "run_name"),
    *("run_dir", "ckpt_dir", "resume", "experiment", "parent_run", "tracking_uri", "variant", "imports"),
    *("cached", "network", "validated", "train", "validate", "initialize", "training", "run"),
    *("protocol", "min_score", "min_consistency", "consistency"),  # of reports and of evaluate.yaml
}
"""What changes no weights and no findings that tables count, or is described by other values."""


def test_every_value_of_the_config_decides_or_is_known_not_to(plan, monkeypatch):
    monkeypatch.chdir(ROOT)
    config = run_config(replace(plan, name="geometric").training())
    referred_to = {value[1:] for value in re.findall(r"@\w+", json.dumps(config["network_def"]))}
    assert set(config) - {*DECIDES} - referred_to - WIRING == set()
    assert not {*DECIDES} & WIRING


def test_where_the_weights_of_the_backbone_lie_does_not_matter_and_is_not_kept(plan, monkeypatch):
    monkeypatch.chdir(ROOT)
    here, there = (
        replace(plan, name="geometric_film", words=("--backbone_weights", f"/{folder}/resnet18.pth"))
        for folder in ("here", "there")
    )
    kept = {"settings": here.settings(), "data_fingerprint": "f00d"}
    assert "/here" not in json.dumps(kept)
    assert list(differences(kept, there, "f00d")) == []


def state_of(plan, status, **changed):
    """Make the folder of a training in that state."""
    plan.folder.mkdir(parents=True, exist_ok=True)
    (plan.folder / "last.pt").touch()
    config = {**run_config(plan.training()), **changed}
    run = {"status": status, "config": config, "data_fingerprint": data_fingerprint(plan.data)}
    (plan.folder / "run.json").write_text(json.dumps(run))


def test_a_training_starts_resumes_or_is_done(plan, monkeypatch):
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


def test_a_training_on_films_may_start_from_one_on_the_phantom(plan, monkeypatch):
    monkeypatch.chdir(ROOT)
    options = options_of(["--output", str(plan.output), "--backbone-weights", "resnet18.pth"])
    folders = {"film": plan.data, "phantom": plan.data.parent / "phantom"}
    ours = plan_of("pretrained_film", 2, options, folders, "")
    assert (ours.start.name, ours.start.seed, ours.start.data) == ("pretraining", 0, folders["phantom"])
    assert run_config(ours.start.training())["size"] == [256, 128]
    assert run_config(ours.training())["size"] == [512, 256]
    assert f"'{ours.start.folder / 'model.pt'}'" in run_config(ours.training())["network"]
    assert "network" not in ours.start.training()
    assert "resnet18.pth" in ours.start.training()


def test_an_evaluation_takes_the_weights_of_its_training(plan):
    words = plan.evaluating("validation")
    assert words[words.index("--weights") + 1].endswith("vild-seed3/model.pt")
    assert words[words.index("--section") + 1] == "validation"


def test_a_command_that_fails_is_reported_with_its_last_line(tmp_path):
    call, _ = shell({})
    with pytest.raises(RunError, match=r"clnet: no such thing \(log: .*log\)"):
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
    table = Table("Tiny", "One row.", (Row("vild", "VILD", 1, (76.1,)),), iou=0.5)
    for module in ("ablation", "ablations.evidence", "ablations.page"):  # each imported the name
        monkeypatch.setattr(f"{module}.TABLES", {"phantom": table})
    monkeypatch.setattr("ablations.runs.subprocess", SimpleNamespace(Popen=InsteadOfPopen))
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    monkeypatch.chdir(ROOT)
    said = []
    for _ in range(2):
        main(
            [
                *("--epochs", "1", "--output", str(tmp_path / "output"), "--docs", str(tmp_path / "docs")),
                *("--pairs", "24", "--resamples", "20", "--", "--size", "[64, 48]", "--batch_size", "4"),
                *("--width", "32", "--val_interval", "1"),
            ]
        )
        said.append(capsys.readouterr().out)
    assert "finished  vild-seed0" in said[0]
    assert "kept      vild-seed0" in said[1]
    assert "started" not in said[1]
    assert "| VILD |" in (tmp_path / "docs" / "evidence" / "phantom.md").read_text()
    run = json.loads((tmp_path / "docs" / "evidence" / "runs" / "vild-seed0.json").read_text())
    assert run["settings"]["max_epochs"] == "1"
    assert str(tmp_path) not in json.dumps(run)
    client = MlflowClient(f"sqlite:///{tmp_path}/output/mlflow.db")
    experiment = client.get_experiment_by_name(EXPERIMENT)
    found = {run.info.run_name: run for run in client.search_runs([experiment.experiment_id])}
    parent = found.pop("ablation")
    assert len(found) == 3  # a training, evaluated on two sections
    assert {run.data.tags["mlflow.parentRunId"] for run in found.values()} == {parent.info.run_id}
    assert parent.info.status == "FINISHED"
