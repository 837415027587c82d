"""The public API as a user types it: `clnet.load`, `model.predict`, and the results of a breast."""

import json
import re
import runpy
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pydicom
import pytest
import torch
from monai.bundle import ConfigParser

import clnet
from clnet.cli.main import main
from clnet.data.image_errors import UnsupportedPixelsError
from clnet.data.reader import read_image
from clnet.findings.types import Findings, write_findings
from clnet.phantom import PhantomSettings, make_phantom
from clnet.predict.breasts import InputError
from clnet.predict.shipped import BundleError

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def phantom(tmp_path_factory):
    folder = tmp_path_factory.mktemp("phantom")
    make_phantom(folder, PhantomSettings(4, rows=160, columns=112), workers=1)
    return folder


@pytest.fixture(scope="module")
def model():
    return clnet.load("phantom", device="cpu")


@pytest.fixture(scope="module")
def breasts(model, phantom):
    return list(model.predict(phantom / "images", min_score=0.2))


def lesions_of(breasts):
    return sorted(((breast.laterality, breast.lesions) for breast in breasts), key=str)


def test_a_model_is_shown_in_one_line_without_the_layers_of_its_network(model):
    assert repr(model).startswith(f"BundleModel(name={model.name!r}, version=")
    assert "Linear(" not in repr(model)


