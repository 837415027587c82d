"""The MONAI Label app on a folder: the real server, asked over HTTP."""

import gzip
import json
import shutil
import subprocess

import numpy as np
import pydicom
import pytest
import requests
import torch
from label_client import Client, labels_of
from label_server import PYTHON, ROOT, needs_venv, start_server
from PIL import Image
from pins import differing_pins, pins
from servers import wait_for

from clnet.data.reader import read_image
from clnet.findings.lesions import merge_into_lesions
from clnet.findings.types import read_findings
from clnet.phantom.dataset import PhantomSettings, make_phantom
from clnet.predict.folder_run import PredictSettings, predict

FILM = ROOT / "tests" / "data" / "cbis-ddsm" / "left_cc.dcm"

MIN_SCORE = 0.3  # of the phantom's model


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A phantom; and in its studies a breast without MLO, one with a broken MLO, PNG pairs, and a film."""
    folder = tmp_path_factory.mktemp("label")
    make_phantom(folder / "phantom", PhantomSettings(pairs=12, seed=7), workers=1)
    studies = folder / "phantom" / "images"
    (studies / "00004_R_MLO.dcm").unlink()
    broken = studies / "00005_R_MLO.dcm"
    broken.write_bytes(broken.read_bytes()[:2000])
    (studies / "sub").mkdir()
    for view in ("CC", "MLO"):
        grey = read_image(studies / f"00002_R_{view}.dcm").pixels
        write_png(studies / "sub" / f"case 7_R_{view}.png", grey)
    shutil.copy(FILM, studies)
    (folder / "secret.dcm").write_bytes((studies / "00000_L_CC.dcm").read_bytes())
    (studies / "link.dcm").symlink_to(folder / "secret.dcm")
    return folder


def write_png(file, grey):
    Image.fromarray((grey / grey.max() * 65535).astype(np.uint16)).save(file)


@pytest.fixture(scope="module")
def client(folder):
    with start_server(folder / "phantom" / "images", folder / "app") as address:
        yield Client(address)


@pytest.fixture(scope="module")
def labels(folder):
    return labels_of(folder / "phantom" / "datalist.json")


@pytest.fixture(scope="module")
def predicted(folder):
    """What `clnet predict` says of the same files, pair by pair, by one thread: rounding depends on both."""
    output = folder / "predicted"
    torch.set_num_threads(1)
    settings = PredictSettings("phantom", device="cpu", workers=0, batch_size=1)
    predict(folder / "phantom" / "images", output, settings)
    return output


def expected_lesions(predicted, pair_id):
    pair = next(pair for pair in read_findings(predicted / "findings.json") if pair.pair_id == pair_id)
    return pair, merge_into_lesions(pair, MIN_SCORE)


def test_info_lists_the_tasks_of_the_app(client):
    info = client.get("/info/")
    assert info["labels"] == ["mass"]
    assert info["models"]["clnet"]["type"] == "detection"
    assert info["trainers"]["clnet"]["config"]["max_epochs"] == 10
    assert set(info["strategies"]) == {"random", "disagreement"}
    assert set(info["scoring"]) == {"disagreement"}


def test_the_datastore_lists_dicom_and_png_in_subfolders_too(client):
    images = client.get("/datastore/", output="all")["objects"]
    assert {"00000_L_CC.dcm", "sub/case 7_R_CC.png", "sub/case 7_R_MLO.png"} <= set(images)
    assert client.get("/datastore/")["total"] == len(images) == 23 + 2 + 2


def test_dicom_is_paired_as_in_predict_and_png_by_file_names(client, predicted):
    listed = client.get("/clnet/pairs")
    summary = json.loads((predicted / "summary.json").read_text())
    assert {pair["breast_id"] for pair in summary["analysed"]} <= {
        pair["pair_id"] for pair in listed["pairs"]
    }
    one_view = next(pair for pair in listed["pairs"] if pair["cc"] == "00004_R_CC.dcm")
    assert one_view["mlo"] is None
    png = next(pair for pair in listed["pairs"] if pair["cc"] == "sub/case 7_R_CC.png")
    assert (png["mlo"], png["laterality"]) == ("sub/case 7_R_MLO.png", "R")
    left_out = {item["image"]: item["reason"] for item in listed["left_out"]}
    assert "secondary capture" in left_out["left_cc.dcm"]


def test_findings_are_those_of_predict(client, predicted):
    linked = 0
    for pair in client.get("/clnet/pairs")["pairs"]:
        if pair["cc"].endswith(".png"):
            continue
        findings, lesions = expected_lesions(predicted, pair["pair_id"])
        answer = client.get(f"/clnet/pairs/{pair['pair_id']}/findings")
        assert len(answer["lesions"]) == len(lesions)
        for got, lesion in zip(answer["lesions"], lesions, strict=True):
            assert (got["score"], got["link_score"]) == (lesion.score, lesion.link_score)
            for view in ("cc", "mlo"):
                seen = getattr(lesion, view)
                if seen is None:
                    assert got[view] is None
                else:
                    detections = findings.views[view]
                    assert np.array_equal(np.float32(got[view]["box"]), detections.boxes[seen.index])
                    assert got[view]["score"] == detections.scores[seen.index]
            linked += lesion.is_linked
    assert linked >= 2
    assert answer["notice"] == "Phantom model, not for patients"


def test_infer_returns_the_boxes_of_the_image_with_the_linked_box_of_its_partner(client, predicted):
    kinds = set()
    for name in ("00001_L", "00002_R", "00002_L"):
        for view, other in (("cc", "mlo"), ("mlo", "cc")):
            image, partner = f"{name}_{view.upper()}.dcm", f"{name}_{other.upper()}.dcm"
            answer = client.good(client.infer(image))
            findings, lesions = expected_lesions(predicted, answer["pair_id"])
            assert (answer["view"], answer["partner"]) == (view, partner)
            shown = [lesion for lesion in lesions if getattr(lesion, view) is not None]
            assert len(answer["boxes"]) == len(shown)
            for got, lesion in zip(answer["boxes"], shown, strict=True):
                here = getattr(lesion, view).index
                assert got["score"] == findings.views[view].scores[here]
                assert np.array_equal(np.float32(got["box"]), findings.views[view].boxes[here])
                kinds.add(got["seen_in"])
                if lesion.is_linked:
                    there = getattr(lesion, other).index
                    assert got["seen_in"] == "both views"
                    assert got["partner"]["image"] == partner
                    assert got["partner"]["link_score"] == lesion.link_score
                    assert np.array_equal(
                        np.float32(got["partner"]["box"]), findings.views[other].boxes[there]
                    )
                else:
                    assert (got["seen_in"], got["partner"]) == ("one view only", None)
    assert kinds == {"both views", "one view only"}


def test_slicer_shows_the_boxes_where_itk_places_their_pixels(client, folder):
    answer = client.good(client.infer("00002_R_CC.dcm"))
    file = folder / "phantom" / "images" / "00002_R_CC.dcm"
    # SimpleITK reads images as Slicer does, and knows nothing of us.
    code = """
