"""CBIS-DDSM as it is on disk, with each of its pitfalls; and its real files."""

import csv
import json
from collections import Counter

import numpy as np
import pydicom
import pytest
from conversions import convert
from dicom_files import mammogram, save
from miniatures import FIXTURES, REDUCED, SECONDARY_CAPTURE, CbisDdsm, mask_of, write_csv

from clnet.cli.main import main
from clnet.converters.file_cache import FileCache

REAL_TABLE = FIXTURES / "mass_case_description_test_set.csv"
real_table = pytest.mark.skipif(not REAL_TABLE.exists(), reason="the full fixture is not here")


def two_views(data, patient="P_00001", side="LEFT", split="Test", **changes):
    data.mass(patient, side, "CC", 1, (10, 20, 30, 45), split, **changes)
    data.mass(patient, side, "MLO", 1, (12, 30, 33, 50), split, **changes)


@pytest.mark.parametrize("old", [False, True], ids=["current schema", "old schema"])
@pytest.mark.parametrize("layout", ["nbia", "tcia"])
def test_both_schemas_and_both_layouts_give_the_same_pairs(layout, old, tmp_path, capsys):
    data = CbisDdsm(tmp_path / "data", layout)
    two_views(data)
    done = convert("cbis-ddsm", data.tables(old), tmp_path / "out", capsys)
    (pair,) = done.datalist["test"]
    assert (pair.pair_id, pair.patient_id, pair.laterality) == ("P_00001_L", "P_00001", "L")
    assert pair.cc.boxes.tolist() == [[10, 20, 30, 45]]
    assert pair.mlo.boxes.tolist() == [[12, 30, 33, 50]]
    assert pair.links == {"1": "single_pair"}
    assert pair.attributes["density"] == "3"
    assert pair.attributes["lesions"]["1"]["pathology"] == "BENIGN_WITHOUT_CALLBACK"
    assert done.report["skipped"] == []
    assert done.report["sections"]["test"] == {
        "pairs": 1,
        "one_view": 0,
        "views": 2,
        "masses": 2,
        "lesions": 1,
        "links_annotated": 0,
        "links_single_pair": 1,
        "links_geometric": 0,
        "masses_unlinked": 0,
    }


@pytest.mark.parametrize("described", ["", "ROI mask images"], ids=["no description", "described"])
@pytest.mark.parametrize("mask_first", [False, True])
def test_the_jpeg_form_gives_the_pairs_of_the_dicom_form(mask_first, described, tmp_path, capsys):
    boxes, words = {}, {"mask_first": mask_first, "described": described}
    rows, columns = np.mgrid[:400, :300]
    for layout in ("nbia", "jpeg"):
        data = CbisDdsm(tmp_path / layout, layout, size=(400, 300))
        for view, (x, y) in (("CC", (33, 101)), ("MLO", (50, 77))):
            data.mass("P_00001", "LEFT", view, 1, (x, y, x + 45, y + 60), **words)
            data.mass("P_00002", "RIGHT", view, 1, (x + 60, y, x + 93, y + 60), "Training", **words)
            oval = np.hypot((rows - y - 150) / 41, (columns - x - 60) / 29) < 1
            mask = oval * np.uint8(255)
            data.mass("P_00002", "RIGHT", view, 2, (99, 99, 200, 190), "Training", mask=mask, **words)
        done = convert("cbis-ddsm", data.tables(), tmp_path / f"out-{layout}", capsys, "--validation", "0")
        assert done.report["skipped"] == [] and done.report["warnings"] == []
        assert [pair.pair_id for pair in done.datalist["test"]] == ["P_00001_L"]
        assert [pair.pair_id for pair in done.datalist["training"]] == ["P_00002_R"]
        assert done.pairs["P_00002_R"].links == {"1": "annotated", "2": "annotated"}
        boxes[layout] = [done.boxes(pair, view) for pair in done.pairs for view in ("cc", "mlo")]
    for of_dicom, of_jpeg in zip(boxes["nbia"], boxes["jpeg"], strict=True):
        np.testing.assert_allclose(of_jpeg, of_dicom, atol=1)
    assert boxes["nbia"][0] == [[93, 101, 126, 161], [65, 211, 122, 292]]