def test_the_lines_of_the_readme(phantom, tmp_path, monkeypatch, capsys):
    (lines,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    (tmp_path / "lines.py").write_text(lines)
    (tmp_path / "study_folder").symlink_to(phantom / "images")
    monkeypatch.chdir(tmp_path)
    runpy.run_path("lines.py")
    assert capsys.readouterr().out.count("Lesion(score=") >= 2
    assert (tmp_path / "breast.png").read_bytes().startswith(b"\x89PNG")


def test_a_lesion_has_a_score_a_link_score_and_a_box_in_each_view_that_shows_it(breasts):
    lesions = [lesion for breast in breasts for lesion in breast.lesions]
    linked = [lesion for lesion in lesions if lesion.cc and lesion.mlo]
    assert linked
    for lesion in linked:
        x_min, y_min, x_max, y_max = lesion.cc.box
        assert 0 <= x_min < x_max <= 112 and 0 <= y_min < y_max <= 160
        assert 0.5 <= lesion.link_score <= 1
    assert all(lesion.score >= 0.2 for lesion in lesions)


def test_findings_hold_every_detection_and_point_at_those_of_the_lesions(breasts):
    for breast in breasts:
        for found in (breast.findings.cc, breast.findings.mlo):
            assert len(breast.lesions) < len(found) <= 20, "object queries, less duplicates"
        for lesion in breast.lesions:
            for name, seen in lesion.views.items():
                assert breast.findings.views[name].boxes[seen.index] == pytest.approx(seen.box)


def test_results_come_a_batch_at_a_time(model, phantom):
    batches = []

    def postprocessing(batch):
        batches.append(batch["pair_id"])
        return model.postprocessing(batch)

    results = replace(model, postprocessing=postprocessing).predict(phantom / "images", batch_size=1)
    assert batches == []
    first = next(results)
    assert batches == [[first.breast_id]]


@pytest.mark.parametrize(
    "source",
    [
        lambda folder: str(folder / "images"),
        lambda folder: sorted((folder / "images").glob("*.dcm")),
        lambda folder: folder / "datalist.json",
        lambda folder: folder,
        clnet.read_datalist,
    ],
    ids=["a folder", "files", "a datalist file", "a folder with a datalist", "a datalist"],
)
def test_every_form_of_an_input_gives_the_same_lesions(source, model, phantom, breasts):
    assert lesions_of(model.predict(source(phantom), min_score=0.2)) == lesions_of(breasts)


def test_arrays_give_the_lesions_of_their_files(model, breasts, phantom):
    for breast in breasts:
        arrays = [read_image(phantom / "images" / breast.views[name].file).pixels for name in ("cc", "mlo")]
        (found,) = model.predict(tuple(arrays), laterality=breast.laterality, min_score=0.2)
        assert len(found.lesions) == len(breast.lesions)
        for lesion, expected in zip(found.lesions, breast.lesions, strict=True):
            assert lesion.score == pytest.approx(expected.score, abs=1e-4)
            for name, seen in expected.views.items():
                assert lesion.views[name].box == pytest.approx(seen.box, abs=0.05)
        assert found.draw().size == breast.draw().size


def test_one_array_is_a_breast_with_one_view(model, breasts, phantom):
    mlo = read_image(phantom / "images" / breasts[0].views["mlo"].file).pixels
    (found,) = model.predict((None, mlo.astype(np.uint16)), laterality="R")
    assert list(found.views) == ["mlo"]
    assert all(lesion.cc is None for lesion in found.lesions)


@pytest.mark.parametrize(
    ("source", "options", "error", "words"),
    [
        ((np.zeros((9, 9)), None), {}, InputError, 'laterality is None; arrays need "L" or "R"'),
        ((None, None), {"laterality": "L"}, InputError, "both None"),
        ((np.zeros((9, 9, 3)), None), {"laterality": "L"}, UnsupportedPixelsError, r"cc: .* \[9, 9, 3\]"),
        (("cc.dcm", "mlo.dcm"), {}, InputError, "cc.dcm: no such file or folder"),
        ("nowhere", {}, InputError, "nowhere: no such file or folder"),
    ],
)
def test_a_wrong_input_is_refused_at_once(model, source, options, error, words):
    with pytest.raises(error, match=words):
        model.predict(source, **options)


def test_a_folder_without_mammograms_is_refused_with_the_reason(model, tmp_path):
    (tmp_path / "a.txt").write_text("no image")
    with pytest.raises(InputError, match=r"no CC or MLO mammogram in .*not a DICOM file"):
        model.predict(tmp_path)


def test_a_file_that_cannot_be_read_is_logged_and_the_others_are_analysed(model, phantom, tmp_path, caplog):
    shutil.copytree(phantom / "images", tmp_path / "in")
    first = min((tmp_path / "in").iterdir())
    first.write_bytes(first.read_bytes()[:-5000])
    results = list(model.predict(tmp_path / "in"))
    assert sorted(len(breast.views) for breast in results) == [1, 2, 2, 2]
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert first.name in caplog.text
    assert [breast.refused.keys() for breast in results if len(breast.views) == 1] == [{first.name}]


def test_each_file_is_read_twice_its_header_to_choose_the_views_and_once_to_analyse_it(
    phantom, tmp_path, monkeypatch
):
    reads = []
    dcmread = pydicom.dcmread
    monkeypatch.setattr(pydicom, "dcmread", lambda file, **how: reads.append(how) or dcmread(file, **how))
    opened = []
    path_open = Path.open
    monkeypatch.setattr(Path, "open", lambda file, *a, **b: opened.append(file) or path_open(file, *a, **b))
    words = [str(phantom / "images"), "--output", str(tmp_path), "--workers", "0", "--model", "phantom"]
    assert main(["predict", *words]) == 0
    files = list((phantom / "images").iterdir())
    assert len(list(tmp_path.rglob("measurements.dcm"))) == 2  # of four breasts
    assert len([how for how in reads if how.get("stop_before_pixels")]) == len(files)
    assert len(reads) == 2 * len(files)
    assert all(opened.count(file) == 2 for file in files)


def run_of(variant, folder, **settings):
    """The folder of a training of a variant, as `clnet.runs` leaves it."""
    files = [str(ROOT / "bundle" / "configs" / f"{name}.yaml") for name in ("train", variant)]
    config = {**ConfigParser.load_config_files(files), "size": [64, 48]}
    folder.mkdir()
    (folder / "run.json").write_text(json.dumps({"status": "finished", "config": {**config, **settings}}))
    torch.save(ConfigParser(config).get_parsed_content("network_def").state_dict(), folder / "model.pt")
    return folder


@pytest.fixture
def run_folder(tmp_path):
    return run_of("vild", tmp_path / "vild-seed0")


def test_a_run_folder_is_a_model_of_that_runs_network(run_folder, phantom):
    model = clnet.load(run_folder, "cpu")
    assert model.name.startswith("vild vild-seed0 ")
    (breast, *_) = model.predict(phantom / "images", min_score=0)
    assert breast.findings.links == ()  # VILD has no linker
    assert "not for patients" in breast.notice


def test_a_run_from_before_views_were_compared_gives_no_score_for_them(tmp_path, phantom):
    folder = run_of("vild", tmp_path / "vild-seed0")
    record = json.loads((folder / "run.json").read_text())
    for key in ("consistency", "min_consistency"):
        del record["config"][key]
    del record["config"]["validate"]["postprocessing"]["consistency"]
    (folder / "run.json").write_text(json.dumps(record))
    (breast, *_) = clnet.load(folder, "cpu").predict(phantom / "images", min_score=0)
    assert breast.findings.consistency is None
    assert breast.warnings == ()


def test_a_run_on_films_predicts_in_full_precision_and_without_the_weights_that_it_began_with(
    tmp_path, phantom
):
    folder = run_of("film", tmp_path / "film-seed0", backbone_weights="gone/resnet18.pth", amp=True)
    model = clnet.load(folder, "cpu")
    assert model.inferer.amp is False
    assert model.postprocessing.duplicate_iou == 0.3
    (breast, *_) = model.predict(phantom / "images", min_score=0)
    ends = {(view, getattr(link, view)) for link in breast.findings.links for view in ("cc", "mlo")}
    for name, view in breast.findings.views.items():
        assert {(name, index) for index in range(len(view))} <= ends, "every detection has a candidate"


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda folder: (folder / "model.pt").unlink(), "model.pt: no weights"),
        (lambda folder: (folder / "run.json").write_text("{}"), "run.json: no config"),
        (lambda folder: (folder / "run.json").unlink(), "neither a bundle .* nor a training run"),
    ],
)
def test_a_folder_that_is_no_model_is_refused(run_folder, spoil, words):
    spoil(run_folder)
    with pytest.raises(BundleError, match=words):
        clnet.load(run_folder, "cpu")


