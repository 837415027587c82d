"""The ablation: its runs are those of its tables, each is made once, an interrupted one is resumed."""

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from ablation import main, options_of, wanted
from ablations.data import half
from ablations.kept import differences, read_runs
from ablations.runs import EXPERIMENT, Plan, RunError, shell, train, training_cpu_seconds, training_seconds
from ablations.settings import SETTINGS
from ablations.tables import TABLES
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
    return Plan("temperature_1", 3, 12, tmp_path / "output", tmp_path / "data")


@pytest.mark.parametrize("name", [name for name, setting in SETTINGS.items() if not setting.removed])
def test_the_commands_of_a_setting_name_options_that_exist(name, plan, monkeypatch):
    monkeypatch.chdir(ROOT)
    wanted_run = Plan(name, 0, 12, plan.output, plan.data)
    check_command_line(wanted_run.training()[2:])
    check_command_line(wanted_run.evaluating("test")[2:])


def test_every_setting_is_in_a_table_and_every_row_is_a_setting():
    assert {row.setting for table in TABLES.values() for row in table.rows} == set(SETTINGS)
    for table in TABLES.values():
        assert {name for pair in table.contrasts for name in pair} <= {row.setting for row in table.rows}
        assert all(len(row.labels) == len(table.heads) for row in table.rows)


def test_settings_do_what_their_names_say(plan, monkeypatch):
    monkeypatch.chdir(ROOT)

    def config(name):
        return run_config(Plan(name, 0, 12, plan.output, plan.data).training())

    def link_loss(name):
        return config(name)["network_def"]["matcher"]["loss"]

    assert link_loss("temperature_1")["temperature"] == 1.0
    assert link_loss("clnet")["temperature"] == 0.1
    assert link_loss("no_auxiliary_3")["auxiliary"] is False
    assert link_loss("add_0.25")["cost_method"] == "add"
    assert config("encoder_2")["network_def"]["encoder"]["layers"] == 2
    network = config("vild_queries_40")["network_def"]
    assert network["matcher"]["_target_"].endswith("NoMatcher")
    assert network["detector"]["object_queries"] == 40


def test_a_run_that_serves_several_tables_is_wanted_once_and_main_tables_come_first():
    names = list(wanted(options_of(["--seeds", "2"])))
    assert len(names) == len(set(names))
    twice = [name for name, seed in names if seed == 1]
    assert set(twice) == {
        *("deformable_detr", "vild", "linker_only", "clnet", "pair_verification", "paired_query"),
        *("one_view", "geometric", "clnet_patient", "geometric_patient"),
    }
    assert names.index(("paired_query", 1)) < names.index(("add_0.25", 0))
    films = {name for name, _ in wanted(options_of(["--only", "film", "--film", "films"]))}
    assert films == {row.setting for row in TABLES["film"].rows}
    assert list(wanted(options_of(["--only", "temperature"]))) == [("temperature_1", 0), ("clnet", 0)]


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


def test_a_kept_run_counts_until_a_setting_or_the_data_changes(plan, monkeypatch):
    monkeypatch.chdir(ROOT)
    kept = {"settings": plan.settings(), "data_fingerprint": "f00d"}
    assert list(differences(kept, plan, "f00d")) == []
    assert list(differences(kept, plan, "other")) == ["different data"]
    kept["settings"]["learning_rate"] = "0.1"
    assert list(differences(kept, plan, "f00d")) == ["learning_rate was 0.1, is 0.001"]
    del kept["settings"]["learning_rate"]  # which did not exist when the run was made
    kept["settings"]["loss._target_"] = "a.former.Name"
    assert list(differences(kept, plan, "f00d")) == []


def test_the_kept_runs_need_not_be_trained_again(plan, monkeypatch):
    monkeypatch.chdir(ROOT)
    """But for those of 12 epochs, which an earlier train.yaml made."""
    for epochs in (16, 24):
        for (name, seed), run in read_runs(ROOT / "docs" / "evidence" / "runs", epochs).items():
            wanted_run = Plan(name, seed, epochs, plan.output, plan.data)
            assert list(differences(run.content, wanted_run, run.content["data_fingerprint"])) == [], name


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


def test_an_evaluation_takes_the_weights_of_its_training(plan):
    words = plan.evaluating("validation")
    assert words[words.index("--weights") + 1].endswith("temperature_1-seed3-12epochs/model.pt")
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
    table = TABLES["temperature"]
    for module in ("ablation", "ablations.evidence", "ablations.page"):  # each imported the name
        monkeypatch.setattr(f"{module}.TABLES", {"temperature": replace(table, rows=table.rows[:1])})
    monkeypatch.setattr("ablations.evidence.QUESTIONS", [])  # of other tables
    monkeypatch.setattr("ablations.runs.subprocess", SimpleNamespace(Popen=InsteadOfPopen))
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    monkeypatch.chdir(ROOT)
    said = []
    for _ in range(2):
        main(
            [
                *("--budget", "1", "--output", str(tmp_path / "output"), "--docs", str(tmp_path / "docs")),
                *("--pairs", "24", "--resamples", "20", "--", "--size", "[64, 48]", "--batch_size", "4"),
                *("--width", "32", "--val_interval", "1"),
            ]
        )
        said.append(capsys.readouterr().out)
    assert "finished  temperature_1-seed0-1epochs" in said[0]
    assert "kept      temperature_1-seed0-1epochs" in said[1]
    assert "started" not in said[1]
    text = (tmp_path / "docs" / "evidence" / "temperature.md").read_text()
    assert "| 1, as in the paper |" in text
    run = json.loads(
        (tmp_path / "docs" / "evidence" / "runs" / "temperature_1-seed0-1epochs.json").read_text()
    )
    assert run["settings"]["max_epochs"] == "1"
    client = MlflowClient(f"sqlite:///{tmp_path}/output/mlflow.db")
    experiment = client.get_experiment_by_name(EXPERIMENT)
    found = {run.info.run_name: run for run in client.search_runs([experiment.experiment_id])}
    parent = found.pop("ablation-1epochs")
    assert len(found) == 3  # a training, evaluated on two sections
    assert {run.data.tags["mlflow.parentRunId"] for run in found.values()} == {parent.info.run_id}
    assert parent.info.status == "FINISHED"
