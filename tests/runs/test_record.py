"""The local record of a run: complete, in order, without secrets, whatever happens to the run."""

import json
import shutil
import subprocess

import pytest
from small_training import break_off, resume_after, small_evaluator, small_trainer

import clnet
from clnet.data.datalist import DatalistError
from clnet.runs import provenance
from clnet.runs.cost import Cost
from clnet.runs.record import RunRecord, read_metrics, read_run

PROVENANCE = {"config": {"lr": 0.1}, "seed": 7, "command": ["python", "train"]}


def train(run_dir, max_epochs=3, resumed_after=0, broken_by=None):
    evaluator = small_evaluator()
    trainer = small_trainer([Cost(), RunRecord(run_dir, PROVENANCE, evaluator)], evaluator, max_epochs)
    if resumed_after:
        resume_after(trainer, resumed_after)
    if broken_by:
        break_off(trainer, 6, broken_by)
    trainer.run()


def lines(run_dir, kind):
    return [line for line in read_metrics(run_dir) if line["kind"] == kind]


def test_every_epoch_has_its_mean_losses_and_learning_rates(tmp_path):
    train(tmp_path)
    training = lines(tmp_path, "training")
    assert [(line["epoch"], line["iteration"]) for line in training] == [(1, 4), (2, 8), (3, 12)]
    # Iterations 5 to 8 have a mean of 6.5.
    assert training[1]["losses"] == {"loss": 19.5, "detection_class": 6.5, "link_class": 13.0}
    assert training[1]["learning_rates"] == {"backbone": 0.1, "other": 1.0}
    assert 0 < training[1]["seconds"] < 5
    assert 0 < training[0]["cpu_seconds"] <= training[1]["cpu_seconds"]


def test_every_validation_has_its_metrics_that_are_numbers(tmp_path):
    train(tmp_path)
    validation = lines(tmp_path, "validation")
    assert [line["epoch"] for line in validation] == [1, 2, 3]
    assert validation[1]["metrics"] == {"mean_recall": 0.75, "recall@0.25": 0.375}


def test_a_finished_run_says_how_it_ended_and_what_was_best(tmp_path):
    train(tmp_path)
    run = read_run(tmp_path)
    assert run["status"] == "finished"
    assert run["best"] == {"metric": "mean_recall", "value": 0.75, "epoch": 2}
    assert run["cost"]["pairs_per_second"] > 0
    assert run["seed"] == 7
    assert run["config"] == {"lr": 0.1}


@pytest.mark.parametrize(
    ("error", "status"), [(RuntimeError("broken"), "failed"), (KeyboardInterrupt(), "interrupted")]
)
def test_a_run_that_breaks_off_says_so_and_the_error_is_raised(tmp_path, error, status):
    with pytest.raises(type(error)):
        train(tmp_path, broken_by=error)
    assert read_run(tmp_path)["status"] == status
    assert [line["epoch"] for line in lines(tmp_path, "training")] == [1]
    assert "broken" not in (tmp_path / "run.json").read_text(), "a message may name a patient's file"


def test_a_resumed_run_goes_on_in_the_same_file_without_double_lines(tmp_path):
    train(tmp_path)
    first = read_metrics(tmp_path)
    train(tmp_path, max_epochs=4, resumed_after=2)
    assert [line["epoch"] for line in lines(tmp_path, "training")] == [1, 2, 3, 4]
    assert [line["epoch"] for line in lines(tmp_path, "validation")] == [1, 2, 3, 4]
    assert read_metrics(tmp_path)[:4] == first[:4], "what is not repeated stays"
    assert [start["iteration"] for start in read_run(tmp_path)["starts"]] == [0, 8]
    assert read_run(tmp_path)["starts"][1]["command"] == ["python", "train"]


def test_resuming_a_finished_run_leaves_its_record_as_it_is(tmp_path):
    train(tmp_path)
    before = [(tmp_path / name).read_bytes() for name in ("run.json", "metrics.jsonl")]
    train(tmp_path, resumed_after=3)
    assert [(tmp_path / name).read_bytes() for name in ("run.json", "metrics.jsonl")] == before


def test_a_line_that_was_being_written_when_the_run_was_killed_does_no_harm(tmp_path):
    train(tmp_path, max_epochs=2)
    with (tmp_path / "metrics.jsonl").open("a") as file:
        file.write('{"kind": "training", "epo')
    train(tmp_path, resumed_after=2)
    assert [line["epoch"] for line in lines(tmp_path, "training")] == [1, 2, 3]


