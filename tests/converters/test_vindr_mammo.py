"""VinDr-Mammo as it is on disk, with each of its pitfalls."""

import pytest
from conversions import convert
from miniatures import VindrMammo

from clnet.cli.main import main
from clnet.converters.datasets.vindr_mammo import categories_of

CC, MLO = (5.25, 20.5, 20.75, 40.0), (8.0, 30.0, 25.0, 51.5)


@pytest.fixture
def data(tmp_path):
    return VindrMammo(tmp_path / "data")


@pytest.fixture
def converted(data, tmp_path, capsys):
    return lambda *options: convert("vindr-mammo", data.folder, tmp_path / "out", capsys, *options)


def test_masses_of_the_table_become_boxes(data, converted):
    data.image("study1", "image1", "L", "CC", [(["Mass", "Suspicious Calcification"], CC)])
    data.image("study1", "image2", "L", "MLO", [(["Mass"], MLO), (["Asymmetry"], CC)], split="training")
    data.image("study1", "image3", "R", "CC")
    data.image("study2", "image4", "R", "CC", split="test")
    data.table()
    done = converted("--check", "--validation", "0")
    pair = done.pairs["study1_L"]
    assert pair.cc.boxes.tolist() == [list(CC)]
    assert pair.mlo.boxes.tolist() == [list(MLO)]
    assert pair.links == {"1": "single_pair"}
    assert pair.attributes["density"] == "C"
    assert pair.attributes["birads"] == "4"
    assert done.boxes("study1_R", "cc") == []
    assert [pair.pair_id for pair in done.datalist["test"]] == ["study2_R"]
    assert done.skipped == {("finding_annotations.csv row 3", "not a mass")}
    assert "no problems" in done.said


def test_several_masses_in_a_view_are_not_linked_without_geometry(data, converted):
    data.image("s", "i1", "L", "CC", [(["Mass"], (5, 20, 15, 30)), (["Mass"], (30, 50, 45, 70))])
    data.image("s", "i2", "L", "MLO", [(["Mass"], (6, 20, 16, 30)), (["Mass"], (31, 50, 46, 70))])
    data.table()
    done = converted()
    assert done.pairs["s_L"].links == {}
    assert done.report["sections"]["all"]["masses_unlinked"] == 4
    linked = converted("--geometric-links")
    pair = linked.pairs["s_L"]
    assert pair.links == {"1": "geometric", "2": "geometric"}
    assert pair.mlo.lesion_ids == ("1", "2")
    assert all(0.6 <= value <= 1 for value in pair.attributes["link_confidence"].values())


def test_boxes_that_leave_the_image_are_clipped_with_a_warning(data, converted):
    data.image("s", "i1", "L", "CC", [(["Mass"], (-3.5, 20, 15, 95))])  # 90 rows and 60 columns
    data.table()
    done = converted()
    assert done.boxes("s_L", "cc") == [[0, 20, 15, 90]]
    assert "images/s/i1.dicom: mass 1 is clipped to the image" in done.warnings


@pytest.mark.parametrize(
    ("cells", "detail"),
    [
        ({"xmin": ""}, "a mass without a box: xmin ''"),
        ({"ymax": "nan"}, "an empty box"),
        ({"xmax": "1"}, "an empty box"),
        ({"height": "180"}, "180 × 60 in the table, but the image is 90 × 60"),
        ({"xmin": "70", "xmax": "80"}, "is outside the image"),
        ({"finding_categories": "__import__('os').system('x')"}, "expected a list of names"),
        ({"finding_categories": "{'Mass': 1}"}, "expected a list of names"),
        ({"finding_categories": ""}, "expected a list of names"),
    ],
)
def test_an_image_with_a_damaged_row_is_not_used_as_one_without_masses(cells, detail, data, converted):
    data.image("s", "i1", "L", "CC", [(["Mass"], CC)], **cells)
    data.image("s", "i2", "L", "MLO", [(["Mass"], MLO)])
    data.table()
    done = converted()
    assert done.pairs["s_L"].cc is None
    assert done.boxes("s_L", "mlo") == [list(MLO)]
    assert ("images/s/i1.dicom", "mass at an unknown location") in done.skipped
    assert detail in done.detail("images/s/i1.dicom")


def test_categories_are_parsed_as_data_and_never_executed():
    assert categories_of("['Mass', \"Skin Thickening\"]") == ["Mass", "Skin Thickening"]
    for text in ("print(1)", "['Mass'", "[1]", "'Mass'", "[" * 9000):
        with pytest.raises(ValueError, match="expected a list of names"):
            categories_of(text)


def test_breasts_without_a_clean_pair_and_lost_files_are_named(data, converted):
    data.image("s", "i1", "L", "CC", [(["Mass"], CC)])
    data.image("s", "i1b", "L", "CC")  # a second CC, without a mass
    data.image("s", "i2", "L", "MLO").unlink()
    data.image("s", "i3", "R", "XCCL")
    data.image("s", "i4", "R", "MLO").write_bytes(b"damaged")
    data.image("s", "i5", "R", "CC")
    data.rows.pop()
    data.rows.append(data.rows[0] | {"image_id": ""})
    data.table()
    (data.folder / "metadata.csv").write_text("a,b\n")
    done = converted()
    assert done.pairs["s_L"].mlo is None
    assert done.boxes("s_L", "cc") == [list(CC)]
    assert list(done.pairs) == ["s_L"]
    assert done.skipped == {
        ("finding_annotations.csv row 3", "image not found"),
        ("finding_annotations.csv row 4", "unknown breast, view or split"),
        ("finding_annotations.csv row 6", "row without image_id or study_id"),
        ("images/s/i1b.dicom", "another image of this view is used"),
        ("images/s/i4.dicom", "not a DICOM image"),
        ("images/s/i5.dicom", "image not in the table"),
        ("metadata.csv", "not a DICOM image"),
    }
    two = converted
    with pytest.raises(AssertionError, match="no usable image"):
        two("--two-views-only")


def test_a_table_without_its_columns_is_an_error(data, tmp_path, capsys):
    data.image("s", "i1", "L", "CC", [(["Mass"], CC)])
    data.table()
    table = data.folder / "finding_annotations.csv"
    table.write_text(table.read_text().replace("finding_categories", "categories"))
    assert main(["convert", "vindr-mammo", str(data.folder), "--output", str(tmp_path / "out")]) == 2
    assert "has no column 'finding_categories'" in capsys.readouterr().err
