"""INbreast as it is on disk, with each of its pitfalls."""

import struct
import sys

import pytest
from conversions import convert
from miniatures import Inbreast, ring

from clnet.cli.main import main
from clnet.converters.datasets.inbreast import read_outlines

PATIENT, OTHER = "6c613a14b80a8591", "8d0b9620c53c0268"
CC, MLO = (5, 20, 20, 40), (8, 30, 25, 51)


@pytest.fixture
def data(tmp_path):
    return Inbreast(tmp_path / "data")


@pytest.fixture
def converted(data, tmp_path, capsys):
    return lambda *options: convert("inbreast", data.folder, tmp_path / "out", capsys, *options)


def test_outlines_become_boxes_and_ml_means_mlo(data, converted):
    data.image("20586908", PATIENT, "L", "CC", [("Mass", ring(CC)), ("Calcification", [(3.0, 4.0)])])
    data.image("20586934", PATIENT, "L", "MLO", [("mass ", ring(MLO)), ("Spiculated Region", ring(MLO))])
    data.table()
    done = converted("--check")
    (pair,) = done.pairs.values()
    assert (pair.pair_id, pair.patient_id) == (f"{PATIENT}_200802_L", PATIENT)
    assert pair.cc.boxes.tolist() == [list(CC)]
    assert pair.mlo.boxes.tolist() == [list(MLO)]
    assert pair.links == {"1": "single_pair"}
    assert pair.attributes == {"density": "2", "birads": "4a", "link_confidence": {"1": 1.0}}
    assert done.skipped == {("AllXML/20586908.xml", "not a mass"), ("AllXML/20586934.xml", "not a mass")}
    assert "no problems" in done.said


def test_an_image_without_outlines_has_no_masses(data, converted):
    data.image("1001", PATIENT, "R", "CC")
    data.image("1002", PATIENT, "R", "MLO", [("Mass", ring(MLO))])
    data.table()
    done = converted()
    assert done.boxes(f"{PATIENT}_200802_R", "cc") == []
    assert done.pairs[f"{PATIENT}_200802_R"].links == {}


def test_two_exams_of_a_patient_are_two_pairs_in_one_section(data, converted):
    for number, (date, view) in enumerate([(d, v) for d in ("200802", "201001") for v in ("CC", "MLO")]):
        data.image(str(1000 + number), PATIENT, "L", view, date=date)
    data.table()
    done = converted()
    assert set(done.pairs) == {f"{PATIENT}_200802_L", f"{PATIENT}_201001_L"}
    assert sum(bool(pairs) for pairs in done.datalist.sections.values()) == 1


@pytest.mark.parametrize("points", [[], [(10.0, 20.0)], [(10.0, 20.0), (12.0, 22.0)]], ids=len)
def test_an_image_with_a_mass_of_fewer_than_three_points_is_not_used(points, data, converted):
    data.image("1001", PATIENT, "L", "CC", [("Mass", points), ("Mass", ring(CC))])
    data.image("1002", PATIENT, "L", "MLO", [("Mass", ring(MLO)), ("Calcification", points)])
    data.table()
    done = converted()
    assert done.pairs[f"{PATIENT}_200802_L"].cc is None
    assert done.boxes(f"{PATIENT}_200802_L", "mlo") == [list(MLO)]
    name = f"AllDICOMs/1001_{PATIENT}_MG_L_CC_ANON.dcm"
    assert (name, "mass at an unknown location") in done.skipped
    assert f"a mass of {len(points)} points" in done.detail(name)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"not xml",
        b"<plist><dict><key>Images</key><array/></dict></plist>",
        b'<!DOCTYPE x [<!ENTITY a "b">]><plist><dict/></plist>',
        b"<plist><dict><key>Images</key><array><dict><key>ROIs</key><array><dict><key>Name</key>"
        b"<string>Mass</string><key>Point_px</key><array><string>(1, two)</string></array></dict></array>"
        b"</dict></array></dict></plist>",
    ],
)
def test_damaged_outlines_are_named_and_their_image_is_not_used(content, data, converted, tmp_path):
    data.image("1001", PATIENT, "L", "CC", [])
    data.image("1002", PATIENT, "L", "MLO", [("Mass", ring(MLO))])
    (data.folder / "AllXML" / "1001.xml").write_bytes(content)
    data.table()
    done = converted()
    assert done.pairs[f"{PATIENT}_200802_L"].cc is None
    assert "1001.xml cannot be read" in done.detail(f"AllDICOMs/1001_{PATIENT}_MG_L_CC_ANON.dcm")
    assert read_outlines(tmp_path / "nowhere.xml").unlocated