def test_the_jpeg_form_needs_no_table_of_tags(tmp_path, capsys):
    data = CbisDdsm(tmp_path / "data", "jpeg")
    two_views(data)
    data.tables()
    (tmp_path / "data" / "csv" / "dicom_info.csv").unlink()
    done = convert("cbis-ddsm", data.folder, tmp_path / "out", capsys, "--check")
    np.testing.assert_allclose(done.boxes("P_00001_L", "cc"), [[10, 20, 30, 45]], atol=1)
    np.testing.assert_allclose(done.boxes("P_00001_L", "mlo"), [[12, 30, 33, 50]], atol=1)
    assert done.pairs["P_00001_L"].cc.image.suffix == ".jpg"
    assert done.report["skipped"] == []


def test_a_view_that_the_table_of_tags_contradicts_is_named(tmp_path, capsys):
    data = CbisDdsm(tmp_path / "data", "jpeg")
    two_views(data)
    data.tags[0]["PatientOrientation"] = "MLO"
    done = convert("cbis-ddsm", data.tables(), tmp_path / "out", capsys)
    assert "row 1: CC in the table, MLO in the image; the table is followed" in done.warnings


def test_a_damaged_jpeg_mask_leaves_its_image_out(tmp_path, capsys):
    data = CbisDdsm(tmp_path / "data", "jpeg")
    two_views(data)
    mask = tmp_path / "data" / data.tags[2]["image_path"].removeprefix("CBIS-DDSM/")
    mask.write_bytes(mask.read_bytes()[:-100])
    done = convert("cbis-ddsm", data.tables(), tmp_path / "out", capsys)
    assert done.pairs["P_00001_L"].cc is None
    assert "it is damaged or truncated" in done.detail("mass_case_description_test_set.csv row 1")


@pytest.mark.parametrize("mask_first", [False, True])
def test_the_mask_is_told_from_the_crop_by_its_content(mask_first, tmp_path, capsys):
    data = CbisDdsm(tmp_path / "data")
    two_views(data, mask_first=mask_first)
    done = convert("cbis-ddsm", data.tables(), tmp_path / "out", capsys)
    assert done.boxes("P_00001_L", "cc") == [[10, 20, 30, 45]]


def test_a_crop_of_two_values_is_not_taken_for_the_mask(tmp_path, capsys):
    data = CbisDdsm(tmp_path / "data")
    data.mass("P_00001", "LEFT", "CC", 1, (10, 20, 30, 45))
    folder = next((tmp_path / "data").glob("*_1/*/*"))
    crop = pydicom.dcmread(folder / "000000.dcm")
    pixels = np.zeros((25, 20), np.uint16)
    pixels[3:6, 4:9] = 1
    crop.PixelData, crop.file_meta.TransferSyntaxUID = pixels.tobytes(), "1.2.840.10008.1.2.1"
    crop["PixelData"].VR = "OW"
    save(folder / "000000.dcm", crop)
    done = convert("cbis-ddsm", data.tables(), tmp_path / "out", capsys)
    assert done.boxes("P_00001_L", "cc") == [[10, 20, 30, 45]]


def test_a_mask_of_another_size_is_rescaled_to_the_image_with_a_warning(tmp_path, capsys):
    data = CbisDdsm(tmp_path / "data")  # images of 96 rows and 72 columns
    data.mass("P_00001", "LEFT", "CC", 1, (10, 20, 30, 45), mask=mask_of((5, 10, 15, 20), 48, 36))
    data.mass("P_00002", "LEFT", "CC", 1, (10, 20, 30, 45), mask=mask_of((5, 10, 15, 20), 48, 72))
    done = convert("cbis-ddsm", data.tables(), tmp_path / "out", capsys)
    assert done.boxes("P_00001_L", "cc") == [[10, 20, 30, 40]]
    assert done.boxes("P_00002_L", "cc") == [[5, 20, 15, 40]]
    assert "mask of 48 × 36, image of 96 × 72: the box is rescaled" in done.warnings
    assert "mask of 48 × 72, image of 96 × 72, with another aspect ratio" in done.warnings


def test_a_mask_with_two_components_gives_one_box_and_a_warning(tmp_path, capsys):
    data = CbisDdsm(tmp_path / "data")
    both = mask_of((10, 20, 20, 30), 96, 72) | mask_of((40, 50, 50, 60), 96, 72)
    data.mass("P_00001", "LEFT", "CC", 1, (10, 20, 50, 60), mask=both)
    done = convert("cbis-ddsm", data.tables(), tmp_path / "out", capsys)
    assert done.boxes("P_00001_L", "cc") == [[10, 20, 50, 60]]
    assert "the mask has 2 components" in done.warnings