import json, sys, SimpleITK
image = SimpleITK.ReadImage(sys.argv[1])
corners = [image.TransformContinuousIndexToPhysicalPoint([x, y, 0.0]) for x, y in json.loads(sys.argv[2])]
print(json.dumps([corners, image.GetSpacing()[2]]))
"""
    assert answer["boxes"]
    # ITK counts from pixel centres.
    corners = (np.array([box["box"] for box in answer["boxes"]]).reshape(-1, 2) - 0.5).tolist()
    said = subprocess.run(
        [PYTHON, "-c", code, file, json.dumps(corners)], capture_output=True, text=True, check=True
    )
    points, depth = json.loads(said.stdout)
    ends = np.array(points).reshape(-1, 2, 3)
    for box, markup, (low, high) in zip(answer["boxes"], answer["markups"]["markups"], ends, strict=True):
        assert np.allclose(markup["center"], (low + high) / 2)
        assert np.allclose(markup["size"][:2], (high - low)[:2])
        assert markup["size"][2] == depth
        assert (markup["type"], markup["coordinateSystem"]) == ("ROI", "LPS")
        assert markup["measurements"][0]["value"] == box["score"]


def test_the_returned_file_is_slicers_markups_or_a_dicom_report_of_the_breast(client, folder):
    answer = client.good(client.infer("00002_R_CC.dcm"))
    assert client.infer("00002_R_CC.dcm", output="image").json() == answer["markups"]
    whole = client.infer("00002_R_CC.dcm", output="all")
    assert whole.headers["content-type"].startswith("multipart/form-data")
    boxes = {box["lesion_id"]: box["box"] for box in answer["boxes"]}
    sent = client.infer("00002_R_CC.dcm", output="image", report="measurements")
    assert sent.headers["content-type"] == "application/dicom"
    got = pydicom.dcmread(pydicom.filebase.DicomBytesIO(sent.content))
    image = pydicom.dcmread(folder / "phantom" / "images" / "00002_R_CC.dcm", stop_before_pixels=True)
    assert got.StudyInstanceUID == image.StudyInstanceUID
    (measured,) = (item for item in got.ContentSequence if name_of(item) == "Imaging Measurements")
    read = {}
    for group in measured.ContentSequence:
        items = {name_of(item): item for item in group.ContentSequence}
        lesion, view = items["Tracking Identifier"].TextValue.split()
        if view == "CC":
            points = np.array(items["Image Region"].GraphicData).reshape(-1, 2)
            read[lesion.removeprefix("R")] = [*points.min(0), *points.max(0)]
    assert read == {lesion: pytest.approx(box, abs=0.01) for lesion, box in boxes.items()}
    for report, modality in (("presentation", "PR"), ("picture", "OT"), ("cad", "SR")):
        sent = client.infer("00002_R_CC.dcm", output="image", report=report)
        assert pydicom.dcmread(pydicom.filebase.DicomBytesIO(sent.content)).Modality == modality


def name_of(item):
    return item.ConceptNameCodeSequence[0].CodeMeaning


def test_pixels_are_those_of_the_reader(client, folder):
    pair = client.pair_of("00001_L_CC.dcm")["pair_id"]
    grey = read_image(folder / "phantom" / "images" / "00001_L_CC.dcm").pixels
    expected = np.round((grey - grey.min()) / (grey.max() - grey.min()) * 65535)

    def pixels(answer):
        shape = int(answer.headers["X-Rows"]), int(answer.headers["X-Columns"])
        return np.frombuffer(answer.content, "<u2").reshape(shape)

    whole = pixels(client.ask("GET", f"/clnet/pairs/{pair}/cc/pixels"))
    assert whole.shape == grey.shape
    assert np.abs(whole - expected).max() <= 1
    half = pixels(client.ask("GET", f"/clnet/pairs/{pair}/cc/pixels?rows={grey.shape[0] // 2}"))
    by_hand = expected.reshape(grey.shape[0] // 2, 2, grey.shape[1] // 2, 2).mean((1, 3))
    assert np.abs(half - by_hand).max() <= 1
    packed = client.ask(
        "GET", f"/clnet/pairs/{pair}/cc/pixels", headers={"Accept-Encoding": "gzip"}, stream=True
    )
    assert packed.headers["Content-Encoding"] == "gzip"
    assert np.array_equal(np.frombuffer(gzip.decompress(packed.raw.data), "<u2"), whole.ravel())


def test_a_label_is_stored_with_both_images_and_served_by_the_stock_endpoints(client, labels):
    pair = client.pair_of("00000_R_CC.dcm")
    label = {
        "cc": {"boxes": [[10, 20, 30.5, 40]], "lesion_ids": ["a"]},
        "mlo": {"boxes": [], "lesion_ids": []},
    }
    saved = client.good(client.put_label(pair["pair_id"], label))
    assert saved["label"] == label
    assert client.get(f"/clnet/pairs/{pair['pair_id']}")["label"] == label
    assert client.pair_of("00000_R_CC.dcm")["labelled"]
    stock = client.ask("GET", "/datastore/label", params={"label": pair["cc"], "tag": "final"})
    assert stock.json() == label["cc"]
    info = client.get("/datastore/label/info", label=pair["mlo"], tag="final")
    assert info["pair_id"] == pair["pair_id"]
    assert client.get("/datastore/")["completed"] == 2
    gone = client.good(client.ask("DELETE", f"/clnet/pairs/{pair['pair_id']}/label"))
    assert gone["label"] is None
    assert client.get("/datastore/")["completed"] == 0
    sent = {"label": ("x.json", json.dumps(label["cc"]))}  # as a viewer saves
    client.good(client.ask("PUT", "/datastore/label", params={"image": pair["cc"]}, files=sent))
    assert client.get(f"/clnet/pairs/{pair['pair_id']}")["label"] == {"cc": label["cc"], "mlo": None}
    query = {"id": pair["cc"], "tag": "final"}
    assert client.ask("DELETE", "/datastore/label", params=query).status_code == 200
    assert client.get(f"/clnet/pairs/{pair['pair_id']}")["label"] is None


BOX = [10, 20, 30, 40]


@pytest.mark.parametrize(
    ("label", "words"),
    [
        ({"cc": {"boxes": [[10, 20, 30, 4000]], "lesion_ids": ["1"]}}, "outside the image of 224 columns"),
        ({"cc": {"boxes": [[30, 20, 10, 40]], "lesion_ids": ["1"]}}, "with x_min < x_max"),
        ({"cc": {"boxes": [BOX, BOX], "lesion_ids": ["1", "1"]}}, "a lesion has one box per view"),
        ({"cc": {"boxes": [BOX], "lesion_ids": []}}, "each box needs the id of its lesion"),
        ({"cc": {"boxes": [BOX], "lesion_ids": [1]}}, "a list of strings"),
        ({"cc": {"boxes": [BOX], "lesion_ids": ["\ud800"]}}, "a list of strings"),
        ({"cc": {"boxes": [[1, 2, 3, 10**400]], "lesion_ids": ["1"]}}, "a list of four numbers"),
        ({"cc": {"boxes": [["a", 1, 2, 3]], "lesion_ids": ["1"]}}, "a list of four numbers"),
        ({"cc": None, "mlo": None}, "the label has no view"),
        ({"lcc": None}, "invalid label"),
        ([], "invalid label"),
    ],
)
def test_an_invalid_label_is_refused(client, label, words):
    pair = client.pair_of("00000_L_CC.dcm")
    answer = client.put_label(pair["pair_id"], label)
    assert answer.status_code == 422
    assert words in answer.json()["detail"]
    assert client.get(f"/clnet/pairs/{pair['pair_id']}")["label"] is None


ETC = "../../../../../../etc/passwd"
BAD = [
    ("POST", "/infer/clnet?image=nope", {}, 404, "there is no image 'nope'"),
    ("POST", f"/infer/clnet?image={ETC}", {}, 404, "there is no image"),
    ("POST", "/infer/clnet?image=/etc/passwd", {}, 404, "there is no image at that path"),
    ("POST", "/infer/clnet", {"files": {"params": (None, '{"image": "/etc/passwd"}')}}, 422, ""),
    ("POST", "/infer/clnet", {"files": {"file": ("a.dcm", b"x")}}, 404, "there is no image"),
    ("POST", "/infer/clnet?image=link.dcm", {}, 422, "outside the studies"),
    ("POST", "/infer/other?image=00000_L_CC.dcm", {}, 404, "there is no model 'other'"),
    ("POST", "/infer/clnet?session_id=1", {}, 422, ""),
    ("POST", "/infer/clnet?image=00000_L_CC.dcm", {"files": {"params": (None, "{")}}, 422, "invalid request"),
    (
        "POST",
        "/infer/clnet?image=00000_L_CC.dcm",
        {"files": {"params": (None, "[1]")}},
        422,
        "invalid request",
    ),
    ("POST", "/infer/clnet?image=00000_L_CC.dcm&output=dicom_seg", {}, 422, "not supported"),
    ("POST", "/infer/clnet?image=00004_R_CC.dcm", {}, 422, "has no partner: the datastore has no MLO"),
    ("POST", "/infer/clnet?image=00005_R_MLO.dcm", {}, 422, "00005_R_MLO.dcm"),
    ("POST", "/infer/clnet?image=left_cc.dcm", {}, 422, "secondary capture"),
    ("POST", "/infer/wsi_v2/clnet?image=00000_L_CC.dcm", {}, 422, "whole-slide"),
    ("GET", "/datastore/image?image=nope", {}, 404, "there is no image"),
    ("GET", f"/datastore/image?image={ETC}", {}, 404, "there is no image"),
    ("GET", "/datastore/image?image=link.dcm", {}, 404, "outside the studies"),
    ("GET", "/datastore/image/info?image=nope", {}, 404, "there is no image"),
    ("GET", f"/datastore/label?label=00000_L_CC.dcm&tag={ETC}", {}, 422, "tag is"),
    ("GET", "/datastore/label?label=00000_L_CC.dcm&tag=final", {}, 404, ""),
    (
        "PUT",
        f"/datastore/label?image=00000_L_CC.dcm&tag={ETC}",
        {"files": {"label": ("x.json", "{}")}},
        422,
        "",
    ),
    (
        "PUT",
        "/datastore/label?image=nope",
        {"files": {"label": ("x.json", '{"boxes": [], "lesion_ids": []}')}},
        404,
        "",
    ),
    (
        "PUT",
        "/datastore/label?image=00000_L_CC.dcm",
        {"files": {"label": ("x.nii", b"\x00")}},
        422,
        "is not a label",
    ),
    (
        "PUT",
        "/datastore/label?image=00000_L_CC.dcm",
        {"files": {"label": ("label.json", b'{"boxes": [[1, 1, 9, 9]], "lesion_ids": ["\\ud800"]}')}},
        422,
        "is not a label",
    ),
    ("DELETE", "/datastore/label?id=00000_L_CC.dcm&tag=final", {}, 404, "has no label"),
    ("DELETE", "/datastore/?id=nope", {}, 404, "there is no image"),
    ("PUT", "/datastore/?image=a", {"files": {"file": ("a.dcm", b"no image")}}, 422, "is refused"),
    (
        "PUT",
        f"/datastore/?image={ETC}",
        {"files": {"file": ("a.dcm", FILM.read_bytes())}},
        422,
        "a plain name",
    ),
    ("PUT", "/datastore/?image=a", {"files": {"file": ("a.exe", FILM.read_bytes())}}, 422, "a plain name"),
    ("PUT", "/datastore/image/info?image=nope", {"data": {"info": "{}"}}, 404, "there is no image"),
    ("PUT", "/datastore/image/info?image=00000_L_CC.dcm", {"data": {"info": "{"}}, 422, ""),
    ("GET", "/datastore/dataset", {}, 422, ""),
    ("POST", "/train/other", {"json": {}}, 404, "there is no train task 'other'"),
    ("POST", "/train/clnet?run_sync=true", {"json": {}}, 422, "in the background"),
    ("POST", "/scoring/other", {"json": {}}, 404, "there is no scoring task 'other'"),
    ("POST", "/activelearning/other", {"json": {}}, 404, "no such strategy"),
    ("PUT", "/model/clnet", {"files": {"file": ("a.pt", b"x")}}, 403, "only training changes the model"),
    ("DELETE", "/model/clnet", {}, 403, "only training changes the model"),
    ("PUT", "/session/", {"files": {"files": ("a.zip", b"x")}}, 406, ""),
    ("GET", "/proxy/dicom/studies", {}, 503, "does not answer"),
    ("GET", "/clnet/pairs/nope", {}, 404, "there is no pair"),
    ("GET", "/clnet/pairs/nope/findings", {}, 404, "there is no pair"),
    ("GET", "/clnet/nothing.js", {}, 404, "there is no /clnet/nothing.js"),
    ("GET", "/clnet/app.py", {}, 404, "there is no /clnet/app.py"),
    ("GET", "/clnet/a%00/page.js", {}, 404, "there is no /clnet/a"),
    ("GET", "/info/", {"headers": {"Origin": "https://elsewhere.example"}}, 403, "pages of other sites"),
]


@pytest.mark.parametrize(("method", "path", "more", "status", "words"), BAD, ids=lambda v: str(v)[:60])
def test_invalid_requests_get_a_clear_response(client, folder, method, path, more, status, words):
    answer = client.ask(method, path, **more)
    assert answer.status_code == status, answer.text
    said = json.dumps(answer.json()["detail"])
    assert words in said
    assert str(folder) not in said
    assert "root:" not in answer.text


@pytest.mark.parametrize(
    "path", ["/clnet/../app.py", "/clnet/%2e%2e/app.py", "/clnet/..%2fapp.py", "/static/../../app.py"]
)
def test_paths_cannot_leave_the_page_folder(client, path):
    request = requests.Request("GET", client.address, headers=client.session.headers).prepare()
    request.url = f"{client.address}{path}"  # as it stands: requests would tidy it up
    answer = client.session.send(request, timeout=60)
    assert answer.status_code == 404
    assert "ClnetLabelApp" not in answer.text


def test_invalid_views_and_numbers_are_refused(client):
    pair = client.pair_of("00000_L_CC.dcm")["pair_id"]
    alone = client.pair_of("00004_R_CC.dcm")["pair_id"]
    for path, status in (
        (f"/clnet/pairs/{pair}/top/pixels", 422),
        (f"/clnet/pairs/{pair}/cc/pixels?rows=0", 422),
        (f"/clnet/pairs/{pair}/cc/pixels?rows=many", 422),
        (f"/clnet/pairs/{pair}/findings?min_score=2", 422),
        (f"/clnet/pairs/{alone}/mlo/pixels", 404),
    ):
        assert client.ask("GET", path).status_code == status
    for params, words in (
        ({"min_score": "high"}, "min_score is 'high'"),
        ({"alone": 1}, "alone is 1"),
        ({"report": "pdf"}, "report is 'pdf'"),
    ):
        answer = client.infer("00000_L_CC.dcm", **params)
        assert answer.status_code == 422
        assert words in answer.json()["detail"]
    png = client.infer("sub/case 7_R_CC.png", report="measurements")
    assert png.status_code == 422
    assert "not DICOM" in png.json()["detail"]


def test_a_single_view_is_analysed_on_request(client, predicted):
    answer = client.good(client.infer("00004_R_CC.dcm", alone=True, min_score=0.05))
    findings, _ = expected_lesions(predicted, answer["pair_id"])
    assert answer["partner"] is None
    assert {box["seen_in"] for box in answer["boxes"]} <= {"one view only"}
    assert len(answer["boxes"]) == len(merge_into_lesions(findings, 0.05))


def test_a_broken_partner_is_named_and_the_image_is_analysed_alone(client):
    answer = client.good(client.infer("00005_R_CC.dcm"))
    assert any(word.startswith("00005_R_MLO.dcm: ") for word in answer["warnings"])
    assert all(box["partner"] is None for box in answer["boxes"])


def test_a_batch_runs_every_image_and_names_what_is_refused(client):
    answers = client.good(client.ask("POST", "/batch/infer/clnet?images=all&run_sync=true", json={}))
    assert set(answers) == set(client.get("/datastore/", output="all")["objects"])
    assert answers["00002_R_CC.dcm"] == client.infer("00002_R_CC.dcm").json()
    assert "has no partner" in answers["00004_R_CC.dcm"]["refused"]


def test_an_uploaded_image_joins_the_studies(client, folder):
    film = {"file": ("new.dcm", FILM.read_bytes())}
    assert client.good(client.ask("PUT", "/datastore/", files=film)) == {"image": "new.dcm"}
    assert (folder / "phantom" / "images" / "new.dcm").read_bytes() == FILM.read_bytes()
    assert client.ask("PUT", "/datastore/", files=film).status_code == 422  # it is there
    assert client.ask("DELETE", "/datastore/?id=new.dcm").status_code == 200
    assert not (folder / "phantom" / "images" / "new.dcm").exists()


def test_the_next_sample_is_the_pair_whose_views_disagree_most(client):
    wait_for(lambda: client.get("/scoring/")["status"] in ("DONE", "ERROR"))
    gaps = {}
    for pair in client.get("/clnet/pairs")["pairs"]:
        if pair["mlo"] and pair["cc"] != "00005_R_CC.dcm":
            lesions = client.get(f"/clnet/pairs/{pair['pair_id']}/findings", min_score=0)["lesions"]
            scores = [
                [lesion[view]["score"] if lesion[view] else 0 for view in ("cc", "mlo")] for lesion in lesions
            ]
            gaps[pair["pair_id"]] = max([abs(cc - mlo) for cc, mlo in scores], default=0)
    first, second, *_ = sorted(gaps, key=gaps.get, reverse=True)
    for expected in (first, second):  # each pair once
        sample = client.good(client.ask("POST", "/activelearning/disagreement", json={}))
        assert sample["pair_id"] == expected
        assert sample["weight"] == pytest.approx(gaps[expected])
        assert sample["id"] in client.get("/datastore/", output="all")["objects"]
    assert client.good(client.ask("POST", "/activelearning/random", json={}))["id"]


@pytest.fixture(scope="module")
def inside(folder):
    """What the app's own code returns in its venv; one process for two tests, as its start is slow."""
    code = """
import asyncio, contextlib, json, sys
from fastapi import FastAPI
from clnet.apps.label.datastore import StudyFolder
from clnet.apps.label.pairs import find_image_pairs
from clnet.apps.label.server import app

found = [find_image_pairs(StudyFolder(path, ["*"])) for path in sys.argv[1:]]
faulty = FastAPI(exception_handlers=app.exception_handlers)
statuses = []

@faulty.get("/clnet/fault")
def fault(): raise KeyError("ours")

async def receive(): return {"type": "http.request"}
async def send(message): statuses.append(message.get("status"))
request = {"type": "http", "method": "GET", "path": "/clnet/fault", "query_string": b"", "headers": []}
with contextlib.suppress(KeyError):  # it also reaches the server's log
    asyncio.run(faulty(request, receive, send))
print(json.dumps({"pairs": [{pair.pair_id: pair.images for pair in pairs} for pairs in found],
                  "status": statuses[0]}))
"""
    needs_venv()
    make_phantom(folder / "listed", PhantomSettings(pairs=4, seed=7), workers=1)
    plain = folder / "plain"
    plain.mkdir()
    for file in (folder / "listed" / "images").iterdir():
        shutil.copy(file, plain / file.stem)
    said = subprocess.run(
        [PYTHON, "-c", code, folder / "listed", plain], capture_output=True, text=True, check=True
    )
    return json.loads(said.stdout.splitlines()[-1])


def test_a_datalist_names_the_pairs_and_any_ending_may_be_an_image(inside, folder):
    by_datalist, by_tags = inside["pairs"]
    datalist = json.loads((folder / "listed" / "datalist.json").read_text())
    pairs = [pair for section in ("training", "validation", "test") for pair in datalist[section]]
    assert by_datalist == {
        pair["pair_id"]: {view: pair[view]["image"] for view in ("cc", "mlo")} for pair in pairs
    }
    assert sorted(images["cc"] for images in by_tags.values()) == [
        "00000_L_CC",
        "00000_R_CC",
        "00001_L_CC",
        "00001_R_CC",
    ]


def test_a_fault_of_our_own_routes_is_not_blamed_on_the_request(inside):
    assert inside["status"] == 500


def test_a_folder_that_does_not_exist_is_reported(tmp_path):
    needs_venv()
    done = subprocess.run(
        [ROOT / "scripts" / "label", tmp_path / "nothing"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "no such folder" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_app_pins_the_same_versions():
    requirements = ROOT / "clnet" / "apps" / "label" / "requirements.txt"
    assert differing_pins(ROOT / "constraints.txt", requirements) == set()
    assert "torchvision" not in pins(requirements)