def test_what_is_missing_or_left_over_is_named(data, converted):
    kept = data.image("1001", PATIENT, "L", "CC", [("Mass", ring(CC))])
    data.image("1002", OTHER, "L", "CC").unlink()
    data.rows.append(dict.fromkeys(data.rows[0], "") | {"File Name": "total"})
    data.rows.append(data.rows[0])
    data.image("1003", OTHER, "R", "CC").write_bytes(b"damaged")
    data.table()
    (data.folder / "AllXML" / "9999.xml").write_bytes((data.folder / "AllXML" / "1001.xml").read_bytes())
    (data.folder / "inbreast.pdf").write_bytes(b"%PDF")
    (data.folder / "copy").mkdir()
    (data.folder / "copy" / kept.name).write_bytes(kept.read_bytes())
    done = converted()
    assert list(done.pairs) == [f"{PATIENT}_200802_L"]
    assert done.skipped == {
        ("INbreast.csv: 1002", "image not found"),
        ("INbreast.csv row 3", "row without an image"),
        ("INbreast.csv row 4", "duplicate row"),
        (f"AllDICOMs/1003_{OTHER}_MG_R_CC_ANON.dcm", "not a DICOM image"),
        ("AllXML/9999.xml", "outlines without an image"),
        ("inbreast.pdf", "not an INbreast file"),
        (f"copy/{kept.name}", "duplicate image file"),
    }


def test_an_image_that_the_table_does_not_have_is_used_with_a_warning(data, converted):
    data.image("1001", PATIENT, "L", "CC")
    data.image("1002", OTHER, "L", "CC", Laterality="R")
    del data.rows[0]
    data.table()
    done = converted()
    assert set(done.pairs) == {f"{PATIENT}_L", f"{OTHER}_200802_L"}
    assert "not in the table" in done.warnings
    assert "R CC in the table; the file name is followed" in done.warnings


def biff2(rows):
    """A worksheet in the oldest form of .xls: a stream of records, numbers as floats."""
    records = [struct.pack("<HHHH", 0x0009, 4, 2, 0x10)]
    for y, row in enumerate(rows):
        for x, value in enumerate(row):
            place = struct.pack("<HH3x", y, x)
            if isinstance(value, str):
                text = value.encode("latin-1")
                record, content = 0x0004, place + bytes([len(text)]) + text
            else:
                record, content = 0x0003, place + struct.pack("<d", value)
            records.append(struct.pack("<HH", record, len(content)) + content)
    return b"".join([*records, struct.pack("<HH", 0x000A, 0)])


@pytest.fixture
def xls(data):
    data.image("1001", PATIENT, "L", "CC", [("Mass", ring(CC))])
    data.image("1002", PATIENT, "L", "MLO")
    names = ["Laterality", "View", "Acquisition date", "File Name", "ACR", "Bi-Rads", "Mass "]
    rows = [
        names,
        ["L", "CC", 200802.0, 1001.0, 3.0, "4c", "X"],
        ["L", "MLO", 200802.0, 1002.0, 3.0, 2.0, "X"],
        ["", "", "", "", "", "", 2.0],
    ]
    file = data.folder / "INbreast.xls"
    file.write_bytes(biff2(rows))
    return file


def test_the_xls_has_file_names_as_floats_a_blank_after_mass_and_a_trailer(xls, converted):
    pytest.importorskip("xlrd")
    done = converted()
    pair = done.pairs[f"{PATIENT}_200802_L"]
    assert pair.cc.boxes.tolist() == [list(CC)]
    assert pair.attributes["birads"] == "4c"
    # The table marks a mass in the other view too, which nobody outlined.
    assert pair.mlo is None
    assert "the table lists a mass" in done.detail(f"AllDICOMs/1002_{PATIENT}_MG_L_ML_ANON.dcm")
    assert ("INbreast.xls row 3", "row without an image") in done.skipped


def test_without_xlrd_an_xls_is_an_error_that_says_what_to_do(xls, tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "xlrd", None)
    assert main(["convert", "inbreast", str(xls.parent), "--output", str(tmp_path / "out")]) == 2
    said = capsys.readouterr().err
    assert "pip install 'clnet[xls]', or save it as CSV" in said


def test_a_damaged_xls_is_an_error(xls, tmp_path, capsys):
    pytest.importorskip("xlrd")
    xls.write_bytes(b"no workbook at all")
    assert main(["convert", "inbreast", str(xls.parent), "--output", str(tmp_path / "out")]) == 2
    assert "save it as CSV" in capsys.readouterr().err