def test_numbers_link_where_counts_and_descriptors_agree(tmp_path, capsys):
    data = CbisDdsm(tmp_path / "data")
    for view in ("CC", "MLO"):
        data.mass("P_00001", "RIGHT", view, 1, (10, 20, 30, 45), **{"mass shape": "OVAL"})
        data.mass("P_00001", "RIGHT", view, 2, (40, 50, 60, 70), **{"mass shape": "ROUND"})
    done = convert("cbis-ddsm", data.tables(), tmp_path / "out", capsys)
    assert done.pairs["P_00001_R"].links == {"1": "annotated", "2": "annotated"}
    assert done.report["sections"]["all"]["lesions"] == 2


@pytest.mark.parametrize("problem", ["counts", "descriptors", "numbers"])
def test_numbers_that_disagree_link_nothing(problem, tmp_path, capsys):
    """As in P_00044 RIGHT: 1 to 4 in CC, 1 and 2 in MLO."""
    data = CbisDdsm(tmp_path / "data")
    for view in ("CC", "MLO"):
        for number in (1, 2):
            shape = "ROUND" if problem == "descriptors" and (view, number) == ("CC", 1) else "OVAL"
            shown = number + 5 if problem == "numbers" and view == "CC" else number
            box = (10 * number, 20, 10 * number + 8, 45)
            data.mass("P_00044", "RIGHT", view, shown, box, **{"mass shape": shape})
    if problem == "counts":
        data.mass("P_00044", "RIGHT", "CC", 3, (40, 50, 60, 70))
    done = convert("cbis-ddsm", data.tables(), tmp_path / "out", capsys)
    assert done.pairs["P_00044_R"].links == {}
    assert done.report["sections"]["all"]["masses_unlinked"] == 4 + (problem == "counts")


def test_one_mass_in_each_view_is_a_pair_whatever_its_numbers_say(tmp_path, capsys):
    data = CbisDdsm(tmp_path / "data")
    data.mass("P_00001", "LEFT", "CC", 1, (10, 20, 30, 45))
    data.mass("P_00001", "LEFT", "MLO", 2, (12, 30, 33, 50), **{"mass shape": "ROUND"})
    done = convert("cbis-ddsm", data.tables(), tmp_path / "out", capsys)
    assert done.pairs["P_00001_L"].links == {"1": "single_pair"}
    assert done.pairs["P_00001_L"].attributes["lesions"]["1"]["shape"] == {"cc": "OVAL", "mlo": "ROUND"}


def test_the_official_split_is_kept_and_validation_is_taken_from_training_by_patient(tmp_path, capsys):
    data = CbisDdsm(tmp_path / "data", size=(48, 48))
    for number in range(10):
        for side in ("LEFT", "RIGHT"):
            data.mass(f"P_{number:05d}", side, "CC", 1, (10, 20, 30, 45), "Training")
    data.mass("P_00100", "LEFT", "CC", 1, (10, 20, 30, 45), "Test")
    done = convert("cbis-ddsm", data.tables(), tmp_path / "out", capsys, "--validation", 0.3)
    patients = {name: {p.patient_id for p in pairs} for name, pairs in done.datalist.sections.items()}
    assert (len(patients["training"]), len(patients["validation"])) == (7, 3)
    assert patients["test"] == {"P_00100"}


def test_a_patient_in_both_splits_goes_to_test_and_is_named(tmp_path, capsys):
    data = CbisDdsm(tmp_path / "data")
    data.mass("P_00001", "LEFT", "CC", 1, (10, 20, 30, 45), "Training")
    data.mass("P_00001", "RIGHT", "CC", 1, (40, 20, 60, 45), "Test")
    data.mass("P_00002", "LEFT", "CC", 1, (10, 20, 30, 45), "Training")
    data.mass("P_00002", "LEFT", "CC", 1, (10, 20, 30, 45), "Test", kind="Calc")
    done = convert("cbis-ddsm", data.tables(), tmp_path / "out", capsys, "--validation", 0)
    assert {pair.pair_id for pair in done.datalist["test"]} == {"P_00001_L", "P_00001_R"}
    assert "patient P_00001: in test and training in the data set; all images go to test" in done.warnings
    assert "patient P_00002: in training of the mass tables, in test of the calc" in done.warnings
    assert ("calc_case_description_test_set.csv row 1", "not a mass") in done.skipped