def test_a_loss_that_is_not_a_number_leaves_the_file_readable(tmp_path, monkeypatch):
    monkeypatch.setattr("small_training.RECALLS", [float("nan")] * 3)
    train(tmp_path)
    text = (tmp_path / "metrics.jsonl").read_text()
    parsed = [json.loads(line, parse_constant=pytest.fail) for line in text.splitlines()]
    assert parsed[1]["metrics"]["mean_recall"] is None


def test_only_the_first_process_writes(tmp_path):
    trainer = small_trainer([])
    trainer.state.rank = 1
    RunRecord(tmp_path / "run", PROVENANCE).attach(trainer)
    trainer.run()
    assert not (tmp_path / "run").exists()


@pytest.fixture
def data_set(tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "cc.dcm").write_bytes(b"12345")
    (folder / "mlo.dcm").write_bytes(b"123")
    pair = {"pair_id": "p", "patient_id": "q", "laterality": "L", "cc": {"image": "cc.dcm"}}
    content = {"schema": 1, "name": "n", "training": [pair | {"mlo": {"image": "mlo.dcm"}}], "test": []}
    (folder / "datalist.json").write_text(json.dumps(content))
    return folder


def test_the_fingerprint_of_data_depends_on_its_images_and_not_on_their_folders(tmp_path, data_set):
    original = provenance.data_fingerprint(data_set)
    assert provenance.data_fingerprint(data_set / "datalist.json") == original
    copy = shutil.copytree(data_set, tmp_path / "elsewhere")
    assert provenance.data_fingerprint(copy) == original
    listed = tmp_path / "listed" / "datalist.json"
    listed.parent.mkdir()
    listed.write_text((data_set / "datalist.json").read_text().replace('"cc.dcm', f'"{copy / "cc.dcm"}'))
    listed.write_text(listed.read_text().replace('"mlo.dcm', '"../elsewhere/mlo.dcm'))
    assert provenance.data_fingerprint(listed) == original
    (copy / "mlo.dcm").write_bytes(b"1234")
    changed = provenance.data_fingerprint(copy)
    assert changed != original
    (copy / "mlo.dcm").unlink()
    assert provenance.data_fingerprint(copy) not in (original, changed)


def test_a_datalist_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(DatalistError, match=r"datalist\.json"):
        provenance.data_fingerprint(tmp_path / "datalist.json")
    (tmp_path / "datalist.json").write_text('{"training": [{"cc": 3}]}')
    with pytest.raises(DatalistError, match=r"datalist\.json"):
        provenance.data_fingerprint(tmp_path)


def test_facts_tell_data_code_versions_and_command(data_set, monkeypatch):
    monkeypatch.setattr("sys.orig_argv", ["/home/me/bin/train", "--max_epochs", "3"])
    found = provenance.run_provenance({"lr": 0.1}, data_set, seed=3)
    assert found["config"] == {"lr": 0.1}
    assert found["seed"] == 3
    assert found["data_fingerprint"] == provenance.data_fingerprint(data_set)
    assert found["versions"]["clnet"]
    assert found["versions"]["torch"]
    assert found["command"] == ["train", "--max_epochs", "3"]
    json.dumps(found)


def test_the_commit_is_that_of_the_checkout_and_tells_of_changes(tmp_path, monkeypatch):
    (tmp_path / "clnet").mkdir()
    source = tmp_path / "clnet" / "__init__.py"
    source.write_text("")
    monkeypatch.setattr(clnet, "__file__", str(source))
    assert provenance.git_commit() is None, "not a checkout"

    def git(*words):
        who = ["-c", "user.name=n", "-c", "user.email=e@example.org"]
        done = subprocess.run(["git", *who, *words], cwd=tmp_path, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    git("init")
    git("add", ".")
    git("commit", "-m", "first")
    git("tag", "-a", "v1", "-m", "v1")
    commit = git("rev-parse", "HEAD")
    assert provenance.git_commit() == commit
    source.write_text("changed = True\n")
    assert provenance.git_commit() == f"{commit}-dirty"


def test_settings_and_commands_show_no_secrets():
    settings = {
        "tracking_uri": "https://user:word@host/path",
        "server": {"password": "word", "api_key": ["word"]},
        "link_tokens": 16,
        "path": "/data/user@host/x",
    }
    assert provenance.without_secrets(settings) == {
        "tracking_uri": "https://***@host/path",
        "server": {"password": "***", "api_key": ["***"]},
        "link_tokens": 16,
        "path": "/data/user@host/x",
    }
    command = ["run", "--token", "word", "--secret=word", "--seed", "1", "--uri=http://u:word@h", "--token"]
    assert provenance.command_without_secrets(command) == [
        *("run", "--token", "***", "--secret=***", "--seed", "1", "--uri=http://***@h", "--token")
    ]