def test_evaluate_gives_metrics_and_writes_only_where_it_is_told(model, phantom, tmp_path):
    found = Findings(model.name, [breast.findings for breast in model.predict(phantom)])
    write_findings(found, tmp_path / "findings.json")
    evaluation = clnet.evaluate(phantom, tmp_path / "findings.json", section="training")
    assert evaluation.metrics["counts"]["pairs"] >= 1
    assert [file.name for file in tmp_path.iterdir()] == ["findings.json"]


def test_the_bundle_is_copied_to_an_empty_folder_only(tmp_path, capsys):
    assert main(["bundle", "--copy", str(tmp_path / "mine")]) == 0
    assert str(tmp_path / "mine" / "configs" / "train.yaml") in capsys.readouterr().out
    for name in ("configs/train.yaml", "models/model.pt", "docs/README.md"):
        assert (tmp_path / "mine" / name).read_bytes() == (ROOT / "bundle" / name).read_bytes()
    assert main(["bundle", "--copy", str(tmp_path / "mine")]) == 2
    assert "mine: not an empty folder" in capsys.readouterr().err
    assert main(["bundle"]) == 0
    assert capsys.readouterr().out.splitlines()[0] == f"bundle    {ROOT / 'bundle'}"


def test_a_copy_of_the_bundle_may_have_the_phantoms_model_as_its_own(tmp_path):
    main(["bundle", "--copy", str(tmp_path / "mine"), "--model", "phantom"])
    own, phantom = clnet.load(tmp_path / "mine"), clnet.load("phantom")
    assert (own.name, own.notice, own.min_score) == (phantom.name, phantom.notice, phantom.min_score)
