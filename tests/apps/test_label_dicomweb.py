"""The MONAI Label app on a DICOMweb server: a real Orthanc, asked over HTTP."""

import os
import shutil

import numpy as np
import pydicom
import pytest
import torch
from label_client import Client, labels_of
from label_server import NO_SCORING, start_server
from label_training import QUICK, finished, said, spoil, train
from servers import DICOMWEB_PLUGIN, ask_orthanc, start_orthanc

from clnet.findings.lesions import merge_into_lesions
from clnet.findings.types import read_findings
from clnet.phantom.dataset import PhantomSettings, make_phantom
from clnet.predict.folder_run import PredictSettings, predict

pytestmark = pytest.mark.skipif(
    not (shutil.which("Orthanc") and DICOMWEB_PLUGIN.exists()) and not os.environ.get("CI"),
    reason="needs Orthanc (Debian: orthanc orthanc-dicomweb)",
)

MIN_SCORE = 0.3  # of the phantom's model


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A phantom; the images of one breast are two series of a view each, those of the others one series."""
    folder = tmp_path_factory.mktemp("dicomweb")
    make_phantom(folder / "phantom", PhantomSettings(pairs=12, seed=3), workers=1)
    for file in (folder / "phantom" / "images").glob("*.dcm"):
        image = pydicom.dcmread(file)
        if not file.name.startswith("00000_L"):
            image.SeriesInstanceUID = f"{image.StudyInstanceUID}.1"
            image.save_as(file)
    return folder


@pytest.fixture(scope="module")
def uids(folder):
    """The tags of each file, by its name."""
    return {file.name: pydicom.dcmread(file) for file in (folder / "phantom" / "images").glob("*.dcm")}


@pytest.fixture(scope="module")
def client(folder):
    with start_orthanc(folder) as orthanc:
        for file in sorted((folder / "phantom" / "images").glob("*.dcm")):
            assert ask_orthanc(orthanc, "/instances", file.read_bytes())["Status"] == "Success"
        with start_server(f"{orthanc}/dicom-web", folder / "app", **NO_SCORING) as address:
            yield Client(address)


def test_images_are_named_by_their_sop_instance_and_paired_by_the_servers_metadata(client, folder, uids):
    images = client.get("/datastore/", output="all")["objects"]
    assert set(images) == {tags.SOPInstanceUID for tags in uids.values()}
    pairs = {(pair["cc"], pair["mlo"]) for pair in client.get("/clnet/pairs")["pairs"]}
    expected = {
        (tags.SOPInstanceUID, uids[name.replace("_CC", "_MLO")].SOPInstanceUID)
        for name, tags in uids.items()
        if "_CC" in name
    }
    assert pairs == expected
    assert not list((folder / "app" / "dicomweb").rglob("*.dcm"))  # nothing was fetched for that


def test_infer_finds_what_predict_finds_in_the_files(client, folder, uids):
    torch.set_num_threads(1)
    settings = PredictSettings("phantom", device="cpu", workers=0, batch_size=1)
    images = folder / "files"
    shutil.copytree(folder / "phantom" / "images", images)
    predict(images, folder / "predicted", settings)
    pairs = {pair.pair_id: pair for pair in read_findings(folder / "predicted" / "findings.json")}
    boxes = 0
    for name, tags in uids.items():
        if "_CC" not in name:
            continue
        answer = client.good(client.infer(tags.SOPInstanceUID))
        findings = pairs[answer["pair_id"]]
        expected = [lesion for lesion in merge_into_lesions(findings, MIN_SCORE) if lesion.cc is not None]
        assert [box["score"] for box in answer["boxes"]] == [
            findings.cc.scores[lesion.cc.index] for lesion in expected
        ]
        for box, lesion in zip(answer["boxes"], expected, strict=True):
            assert np.array_equal(np.float32(box["box"]), findings.cc.boxes[lesion.cc.index])
        assert answer["partner"] == uids[name.replace("_CC", "_MLO")].SOPInstanceUID
        boxes += len(expected)
    assert boxes >= 2
    report = client.infer(answer["image"], output="image", report="measurements")
    assert report.headers["content-type"] == "application/dicom"


def test_a_series_names_its_only_view_and_is_refused_if_it_has_several(client, uids):
    alone, several = uids["00000_L_CC.dcm"], uids["00001_L_CC.dcm"]
    answer = client.good(client.infer(alone.SeriesInstanceUID))
    assert answer["image"] == alone.SOPInstanceUID
    refused = client.infer(several.SeriesInstanceUID)
    assert refused.status_code == 422
    assert "holds 4 CC and MLO images" in refused.json()["detail"]
    assert several.SOPInstanceUID in refused.json()["detail"]
    info = client.get("/datastore/image/info", image=several.SOPInstanceUID)
    assert info["SeriesInstanceUID"] == several.SeriesInstanceUID
    assert info["StudyInstanceUID"] == several.StudyInstanceUID
    assert "PatientID" not in info


def test_a_labelled_pair_is_no_longer_suggested(client, folder, uids):
    label = labels_of(folder / "phantom" / "datalist.json")["00001_L_CC.dcm"]
    cc, mlo = (uids[f"00001_L_{view}.dcm"].SOPInstanceUID for view in ("CC", "MLO"))
    pair = client.pair_of(cc)["pair_id"]
    saved = client.good(client.put_label(pair, label))
    assert saved["label"] == label
    assert client.get("/datastore/")["completed"] == 2
    assert client.ask("GET", "/datastore/label", params={"label": mlo, "tag": "final"}).json() == label["mlo"]
    offered = {
        client.good(client.ask("POST", "/activelearning/disagreement", json={}))["pair_id"] for _ in range(12)
    }
    assert len(offered) == 11
    assert pair not in offered
    assert client.good(client.ask("DELETE", f"/clnet/pairs/{pair}/label"))["label"] is None


def test_pixels_are_served(client, uids):
    tags = uids["00002_R_MLO.dcm"]
    pair = next(
        pair for pair in client.get("/clnet/pairs")["pairs"] if pair["mlo"] == str(tags.SOPInstanceUID)
    )
    answer = client.ask("GET", f"/clnet/pairs/{pair['pair_id']}/mlo/pixels")
    assert (answer.headers["X-Rows"], answer.headers["X-Columns"]) == (str(tags.Rows), str(tags.Columns))
    assert np.frombuffer(answer.content, "<u2").max() == 65535


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("POST", "/infer/clnet?image=1.2.3", 404),
        ("POST", "/infer/clnet?image=../../orthanc.json", 404),
        ("GET", "/datastore/image?image=../../orthanc.json", 404),
        ("DELETE", "/datastore/?id=1.2.3", 422),
        ("GET", "/proxy/dicom/..%2finstances", 404),
        ("GET", "/proxy/dicom/nothing", 404),
    ],
)
def test_invalid_requests_get_a_clear_response(client, method, path, status):
    answer = client.ask(method, path)
    assert answer.status_code == status, answer.text


def test_a_model_trained_on_labels_of_the_server_is_used_afterwards(client, folder, uids):
    labels = labels_of(folder / "phantom" / "datalist.json")
    name_of = {str(tags.SOPInstanceUID): name for name, tags in uids.items()}
    pairs = client.get("/clnet/pairs")["pairs"]
    for pair in pairs:
        client.good(client.put_label(pair["pair_id"], labels[name_of[pair["cc"]]]))
    spoil(folder / "app" / "model" / "clnet" / "models" / "model.pt")
    before = client.good(client.infer(pairs[0]["cc"]))["model"]
    train(client, **QUICK)
    assert finished(client)["status"] == "DONE", said(client)
    (outcome,) = client.get("/info/")["train_stats"]["clnet"]["trainings"]
    assert outcome["taken"]
    assert client.good(client.infer(pairs[0]["cc"]))["model"] != before
