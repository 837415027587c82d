"""Training in the MONAI Label app: labels in, a better model out, or the old one kept."""

import json

import pytest
from label_client import Client, labels_of
from label_server import NO_SCORING, start_server
from label_training import QUICK, finished, said, spoil, train
from mlflow.tracking import MlflowClient
from servers import wait_for

from clnet.data.datalist import read_datalist
from clnet.phantom.dataset import PhantomSettings, make_phantom
from clnet.predict.shipped import copy_bundle


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A phantom, and a bundle whose model ranks its detections the wrong way round."""
    folder = tmp_path_factory.mktemp("training")
    make_phantom(folder / "phantom", PhantomSettings(pairs=20, seed=3), workers=1)
    copy_bundle(folder / "bundle", "phantom")
    spoil(folder / "bundle" / "models" / "model.pt")
    return folder


@pytest.fixture(scope="module")
def client(folder):
    words = ("--conf", "bundle", folder / "bundle")
    with start_server(folder / "phantom" / "images", folder / "app", *words, **NO_SCORING) as address:
        yield Client(address)


def test_labels_of_fewer_than_two_patients_are_reported_as_too_few(client):
    train(client)
    task = finished(client)
    assert task["status"] == "ERROR"
    assert "training needs at least two" in task["details"][-1]


def test_params_that_are_not_numbers_never_reach_the_bundle(client):
    train(client, max_epochs="$__import__('os').system('true')")
    task = finished(client)
    assert task["status"] == "ERROR"
    assert "expected a number such as 10" in task["details"][-1]


def test_a_better_model_becomes_the_current_one(client, folder):
    labels = labels_of(folder / "phantom" / "datalist.json")
    pairs = client.get("/clnet/pairs")["pairs"]
    for pair in pairs[:16]:
        client.good(client.put_label(pair["pair_id"], labels[pair["cc"]]))
    shown = pairs[0]["pair_id"]
    before = client.get(f"/clnet/pairs/{shown}/findings", min_score=0)
    train(client, **QUICK)
    wait_for(
        lambda: "epoch 1/4: loss" in said(client),
        lambda: client.get("/train/")["status"] == "ERROR" and said(client),
    )
    task = finished(client)
    assert task["status"] == "DONE", said(client)
    (outcome,) = client.get("/info/")["train_stats"]["clnet"]["trainings"]
    assert outcome["taken"]
    assert outcome["mean_recall"]["new"] > outcome["mean_recall"]["current"]
    assert outcome["pairs"]["training"] + outcome["pairs"]["validation"] == 16
    after = client.get(f"/clnet/pairs/{shown}/findings", min_score=0)
    assert after["model"] != before["model"]
    assert after["lesions"] != before["lesions"]
    assert client.infer(pairs[0]["cc"]).json()["model"] == after["model"]
    assert (folder / "app" / "model" / "clnet" / "models" / "previous.pt").read_bytes() == (
        folder / "bundle" / "models" / "model.pt"
    ).read_bytes()


def test_the_datalist_has_the_labels_and_keeps_the_breasts_of_a_patient_together(client, folder):
    datalist = read_datalist(folder / "app" / "labelled")  # which refuses a patient in two sections
    labels = labels_of(folder / "phantom" / "datalist.json")
    pairs = [pair for section in ("training", "validation") for pair in datalist[section]]
    assert len(pairs) == 16
    for pair in pairs:
        expected = labels[pair.cc.image.name]
        for view in ("cc", "mlo"):
            assert pair.views[view].boxes.tolist() == expected[view]["boxes"]
            assert list(pair.views[view].lesion_ids) == expected[view]["lesion_ids"]
    assert any(len(view.boxes) for pair in datalist["validation"] for view in pair.views.values())
    names = {pair.pair_id.partition("_")[0] for pair in pairs} | {pair.patient_id for pair in pairs}
    assert not any(name.startswith("PHANTOM") for name in names)


def test_the_runs_are_in_mlflow(folder):
    store = MlflowClient(f"sqlite:///{folder / 'app' / 'runs' / 'mlflow.db'}")
    experiment = store.get_experiment_by_name("label")
    runs = store.search_runs([experiment.experiment_id])
    names = sorted(run.info.run_name.rpartition("-")[2] for run in runs)
    assert {"current", "new"} <= set(names)
    assert len(runs) == 3


def test_a_model_that_is_not_better_is_dropped_and_sections_stay(client, folder):
    sections = folder / "app" / "model" / "sections.json"
    weights = folder / "app" / "model" / "clnet" / "models" / "model.pt"
    before, kept = json.loads(sections.read_text()), weights.read_bytes()
    labels = labels_of(folder / "phantom" / "datalist.json")
    for pair in client.get("/clnet/pairs")["pairs"][16:]:
        client.good(client.put_label(pair["pair_id"], labels[pair["cc"]]))
    train(client, max_epochs=1, learning_rate=0.0000001, batch_size=8)
    assert finished(client)["status"] == "DONE", said(client)
    outcome = client.get("/info/")["train_stats"]["clnet"]["trainings"][-1]
    assert not outcome["taken"]
    assert weights.read_bytes() == kept
    after = json.loads(sections.read_text())
    assert before.items() <= after.items()
    assert len(after) > len(before)


def test_training_can_be_stopped(client):
    train(client, **{**QUICK, "max_epochs": 1000})
    wait_for(lambda: "/1000: loss" in said(client))
    assert client.ask("DELETE", "/train/").status_code == 200
    assert finished(client)["status"] == "STOPPED"
    assert client.ask("GET", "/train/?check_if_running=true").status_code == 404