def test_everything_that_cannot_be_used_is_named_and_the_rest_converts(tmp_path, capsys):
    data = CbisDdsm(tmp_path / "data")
    two_views(data)
    for number, patient in enumerate(("P_00002", "P_00003", "P_00004", "P_00005", "P_00006"), start=3):
        data.mass(patient, "LEFT", "CC", 1, (10, 20, 30, 45))
        assert len(data.rows["mass", "Test"]) == number
    rows = data.rows["mass", "Test"]
    rows[3]["left or right breast"] = "MIDDLE"
    source = data.tables()
    for file in source.glob("*P_00002_LEFT_CC/*/*/*.dcm"):
        file.unlink()
    for file in source.glob("*P_00004_LEFT_CC_1/*/*/000001.dcm"):
        file.write_bytes(file.read_bytes()[:-3000])
    for file in source.glob("*P_00005_LEFT_CC/*/*/*.dcm"):
        file.write_bytes(b"no image at all")
    for file in source.glob("*P_00006_LEFT_CC_1/*/*/000001.dcm"):
        file.unlink()
    (source / "LICENSE").write_text("CC BY 3.0")
    write_csv(source / "manifest.csv", [{"Subject ID": "x"}])
    save(source / "other.dcm", mammogram(SOPClassUID=SECONDARY_CAPTURE))
    done = convert("cbis-ddsm", source, tmp_path / "out", capsys)
    table = "mass_case_description_test_set.csv"
    assert list(done.pairs) == ["P_00001_L"]
    assert {
        (f"{table} row 3", "image not found"),
        (f"{table} row 4", "unknown patient, breast or view"),
        (f"{table} row 5", "mass without a usable mask"),
        (f"{table} row 6", "image not found"),
        (f"{table} row 7", "mass without a usable mask"),
        ("manifest.csv", "not a CBIS-DDSM table"),
        ("LICENSE", "not a DICOM or JPEG image"),
        ("other.dcm", "image without a mass in the tables"),
    } <= done.skipped
    assert "000001.dcm: (7FE0,0010) PixelData has" in done.detail(f"{table} row 5")
    assert str(tmp_path) not in (tmp_path / "out" / "conversion.json").read_text()
    reasons = Counter(entry["reason"] for entry in done.report["skipped"])
    assert reasons["mass at an unknown location"] == 2
    assert dict(reasons) == done.report["skipped_by_reason"]
    assert f"{reasons['image not found']:>6}  image not found" in done.said


def test_a_copy_of_a_table_adds_nothing(tmp_path, capsys):
    data = CbisDdsm(tmp_path / "data")
    two_views(data)
    source = data.tables()
    (source / "copy.csv").write_bytes(next(source.glob("mass*.csv")).read_bytes())
    done = convert("cbis-ddsm", source, tmp_path / "out", capsys)
    assert len(done.boxes("P_00001_L", "cc")) == 1
    assert ("mass_case_description_test_set.csv row 1", "duplicate row") in done.skipped


def test_a_second_run_reads_no_image_again_and_gives_the_same_bytes(tmp_path, capsys, monkeypatch):
    data = CbisDdsm(tmp_path / "data")
    two_views(data)
    source, out = data.tables(), tmp_path / "out"
    convert("cbis-ddsm", source, out, capsys)
    before = {file.name: file.read_bytes() for file in out.iterdir()}
    worked_on = []
    call = FileCache._call
    monkeypatch.setattr(
        FileCache,
        "_call",
        lambda self, function, files, rest: worked_on.extend(files) or call(self, function, files, rest),
    )
    convert("cbis-ddsm", source, out, capsys)
    assert {file.name: file.read_bytes() for file in out.iterdir()} == before
    assert worked_on == []
    changed = next(source.glob("*_LEFT_CC/*/*/*.dcm"))
    changed.write_bytes(changed.read_bytes())  # another time of change
    convert("cbis-ddsm", source, out, capsys)
    assert worked_on == [changed]


def test_a_folder_without_tables_is_an_error_that_says_so(tmp_path, capsys):
    (tmp_path / "data").mkdir()
    words = ["convert", "cbis-ddsm", str(tmp_path / "data"), "--output", str(tmp_path / "out")]
    assert main(words) == 2
    assert "no CBIS-DDSM table found" in capsys.readouterr().err


