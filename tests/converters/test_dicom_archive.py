"""Your own DICOM archive: pairs from headers, boxes from COCO JSON or CSV."""

import json

import pytest
from conversions import convert
from dicom_files import mammogram, save
from miniatures import SECONDARY_CAPTURE, breast, write_csv
from pydicom.uid import generate_uid

from clnet.cli.main import main
from clnet.data.study import find_pairs

CC, MLO = (5, 20, 20, 40), (8, 30, 25, 51)


class Archive:
    """A folder of DICOM files, and files of boxes beside it."""

    def __init__(self, folder):
        self.folder = folder
        self.uids = {}
        self.studies = {}

    def image(self, name, patient, side, view, **tags):
        """Write an image; the images of a patient are one study."""
        file = self.folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        study = self.studies.setdefault(patient, generate_uid())
        tags = {"StudyInstanceUID": study, "PatientID": patient, **tags}
        dataset = mammogram(breast(90, 60, side), ImageLaterality=side, ViewPosition=view, **tags)
        self.uids[name] = str(dataset.SOPInstanceUID)
        save(file, dataset)

    def csv(self, *boxes):
        """A CSV of (file, box, lesion id)."""
        rows = [
            {"SOPInstanceUID": self.uids.get(name, name)}
            | dict(zip(("x_min", "y_min", "x_max", "y_max"), box, strict=True))
            | {"lesion_id": lesion}
            for name, box, lesion in boxes
        ]
        return write_csv(self.folder.parent / "boxes.csv", rows)

    def coco(self, *boxes, images=None, categories=("mass",)):
        """A COCO file of (file, box, lesion id or None, category)."""
        names = list(images or dict.fromkeys(name for name, *_ in boxes))
        annotations = []
        for number, (name, (x0, y0, x1, y1), lesion, category) in enumerate(boxes):
            entry = {"id": number, "image_id": names.index(name), "bbox": [x0, y0, x1 - x0, y1 - y0]}
            entry["category_id"] = category
            annotations.append(entry | ({"lesion_id": lesion} if lesion else {}))
        content = {
            "images": [{"id": number, "file_name": name} for number, name in enumerate(names)],
            "annotations": annotations,
            "categories": [{"id": number, "name": name} for number, name in enumerate(categories)],
        }
        file = self.folder.parent / "boxes.json"
        file.write_text(json.dumps(content))
        return file


@pytest.fixture
def archive(tmp_path):
    archive = Archive(tmp_path / "data")
    archive.image("a/1", "Jane Doe", "L", "CC")
    archive.image("a/2", "Jane Doe", "L", "MLO")
    return archive


@pytest.fixture
def converted(archive, tmp_path, capsys):
    return lambda *options: convert("dicom", archive.folder, tmp_path / "out", capsys, *options)


def only(done):
    (pair,) = done.pairs.values()
    return pair


def test_lesion_ids_of_a_csv_are_annotated_links(archive, converted):
    boxes = archive.csv(
        ("a/1", CC, "7"), ("a/1", (30, 50, 40, 60), "8"), ("a/2", MLO, "8"), ("a/2", (5, 5, 9, 9), "9")
    )
    pair = only(converted("--boxes", boxes, "--check"))
    assert pair.cc.boxes.tolist() == [list(CC), [30, 50, 40, 60]]
    assert pair.mlo.boxes.tolist() == [list(MLO), [5, 5, 9, 9]]
    assert pair.cc.lesion_ids == ("1", "2")
    assert pair.mlo.lesion_ids == ("2", "3")
    assert pair.links == {"2": "annotated"}


def test_boxes_without_lesion_ids_are_linked_if_there_is_one_in_each_view(archive, converted):
    pair = only(converted("--boxes", archive.csv(("a/1", CC, ""), ("a/2", MLO, ""))))
    assert pair.links == {"1": "single_pair"}


def test_different_ids_mean_different_masses(archive, converted):
    pair = only(converted("--boxes", archive.csv(("a/1", CC, "1"), ("a/2", MLO, "2"))))
    assert pair.links == {}


def test_an_id_of_two_boxes_in_an_image_links_nothing(archive, converted):
    boxes = archive.csv(("a/1", CC, "1"), ("a/1", (30, 50, 40, 60), "1"), ("a/2", MLO, "1"))
    done = converted("--boxes", boxes)
    assert only(done).links == {}
    assert "two boxes have the same lesion id" in done.warnings


def test_coco_names_files_and_categories(archive, converted):
    archive.image("a/3", "Jane Doe", "R", "CC")
    archive.image("b/4", "Ann Other", "R", "CC")
    boxes = archive.coco(
        ("a/1", CC, "1", 1),
        ("a/2", MLO, "1", 1),
        ("a/2", (1, 1, 5, 5), None, 0),
        images=["a/1", "a/2", "4", "gone.dcm"],
        categories=("calcification", "Mass, malignant"),
    )
    done = converted("--boxes", boxes)
    left, right = sorted(done.pairs.values(), key=lambda pair: pair.laterality)
    assert left.mlo.boxes.tolist() == [list(MLO)]
    assert left.links == {"1": "annotated"}
    assert right.cc.image.name == "4"
    assert done.skipped == {
        ("boxes.json annotation 3", "not a mass"),
        ("boxes.json: gone.dcm", "image not found"),
        ("a/3", "image not in the annotations"),
    }


