"""COCO results of any detector go through `clnet evaluate` as findings do."""

import json
from pathlib import Path

import numpy as np
import pytest
from coco_reference import coco_files, coco_recalls
from random_findings import random_datalist

from clnet.cli.main import main
from clnet.data.datalist import Datalist, read_datalist, write_datalist
from clnet.data.pair import Pair, View
from clnet.evaluation.froc import RATES
from clnet.evaluation.hits import ImageResult
from clnet.findings.coco_results import read_coco_results
from clnet.findings.types import FindingsError, write_findings


def write(path, content):
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def detector(datalist, seed=1):
    """Boxes about lesions and elsewhere, of different scores; nothing in every seventh image."""
    rng = np.random.default_rng(seed)
    results, files = [], []
    for pair in datalist["test"]:
        for view in pair.views.values():
            near = np.repeat(view.boxes, 2, axis=0) + rng.normal(0, 15, (2 * len(view.boxes), 4))
            low = rng.uniform(0, 800, (6, 2))
            boxes = np.concatenate([near, np.concatenate([low, low + rng.uniform(40, 200, low.shape)], 1)])
            boxes[:, 2:] = np.maximum(boxes[:, 2:], boxes[:, :2] + 1)
            boxes = boxes[: 0 if len(files) % 7 == 6 else len(boxes)].astype(np.float32)
            scores = rng.random(len(boxes)) + (np.arange(len(boxes)) < len(near))
            results.append(ImageResult(boxes, scores, view.boxes))
            files.append(view.image.name)
    return results, files


@pytest.fixture
def data(tmp_path):
    """A datalist, the COCO annotations of its images, and the results of a detector."""
    write_datalist(random_datalist(30), tmp_path / "data" / "datalist.json")
    truth, found = coco_files(*detector(read_datalist(tmp_path / "data")))
    write(tmp_path / "annotations.json", truth)
    write(tmp_path / "detector.json", found)
    return tmp_path


def run(folder, *options, out="out", findings="detector.json"):
    files = ("--datalist", str(folder / "data"), "--findings", str(folder / findings))
    return main(["evaluate", *files, "--output", str(folder / out), "--resamples", "20", *options])


def metrics_of(folder):
    return json.loads((folder / "metrics.json").read_text(encoding="utf-8"))


def test_recall_is_that_of_pycocotools(data, capsys):
    assert run(data, "--coco-images", str(data / "annotations.json"), "--protocol", "film") == 0
    said = capsys.readouterr().out
    metrics = metrics_of(data / "out")
    assert metrics["model"] == "detector"
    assert metrics["links"] is None
    truth = json.loads((data / "annotations.json").read_text(encoding="utf-8"))
    found = json.loads((data / "detector.json").read_text(encoding="utf-8"))
    for key, iou in (("iou=0.2", 0.2), ("iou=0.5", 0.5)):
        recall = [entry["value"] for entry in metrics["detection"][key]["recall"].values()]
        assert recall == pytest.approx(coco_recalls(truth, found, RATES, iou))
        assert recall[-1] > 0.5
    images = len(truth["images"])
    without = images - len({entry["image_id"] for entry in found})
    assert metrics["counts"]["skipped_views"] == without == images // 7
    assert f"the findings do not cover {without} of {images} images" in said


def test_ids_that_are_names_need_no_list_of_images(data):
    assert run(data, "--coco-images", str(data / "annotations.json")) == 0
    truth = json.loads((data / "annotations.json").read_text(encoding="utf-8"))
    found = json.loads((data / "detector.json").read_text(encoding="utf-8"))
    names = {image["id"]: image["file_name"] for image in truth["images"]}
    for number, entry in enumerate(found):
        name = names[entry["image_id"]]
        entry["image_id"] = name if number % 2 else Path(name).stem
    write(data / "named.json", found)
    assert run(data, findings="named.json", out="named") == 0
    assert metrics_of(data / "named")["detection"] == metrics_of(data / "out")["detection"]


def test_the_evaluation_can_be_reported_and_compared_as_any(data, capsys):
    options = ("--coco-images", str(data / "annotations.json"))
    assert run(data, *options) == 0
    page = (data / "out" / "report.html").read_bytes()
    assert main(["report", str(data / "out")]) == 0
    assert (data / "out" / "report.html").read_bytes() == page
    findings = read_coco_results(
        data / "detector.json", read_datalist(data / "data"), "test", data / "annotations.json"
    )
    write_findings(findings, data / "findings.json")
    assert run(data, out="as findings", findings="findings.json") == 0
    assert metrics_of(data / "as findings")["detection"] == metrics_of(data / "out")["detection"]
    capsys.readouterr()
    assert main(["compare", str(data / "out"), str(data / "as findings"), "--resamples", "20"]) == 0
    assert "mean recall" in capsys.readouterr().out