def test_tables_that_are_missing_or_broken_are_named(tmp_path, capsys):
    data = CbisDdsm(tmp_path / "data")
    two_views(data)
    source = data.tables()
    folders = [str(source), "--output", str(tmp_path / "out")]
    words = ["convert", "cbis-ddsm", *folders, "--tables", "nowhere.csv"]
    assert main(words) == 2
    assert "nowhere.csv: no such table" in capsys.readouterr().err
    (source / "broken.csv").write_text("a,b\n" + "x" * 200_000)
    (source / "empty.csv").write_text("")
    done = convert("cbis-ddsm", source, tmp_path / "out", capsys)
    assert list(done.pairs) == ["P_00001_L"]
    assert ("broken.csv", "unreadable table") in done.skipped
    assert ("empty.csv", "not a CBIS-DDSM table") in done.skipped


def test_tables_may_be_elsewhere(tmp_path, capsys):
    data = CbisDdsm(tmp_path / "data")
    two_views(data)
    table = next(data.tables().glob("*.csv"))
    elsewhere = table.rename(tmp_path / "mass_case_description_train_set.csv")
    done = convert("cbis-ddsm", data.folder, tmp_path / "out", capsys, "--tables", elsewhere)
    assert [pair.pair_id for pair in done.datalist["test"]] == ["P_00001_L"]  # its paths say Test
    assert done.report["skipped"] == []


def real_copy(folder, views, factor):
    """The real table's rows of P_00173, its real images, and masks and crops made of the known boxes."""
    known = json.loads((REDUCED / "datalist.json").read_text())["test"]
    boxes = {}
    for pair in known:
        for view in ("cc", "mlo"):
            entry = pair[view]
            for box, lesion in zip(entry["boxes"], entry["lesion_ids"], strict=True):
                whole = [round(number * 8) for number in box] if factor == 1 else np.rint(box).astype(int)
                boxes[f"{pair['laterality']}_{view}", lesion] = tuple(int(number) for number in whole)
    folder.mkdir()
    rows = []
    if REAL_TABLE.exists():
        with REAL_TABLE.open(newline="") as stream:
            rows = [row for row in csv.DictReader(stream) if row["patient_id"] == "P_00173"]
    for file in views:
        (folder / file.name).symlink_to(file)
        header = pydicom.dcmread(file, stop_before_pixels=True)
        side, view = str(header.PatientID).split("_")[-2:]
        for (place, lesion), box in boxes.items():
            if place != f"{side[0]}_{view.lower()}":
                continue
            if not REAL_TABLE.exists():
                uid = f"{header.SeriesInstanceUID[:50]}.{lesion}"
                rows.append(
                    {
                        "patient_id": "P_00173",
                        "left or right breast": side,
                        "image view": view,
                        "abnormality id": lesion,
                        "abnormality type": "mass",
                        "mass shape": "LOBULATED" if (side, lesion) != ("RIGHT", "1") else "OVAL",
                        "image file path": f"x/y/{header.SeriesInstanceUID}/000000.dcm",
                        "cropped image file path": f"x/y/{uid}/000000.dcm",
                        "ROI mask file path": f"x/y/{uid}/000001.dcm\n",
                    }
                )
            row = next(
                row
                for row in rows
                if (row["left or right breast"], row["image view"], row["abnormality id"])
                == (side, view, lesion)
            )
            series = row["ROI mask file path"].split("/")[2]
            tags = {"SOPClassUID": SECONDARY_CAPTURE, "SeriesInstanceUID": series}
            mask = mask_of(box, header.Rows, header.Columns)
            name = f"{side}_{view}_{lesion}"
            save(folder / f"{name}_0.dcm", mammogram(**tags))  # some crop
            save(folder / f"{name}_1.dcm", mammogram(mask, **tags))
    write_csv(folder / "mass_case_description_test_set.csv", rows)
    return folder, boxes