def test_damaged_annotations_are_named_and_their_image_is_not_used(archive, converted):
    boxes = archive.csv(("a/1", (9, 9, 5, 5), "1"), ("a/2", MLO, "1"), ("1.2.3", CC, "1"), ("", CC, "1"))
    done = converted("--boxes", boxes)
    assert only(done).cc is None
    assert {
        ("boxes.csv row 1", "damaged row"),
        ("a/1", "mass at an unknown location"),
        ("boxes.csv: 1.2.3", "image not found"),
        ("boxes.csv row 4", "damaged row"),
    } == done.skipped


def test_a_row_without_a_box_means_that_there_is_no_mass(archive, converted):
    pair = only(converted("--boxes", archive.csv(("a/1", ("", "", "", ""), ""), ("a/2", MLO, ""))))
    assert pair.cc.boxes.tolist() == []


def test_only_standard_views_are_used_and_those_with_boxes_are_preferred(archive, converted):
    archive.image("a/spot", "Jane Doe", "L", "CC", PaddleDescription="SPOT COMPRESSION")
    archive.image("a/ml", "Jane Doe", "L", "ML")
    archive.image("a/sc", "Jane Doe", "R", "CC", SOPClassUID=SECONDARY_CAPTURE)
    archive.image("a/again", "Jane Doe", "L", "CC")
    done = converted("--boxes", archive.csv(("a/again", CC, "")))
    assert only(done).cc.image.name == "again"
    assert done.skipped == {
        ("a/spot", "not a standard CC or MLO view"),
        ("a/ml", "not a standard CC or MLO view"),
        ("a/sc", "not a standard CC or MLO view"),
        ("a/1", "another image of this view is used"),
    }


def test_without_boxes_the_pairs_are_those_of_clnet_pairs(archive, converted):
    archive.image("b/1", "Ann Other", "R", "MLO")
    archive.image("b/2", "Ann Other", "R", "CC")
    archive.image("b/3", "Ann Other", "R", "CC")
    done = converted()
    chosen = {
        tuple(view.file if view else None for view in (pair.cc, pair.mlo))
        for pair in find_pairs(archive.folder, progress=False).pairs
    }
    assert {(pair.cc.image.resolve(), pair.mlo.image.resolve()) for pair in done.pairs.values()} == chosen
    assert "for inference, not for training" in done.warnings


def test_no_patient_data_is_written(archive, converted, tmp_path):
    converted("--boxes", archive.csv(("a/1", CC, "1")))
    for file in (tmp_path / "out").iterdir():
        content = file.read_bytes()
        assert b"Jane" not in content
        assert archive.studies["Jane Doe"].encode() not in content


def test_the_breasts_of_a_patient_stay_in_one_section(archive, converted):
    for number in range(12):
        for side in ("L", "R"):
            archive.image(f"n/{number}{side}", f"Patient {number}", side, "CC")
    done = converted("--validation", "0.25", "--test", "0.25")
    assert sorted(len(pairs) for pairs in done.datalist.sections.values()) == [6, 6, 13]


@pytest.mark.parametrize("content", ["[]", "{", '{"images": [{}], "annotations": []}', '{"images": 3}'])
def test_a_file_that_is_not_coco_is_an_error(content, archive, tmp_path, capsys):
    file = tmp_path / "boxes.json"
    file.write_text(content)
    words = ["convert", "dicom", str(archive.folder), "--output", str(tmp_path / "out"), "--boxes", str(file)]
    assert main(words) == 2
    assert f"{file}: not a COCO file" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nowhere", "--output", "out"], "nowhere: no such file or folder"),
        (["data"], "--output DIR is missing"),
        (["data", "--output", "data"], "is the data set's own folder"),
        (["data", "--output", "out", "--validation", "0.9", "--test", "0.9"], "expected shares"),
        (["data", "--output", "out", "--boxes", "nowhere.csv"], "nowhere.csv: cannot be read as a table"),
    ],
)
def test_invalid_options_are_reported_in_one_line(words, said, archive, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["convert", "dicom", *words]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1


def test_a_datalist_that_convert_did_not_write_is_not_overwritten(archive, tmp_path, capsys):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "datalist.json").write_text("{}")
    assert main(["convert", "dicom", str(archive.folder), "--output", str(tmp_path / "mine")]) == 2
    assert "was not written by `clnet convert`" in capsys.readouterr().err
    assert (tmp_path / "mine" / "datalist.json").read_text() == "{}"


def test_a_folder_in_the_archive_may_be_written_to(archive, tmp_path, capsys):
    out = archive.folder / "converted"
    convert("dicom", archive.folder, out, capsys)
    done = convert("dicom", archive.folder, out, capsys)
    assert done.report["skipped"] == []
    assert only(done).cc.image.resolve() == (archive.folder / "a" / "1").resolve()