def two_sections(folder):
    """Films of two patients, in folders as CBIS-DDSM has them: the files have the same name."""

    def pair(name):
        views = {view: View(folder / name / view / "1-1.dcm") for view in ("cc", "mlo")}
        return Pair(name, name, "L", **views)

    return Datalist("two", {"training": (pair("P_1"),), "test": (pair("P_2"),)})


ENTRY = {"image_id": "P_2/cc/1-1.dcm", "category_id": 1, "bbox": [10, 20, 30, 40], "score": 0.5}


def test_a_path_names_an_image_where_its_file_name_does_not(tmp_path):
    results = [ENTRY, {**ENTRY, "image_id": "P_1/cc/1-1"}, {**ENTRY, "image_id": "./P_2/cc/1-1", "score": 3}]
    (found,) = read_coco_results(write(tmp_path / "r.json", results), two_sections(tmp_path), "test")
    assert found.cc.boxes.tolist() == [[10, 20, 40, 60]] * 2, "the training section's is left out"
    assert found.cc.scores.tolist() == [0.5, 3]
    assert found.mlo is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"image_id": "1-1.dcm"}, "'1-1.dcm' fits 4 images, such as .*P_1.*; name images with more of their"),
        ({"image_id": "P_3"}, "no image of the datalist is named 'P_3'"),
        ({"image_id": None}, "image_id is None; expected a number or a text"),
        ({"bbox": [1, 2, 3]}, r"bbox is \[1, 2, 3\]; expected \[x, y, width, height\]"),
        ({"bbox": [1, 2, -3, 4]}, "width and height of 0 or more"),
        ({"bbox": [1, 2, float("nan"), 4]}, "bbox is"),
        ({"bbox": [1, 2, 10**400, 4]}, "bbox is"),
        ({"score": "high"}, "score is 'high'; expected a finite number"),
        ({"score": float("inf")}, "score is inf"),
        ({"category_id": 2}, "category_id is 2, that of entry 0 is 1; keep only the results for masses"),
    ],
)
def test_a_wrong_entry_is_named(tmp_path, change, message):
    file = write(tmp_path / "r.json", [ENTRY, {**ENTRY, **change}])
    with pytest.raises(FindingsError, match=f"r.json: entry 1: .*{message}"):
        read_coco_results(file, two_sections(tmp_path), "test")


def test_missing_keys_and_other_content_are_named(tmp_path):
    for entry, message in [
        ({"image_id": 1, "bbox": [1, 2, 3, 4]}, "entry 0: 'score' is missing"),
        (7, "entry 0 is 7; expected an object"),
    ]:
        with pytest.raises(FindingsError, match=message):
            read_coco_results(write(tmp_path / "r.json", [entry]), two_sections(tmp_path), "test")


@pytest.mark.parametrize(
    ("images", "message"),
    [
        ([], "images.json: 'images' is missing"),
        ({"images": [{"id": 1}]}, r"images\[0\]: file_name is None"),
        ({"images": [{"file_name": "a"}]}, r"images\[0\]: expected an object with id"),
        ({"images": [{"id": 1, "file_name": "a"}] * 2}, r"images\[1\]: id 1 appears twice"),
        ({"images": [{"id": 1, "file_name": "a"}]}, "entry 0: image_id 'P_2/cc/1-1.dcm' is not among the"),
    ],
)
def test_a_wrong_list_of_images_is_named(tmp_path, images, message):
    results, images = write(tmp_path / "r.json", [ENTRY]), write(tmp_path / "images.json", images)
    with pytest.raises(FindingsError, match=message):
        read_coco_results(results, two_sections(tmp_path), "test", images)


def test_a_list_of_images_is_refused_for_a_findings_file(data, capsys):
    write(data / "findings.json", {"schema": 1, "model": "m", "pairs": []})
    assert run(data, "--coco-images", str(data / "annotations.json"), findings="findings.json") == 2
    assert "this is no list of COCO results" in capsys.readouterr().err


def test_no_results_at_all_are_no_detections(data):
    write(data / "nothing.json", [])
    assert run(data, findings="nothing.json") == 0
    metrics = metrics_of(data / "out")
    assert metrics["counts"]["skipped_views"] == metrics["counts"]["images"]
    assert metrics["detection"]["iou=0.2"]["recall"]["4"]["value"] == 0