@pytest.mark.parametrize(
    "factor", [8, pytest.param(1, marks=[real_table, pytest.mark.slow])], ids=["reduced", "full"]
)
def test_the_real_breasts_of_p_00173_have_their_three_lesions(factor, tmp_path, capsys):
    views = sorted((REDUCED if factor == 8 else FIXTURES).glob("*.dcm"))
    source, boxes = real_copy(tmp_path / "data", views, factor)
    done = convert("cbis-ddsm", source, tmp_path / "out", capsys, "--check", "--geometric-links")
    assert [pair.pair_id for pair in done.datalist["test"]] == ["P_00173_L", "P_00173_R"]
    left, right = done.datalist["test"]
    for pair in (left, right):
        for view in ("cc", "mlo"):
            expected = sorted(
                box for (place, _), box in boxes.items() if place == f"{pair.laterality}_{view}"
            )
            assert sorted(map(tuple, getattr(pair, view).boxes.tolist())) == expected
    assert left.links == {"1": "single_pair"}
    assert set(right.links.values()) == {"annotated"}
    assert done.report["sections"]["all"]["lesions"] == 3
    assert "improbable" not in done.warnings  # depths in the films agree with the links
    assert "2 pairs, 4 images: no problems" in done.said
    if factor == 1:
        assert left.cc.boxes.tolist() == [[933, 2307, 1237, 2568]]
        assert left.mlo.boxes.tolist() == [[767, 3186, 1000, 3466]]
        assert left.cc.size == (4432, 2864)


def with_other_numbers(source, change):
    """Change the abnormality numbers of the right MLO view in the table."""
    (table,) = source.glob("*.csv")
    with table.open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    for row in rows:
        if (row["left or right breast"], row["image view"]) == ("RIGHT", "MLO"):
            row["abnormality id"] = change(row["abnormality id"])
            row["mass shape"] = {"1": "OVAL", "2": "LOBULATED"}[row["abnormality id"][0]]
    write_csv(table, rows)
    return source


def test_depths_in_the_real_films_link_what_numbers_do_not_and_abstain_when_unsure(tmp_path, capsys):
    """The mass near the chest wall is 2.5 times as large in CC as in MLO: it may be the same, or not."""
    source, boxes = real_copy(tmp_path / "data", sorted(REDUCED.glob("*.dcm")), 8)
    with_other_numbers(source, lambda number: number + "0")
    done = convert("cbis-ddsm", source, tmp_path / "out", capsys, "--geometric-links")
    right = done.pairs["P_00173_R"]
    (lesion,) = right.links
    assert right.links[lesion] == "geometric"
    assert right.attributes["link_confidence"][lesion] > 0.9
    for view in ("cc", "mlo"):
        seen = getattr(right, view)
        assert tuple(seen.boxes[seen.lesion_ids.index(lesion)]) == boxes[f"R_{view}", "1"]
    assert done.report["sections"]["all"]["masses_unlinked"] == 2


def test_numbers_that_the_depths_contradict_are_kept_with_a_warning(tmp_path, capsys):
    source, _ = real_copy(tmp_path / "data", sorted(REDUCED.glob("*.dcm")), 8)
    with_other_numbers(source, {"1": "2", "2": "1"}.get)
    done = convert("cbis-ddsm", source, tmp_path / "out", capsys, "--geometric-links")
    assert set(done.pairs["P_00173_R"].links.values()) == {"annotated"}
    assert "pair P_00173_R: the data set links mass 1 in CC to mass" in done.warnings
    assert "make improbable" in done.warnings


@real_table
def test_the_real_table_alone_is_counted(capsys):
    assert main(["convert", "cbis-ddsm", str(FIXTURES), "--table-only"]) == 0
    said = dict(line.rsplit(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    with REAL_TABLE.open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    views = Counter((row["patient_id"], row["left or right breast"], row["image view"]) for row in rows)
    breasts = {key[:2] for key in views}
    both = {b for b in breasts if views[(*b, "CC")] and views[(*b, "MLO")]}
    single = {b for b in both if views[(*b, "CC")] == views[(*b, "MLO")] == 1}
    assert (len(rows), len(breasts), len(both)) == (378, 210, 151)
    assert said["rows"] == "378"
    assert said["breasts"] == "210"
    assert said["breasts with masses in both views"] == "151"
    assert int(said["links single_pair"]) == len(single)
    # Of the other seven breasts, those whose numbers, shapes, margins and pathologies agree.
    agreeing = 0
    for patient, side in both - single:
        told = [
            {
                (r["abnormality id"], r["mass shape"], r["mass margins"], r["pathology"])
                for r in rows
                if (r["patient_id"], r["left or right breast"], r["image view"]) == (patient, side, view)
            }
            for view in ("CC", "MLO")
        ]
        agreeing += len(told[0]) if told[0] == told[1] else 0
    assert int(said["links annotated"]) == agreeing > 0
