"""MONAI Label's stock app `monaibundle` with our bundle in it: boxes of one image."""

import json
import shutil
from collections import defaultdict

import numpy as np
import pytest
from label_client import Client
from label_server import NO_SCORING, PYTHON, needs_venv
from servers import free_port, running

from clnet.data.datalist import Datalist, write_datalist
from clnet.data.header import read_header
from clnet.data.pair import Pair, View
from clnet.phantom.dataset import PhantomSettings, make_phantom
from clnet.predict.folder_run import PredictSettings, predict
from clnet.predict.shipped import copy_bundle

MIN_SCORE = 0.05  # a single view gives lower scores
NAMES = ("00001_L_CC", "00001_L_MLO", "00002_L_MLO", "00002_R_CC", "00002_R_MLO")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("monaibundle")
    make_phantom(folder / "phantom", PhantomSettings(pairs=12, seed=7), workers=1)
    return folder


@pytest.fixture(scope="module")
def client(folder):
    needs_venv()
    app, port = folder / "monaibundle", free_port()
    # What `apps --download` copies; the test of docs/label.md runs that command.
    shutil.copytree(PYTHON.parents[1] / "monailabel" / "sample-apps" / "monaibundle", app)
    (app / "model").mkdir(exist_ok=True)
    bundle = app / "model" / "clnet_detection"
    copy_bundle(bundle, "phantom")
    config = json.loads((bundle / "configs" / "inference.json").read_text())
    config["min_score"] = MIN_SCORE
    (bundle / "configs" / "inference.json").write_text(json.dumps(config))
    command = [PYTHON, "-m", "clnet.apps.label.stock", "start_server", "--app", app]
    command += ["--studies", folder / "phantom" / "images", "--host", "127.0.0.1", "--port", port]
    command += ["--conf", "models", "clnet_detection", "--conf", "zoo_source", "local"]
    command += ["--conf", "skip_trainers", "true"]
    address = f"http://127.0.0.1:{port}"
    env = {"MONAI_LABEL_DATASTORE_FILE_EXT": '["*.dcm"]', **NO_SCORING}
    with running(command, folder / "server.txt", f"{address}/info/", env, cwd=folder):
        yield Client(address)


@pytest.fixture(scope="module")
def predicted(folder):
    """The boxes [x, y, width, height] that `clnet predict` finds in each image without its other view."""
    pairs = []
    for name in NAMES:
        view = View(folder / "phantom" / "images" / f"{name}.dcm")
        cc, mlo = (view, None) if name.endswith("_CC") else (None, view)
        pairs.append(Pair(name, name, name.split("_")[1], cc, mlo))
    write_datalist(Datalist("single views", {"test": tuple(pairs)}), folder / "views" / "datalist.json")
    settings = PredictSettings("phantom", device="cpu", workers=0, batch_size=1, min_score=MIN_SCORE)
    predict(folder / "views" / "datalist.json", folder / "predicted", settings)
    coco = json.loads((folder / "predicted" / "coco.json").read_text())
    names = {image["id"]: image["file_name"] for image in coco["images"]}
    boxes = defaultdict(list)
    for annotation in coco["annotations"]:
        boxes[names[annotation["image_id"]].rpartition("/")[2].removesuffix(".dcm")].append(
            annotation["bbox"]
        )
    return boxes


def test_the_stock_app_lists_the_bundle_as_a_detection(client):
    model = client.get("/info/")["models"]["clnet_detection"]
    assert (model["type"], model["dimension"]) == ("detection", 2)


def test_its_boxes_are_those_of_predict_on_the_image_alone(client, folder, predicted):
    found = 0
    for name in NAMES:
        answer = client.good(client.infer(name, model="clnet_detection"))
        # From pixels to millimetres by hand: pixel centres, and the spacing of rows and columns.
        rows, columns = read_header(folder / "phantom" / "images" / f"{name}.dcm").spacing_mm
        expected = [
            [(x + w / 2 - 0.5) * columns, (y + h / 2 - 0.5) * rows, 0, w * columns, h * rows, 1]
            for x, y, w, h in predicted[name]
        ]
        assert len(answer["box"]) == len(expected)
        assert np.allclose(sorted(answer["box"]), sorted(expected), atol=1e-3)
        assert answer["label"] == [0] * len(expected)
        found += len(expected)
    assert found
