"""MONAI Label's stock app `monaibundle` with our bundle in it: boxes of one image."""

import json
import shutil
import subprocess

import numpy as np
import pytest
from label_client import Client
from label_server import PYTHON, ROOT, free_port, needs_venv, running

from clnet.data.header import read_header
from clnet.phantom.dataset import PhantomSettings, make_phantom
from clnet.predict.folder_run import PredictSettings, predict

MIN_SCORE = 0.05  # a view alone makes this model less sure


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("monaibundle")
    make_phantom(folder / "phantom", PhantomSettings(pairs=12, seed=7))
    return folder


@pytest.fixture(scope="module")
def client(folder):
    needs_venv()
    stock = [str(PYTHON), "-m", "clnet.apps.label.stock"]
    words = ["apps", "--download", "--name", "monaibundle", "--output", str(folder)]
    subprocess.run([*stock, *words], check=True, capture_output=True)
    app, port = folder / "monaibundle", free_port()
    (app / "model").mkdir()
    bundle = app / "model" / "clnet_detection"
    shutil.copytree(ROOT / "bundle", bundle)
    config = json.loads((bundle / "configs" / "inference.json").read_text())
    assert config["min_score"] == PredictSettings.min_score
    config["min_score"] = MIN_SCORE
    (bundle / "configs" / "inference.json").write_text(json.dumps(config))
    words = ["start_server", "--app", app, "--studies", folder / "phantom" / "images"]
    words += ["--host", "127.0.0.1", "--port", port, "--conf", "models", "clnet_detection"]
    words += ["--conf", "zoo_source", "local", "--conf", "skip_trainers", "true"]
    address, endings = f"http://127.0.0.1:{port}", {"MONAI_LABEL_DATASTORE_FILE_EXT": '["*.dcm"]'}
    with running([*stock, *words], folder / "server.txt", f"{address}/info/", endings, cwd=folder):
        yield Client(address)


def test_the_stock_app_lists_the_bundle_as_a_detection(client):
    model = client.get("/info/")["models"]["clnet_detection"]
    assert (model["type"], model["dimension"]) == ("detection", 2)


def test_its_boxes_are_those_of_predict_on_the_image_alone(client, folder):
    found = 0
    for name in ("00001_L_CC", "00001_L_MLO", "00002_L_MLO", "00002_R_CC", "00002_R_MLO"):
        answer = client.good(client.infer(name, model="clnet_detection"))
        file = folder / "phantom" / "images" / f"{name}.dcm"
        settings = PredictSettings(device="cpu", workers=0, batch_size=1, min_score=MIN_SCORE)
        predict(file, folder / name, settings)
        coco = json.loads((folder / name / "coco.json").read_text())
        corners = np.array([box["bbox"] for box in coco["annotations"]], dtype=float).reshape(-1, 4)
        # x, y, width, height of COCO by hand: pixel centres, and the spacing of rows and columns
        rows, columns = read_header(file).spacing_mm
        expected = [
            [(x + w / 2 - 0.5) * columns, (y + h / 2 - 0.5) * rows, 0, w * columns, h * rows, 1]
            for x, y, w, h in corners
        ]
        assert len(answer["box"]) == len(expected)
        assert np.allclose(sorted(answer["box"]), sorted(expected), atol=1e-3)
        assert answer["label"] == [0] * len(expected)
        found += len(expected)
    assert found
