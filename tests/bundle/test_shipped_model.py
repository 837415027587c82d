"""The phantom model: small, safe to load, worth what the pages say."""

import json

import in_process
import pytest
import torch
from bundle_runs import ROOT, configs
from monai.bundle import ConfigParser
from page_text import between_marks, percent
from ship_model import phantom_passages, ship_phantom

from clnet.phantom import PhantomSettings, make_phantom
from clnet.predict.model_name import weights_digest

MODELS = ROOT / "bundle" / "models"
RECORD = MODELS / "record"


def recorded(name):
    return json.loads((RECORD / name).read_text(encoding="utf-8"))


def test_it_is_small_and_holds_plain_weights_that_fit_the_config():
    assert (MODELS / "phantom.pt").stat().st_size <= 10e6
    weights = torch.load(MODELS / "phantom.pt", weights_only=True)
    parser = ConfigParser(ConfigParser.load_config_file(ROOT / "bundle" / "configs" / "train.yaml"))
    parser.get_parsed_content("network_def").load_state_dict(weights)


def test_the_pages_tell_the_figures_of_the_record():
    for page, figures in phantom_passages(RECORD).items():
        assert between_marks(page, "phantom") == figures, page


def test_the_first_page_tells_figures_of_the_record():
    recall = recorded("geometric_test.json")["detection"]["iou=0.5"]["recall"]
    first_page = (ROOT / "README.md").read_text(encoding="utf-8")
    assert f"the phantom model's R@0.25 is {percent(recall['0.25'])}" in first_page


def test_the_record_shows_the_bars_passed():
    test = recorded("geometric_test.json")
    links = test["links"]["iou=0.5"]
    assert test["counts"]["pairs"] >= 400
    assert test["detection"]["iou=0.5"]["recall"]["0.25"]["value"] >= 0.94
    assert links["all"]["f1"]["value"] >= 0.85
    assert links["all"]["accuracy"]["value"] >= 0.92
    assert links["several_lesions"]["accuracy"]["value"] >= 0.85


def test_the_record_is_of_these_weights():
    assert recorded("geometric_test.json")["model"].split()[-1] == weights_digest(MODELS / "phantom.pt")


def test_an_evaluation_of_other_weights_is_not_shipped(tmp_path, monkeypatch):
    monkeypatch.setattr("ship_model.BUNDLE", tmp_path / "bundle")
    monkeypatch.setattr("ship_model.RECORD", tmp_path / "bundle")
    (tmp_path / "geometric-seed0").mkdir()
    (tmp_path / "geometric-seed0" / "model.pt").write_bytes(b"trained again")
    (tmp_path / "evaluate-geometric").mkdir()
    metrics = (RECORD / "geometric_test.json").read_text(encoding="utf-8")
    (tmp_path / "evaluate-geometric" / "metrics.json").write_text(metrics, encoding="utf-8")
    with pytest.raises(SystemExit, match="evaluate-geometric: section, protocol and weights are"):
        ship_phantom(tmp_path)


@pytest.mark.slow
def test_it_finds_and_links_masses_of_a_phantom_that_it_has_not_seen(tmp_path):
    make_phantom(tmp_path / "data", PhantomSettings(pairs=160, seed=99), workers=1)
    words = ["run", "evaluating", "--config_file", configs("evaluate"), "--section", "training"]
    where = ["--dataset_dir", tmp_path / "data", "--output_dir", tmp_path]
    done = in_process.run_module("monai.bundle", *words, *where, folder=ROOT)
    assert done.returncode == 0, done.stderr
    metrics = json.loads((tmp_path / "evaluate-geometric" / "metrics.json").read_text())
    assert metrics["detection"]["iou=0.5"]["recall"]["0.25"]["value"] > 0.85
    assert metrics["links"]["iou=0.5"]["all"]["accuracy"]["value"] > 0.8
