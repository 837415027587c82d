"""Images and a table of boxes, in the forms in which people have them."""

from pathlib import Path

import numpy as np
import pytest
from conversions import convert
from dicom_files import mammogram, save
from miniatures import breast, write_csv
from PIL import Image

from clnet.cli.main import main
from clnet.data.reader import read_image
from clnet.preprocessing.breast import find_breast
from clnet.preprocessing.preprocess import preprocess_views

CC, MLO = [5.5, 20, 20, 40], [8, 30, 25, 51.5]
EMPTY = ["", "", "", ""]
CORNERS = ("x_min", "y_min", "x_max", "y_max")
SHARED = Path(__file__).parents[3] / "shared" / "data"


class Table:
    """A folder of images of 90 × 60 pixels and the rows of its table."""

    def __init__(self, folder):
        self.folder, self.rows = folder, []
        (folder / "images").mkdir(parents=True)

    def row(self, name, box, patient="p1", laterality="L", view="CC", size=(90, 60), **cells):
        """A row, and its image if that is not there; the name's suffix decides the format."""
        file = self.folder / "images" / name
        pixels = breast(*size, laterality, top=255, dtype=np.uint8)
        if file.suffix == ".dcm":
            save(file, mammogram(pixels, ViewPosition=view, ImageLaterality=laterality[0].upper()))
        else:
            Image.fromarray(pixels).save(file)
        row = {"patient": patient, "laterality": laterality, "view": view, "image": f"images/{name}"}
        self.rows.append(row | dict(zip(CORNERS, box, strict=True)) | cells)

    def both_views(self, **cells):
        """A mass in CC and in MLO."""
        self.row("a.jpg", CC, **cells)
        self.row("b.jpg", MLO, view="MLO", **cells)

    def write(self, **options):
        """Write the table; returns its file."""
        return write_csv(self.folder / "boxes.csv", self.rows, **options)


@pytest.fixture
def table(tmp_path):
    return Table(tmp_path / "data")


@pytest.fixture
def converted(table, tmp_path, capsys):
    def run(*options):
        boxes = table.folder / "boxes.csv"
        if not boxes.exists():
            table.write()
        return convert("table", table.folder, tmp_path / "out", capsys, "--boxes", boxes, *options)

    return run


@pytest.fixture
def refused(table, tmp_path, capsys):
    def run(*options):
        boxes = table.folder / "boxes.csv"
        words = ["convert", "table", table.folder, "--output", tmp_path / "out", "--boxes", boxes, *options]
        assert main([str(word) for word in words]) == 2
        return capsys.readouterr().err

    return run


def test_boxes_of_a_table_become_pairs_whatever_the_format_of_the_images(table, converted):
    table.row("a.jpg", CC)
    table.row("b.png", MLO, view="mlo", laterality="left")
    table.row("c.dcm", EMPTY, laterality="RIGHT")
    done = converted("--check")
    assert set(done.pairs) == {"p1_L", "p1_R"}
    assert done.boxes("p1_L", "cc") == [CC]
    assert done.boxes("p1_L", "mlo") == [MLO]
    assert done.pairs["p1_L"].links == {"1": "single_pair"}
    assert done.pairs["p1_L"].patient_id == "p1"
    assert done.boxes("p1_R", "cc") == []
    assert done.datalist.name == "data"
    assert done.skipped == set()
    assert "no problems" in done.said


@pytest.mark.parametrize("delimiter", [",", ";", "\t"], ids=["comma", "semicolon", "tab"])
@pytest.mark.parametrize("mark", ["", "\ufeff"], ids=["plain", "with byte order mark"])
def test_the_usual_separators_are_told_apart(table, converted, delimiter, mark):
    table.both_views()
    file = table.write(delimiter=delimiter)
    file.write_text(mark + file.read_text(encoding="utf-8"), encoding="utf-8")
    assert converted().boxes("p1_L", "mlo") == [MLO]


def test_columns_may_have_any_names(table, converted):
    table.both_views(Kind="oval", Grade="3", Tissue="c", Part="val", Exam="2019")
    names = ("Subject", "Side", "Projection", "File", "X1", "Y1", "X2", "Y2", *list(table.rows[0])[8:])
    table.rows = [dict(zip(names, row.values(), strict=True)) for row in table.rows]
    done = converted(
        *("--patient", "Subject", "--laterality", "Side", "--view", "Projection", "--image", "FILE"),
        *("--box", "X1", "Y1", "X2", "Y2", "--study", "Exam", "--split", "Part"),
        *("--lesion-attributes", "shape=Kind", "Grade", "--breast-attributes", "density=Tissue"),
    )
    (pair,) = done.datalist["validation"]
    assert (pair.pair_id, pair.patient_id) == ("p1_2019_L", "p1")
    assert pair.attributes["lesions"] == {"1": {"shape": "oval", "Grade": "3"}}
    assert pair.attributes["density"] == "c"


@pytest.mark.parametrize(
    ("word", "section"),
    [("train", "training"), ("Training", "training"), ("VAL", "validation"), ("test", "test")],
)
def test_the_split_of_the_table_is_kept(table, converted, word, section):
    table.both_views(split=word)
    assert [pair.pair_id for pair in converted("--validation", "0").datalist[section]] == ["p1_L"]


def test_without_a_split_patients_are_split(table, converted):
    for number in range(20):
        table.row(f"{number}.png", EMPTY, patient=f"p{number}")
    sections = converted("--validation", "0.2", "--test", "0.3").datalist.sections
    assert {name: len(pairs) for name, pairs in sections.items()} == {
        "training": 10,
        "validation": 4,
        "test": 6,
    }


def test_studies_of_a_patient_are_pairs_of_their_own(table, converted):
    for study in ("1", "2"):
        for view in ("CC", "MLO"):
            table.row(f"{study}{view}.png", EMPTY, view=view, study=study)
    done = converted()
    assert set(done.pairs) == {"p1_1_L", "p1_2_L"}
    assert done.report["sections"]["all"]["one_view"] == 0


def test_the_same_lesion_id_in_both_views_is_a_link(table, converted):
    table.row("a.png", CC, lesion_id="x")
    table.row("a.png", [30, 50, 40, 60], lesion_id="y")
    table.row("b.png", MLO, view="MLO", lesion_id="y")
    pair = converted().pairs["p1_L"]
    assert pair.links == {"2": "annotated"}
    assert (pair.cc.lesion_ids, pair.mlo.lesion_ids) == (("1", "2"), ("2",))


def test_several_boxes_without_ids_are_linked_by_geometry_only_if_asked(table, converted):
    for name, view in (("a.png", "CC"), ("b.png", "MLO")):
        table.row(name, [5, 20, 15, 30], view=view)
        table.row(name, [30, 50, 45, 70], view=view)
    assert converted().pairs["p1_L"].links == {}
    assert converted("--geometric-links").pairs["p1_L"].links == {"1": "geometric", "2": "geometric"}


def test_a_pixel_size_comes_from_its_columns_or_from_the_original_size(table, converted):
    """Two scans of 450 × 300 and 900 × 600 pixels, reduced to 90 × 60: one pixel is 5 or 10 of theirs."""
    table.row("a.jpg", CC, original_height=450, original_width=300, pixel_size_y="", pixel_size_x="")
    table.row(
        "b.jpg", MLO, view="MLO", original_height=900, original_width=600, pixel_size_y="", pixel_size_x=""
    )
    table.row("c.jpg", CC, "p2", original_height=9, original_width=9, pixel_size_y=0.07, pixel_size_x=0.08)
    done = converted()
    pair = done.pairs["p1_L"]
    assert (pair.cc.pixel_size, pair.mlo.pixel_size) == ((5, 5), (10, 10))
    assert done.pairs["p2_L"].cc.pixel_size == (0.07, 0.08)


def test_everything_that_is_not_used_is_accounted_for(table, converted):
    table.both_views()
    table.row("a.jpg", CC)  # a copy
    table.row("ml.png", EMPTY, view="ML")
    table.row("gone.png", CC)
    (table.folder / "images" / "gone.png").unlink()
    Image.new("L", (60, 90)).save(table.folder / "images" / "unnamed.png")
    (table.folder / "notes.txt").write_text("not an image")
    done = converted()
    assert set(done.pairs) == {"p1_L"}
    assert done.skipped == {
        ("boxes.csv row 3", "duplicate row"),
        ("boxes.csv row 4", "view other than CC and MLO"),
        ("boxes.csv row 5", "image not found"),
        ("images/unnamed.png", "image not in the table"),
        ("notes.txt", "not a DICOM, PNG, JPEG or NIfTI image"),
    }
    assert done.detail("boxes.csv row 3") == "same as boxes.csv row 1"
    assert done.detail("boxes.csv row 5") == "column 'image' is 'images/gone.png'"


@pytest.mark.parametrize(
    ("cells", "detail"),
    [
        ({"x_min": "left"}, "column 'x_min' is 'left'; expected a number such as 12.5"),
        ({"x_min": "12,5"}, "column 'x_min' is '12,5'; expected a number"),
        ({"y_max": ""}, "column 'y_max' is ''; expected a number"),
        ({"x_min": "21"}, "not a box: x_min '21', y_min '20', x_max '20', y_max '40'"),
        ({"laterality": "both"}, "column 'laterality' is 'both'; expected one of L, LEFT, R, RIGHT"),
        ({"patient": ""}, "column 'patient' is empty"),
        ({"split": "holdout"}, "column 'split' is 'holdout'; expected one of TRAINING, TRAIN"),
        ({"original_height": "0"}, "original_height 0 and original_width 600; expected positive numbers"),
    ],
)
def test_a_damaged_row_is_named_with_column_and_value_and_its_image_is_left_out(
    table, converted, cells, detail
):
    rest = {"split": "train", "original_height": 900, "original_width": 600}
    table.both_views(**rest)
    table.row("a.jpg", CC, **rest)
    table.rows[2] |= cells
    done = converted()
    assert ("boxes.csv row 3", "damaged row") in done.skipped
    assert detail in done.detail("boxes.csv row 3")
    assert ("images/a.jpg", "mass at an unknown location") in done.skipped
    assert done.pairs["p1_L"].cc is None, "as a negative, the image would teach the model to miss the mass"
    assert done.boxes("p1_L", "mlo") == [MLO]


def test_rows_of_one_image_must_agree(table, converted):
    table.both_views()
    table.row("a.jpg", [30, 50, 40, 60], laterality="R")
    done = converted()
    assert done.pairs["p1_L"].cc is None
    assert ("boxes.csv row 3", "rows of one image disagree") in done.skipped
    assert done.detail("boxes.csv row 3") == "boxes.csv row 1 and boxes.csv row 3: laterality 'L' and 'R'"


def test_a_table_that_contradicts_a_dicom_header_is_followed_with_a_warning(table, converted):
    table.row("a.dcm", CC)
    table.rows[0] |= {"view": "MLO", "laterality": "R"}
    done = converted()
    assert done.boxes("p1_R", "mlo") == [CC]
    assert "boxes.csv row 1: MLO in the table, CC in the image; the table is followed" in done.warnings
    assert "boxes.csv row 1: R in the table, L in the image; the table is followed" in done.warnings


def test_images_are_found_by_path_or_by_a_unique_name(table, converted):
    table.both_views()
    table.rows[0]["image"] = "elsewhere\\a.jpg"
    table.rows[1]["image"] = str((table.folder / "images" / "b.jpg").resolve())
    assert len(converted().pairs["p1_L"].views) == 2


def test_an_ambiguous_bare_name_is_not_guessed(table, converted):
    table.both_views()
    (table.folder / "more").mkdir()
    Image.new("L", (60, 90)).save(table.folder / "more" / "a.jpg")
    table.rows[0]["image"] = "a.jpg"
    assert ("boxes.csv row 1", "image not found") in converted().skipped


@pytest.mark.parametrize(
    ("change", "options", "words"),
    [
        (
            {"patient": "subject"},
            (),
            "has no column 'patient'; its columns are: subject, laterality, view, image",
        ),
        ({"patient": "subject"}, (), "Name the right one with --patient."),
        ({"x_max": "right"}, (), "has no column 'x_max'"),
        ({}, ("--split", "fold"), "has no column 'fold'"),
        ({}, ("--pixel-size", "dy", "dx"), "Name the right one with --pixel-size."),
        ({}, ("--lesion-attributes", "shape=mass_shape"), "has no column 'mass_shape'"),
        ({}, ("--breast-attributes", "density"), "Name the right one with --breast-attributes."),
    ],
)
def test_a_missing_column_is_answered_with_those_that_are_there_and_the_option(
    table, refused, change, options, words
):
    table.both_views()
    table.rows = [{change.get(name, name): value for name, value in row.items()} for row in table.rows]
    file = table.write()
    said = refused(*options)
    assert str(file) in said and words in said


def test_a_table_of_which_nothing_can_be_used_says_why(table, refused):
    table.both_views()
    for row in table.rows:
        row["laterality"] = "gauche"
    table.write()
    assert (
        "no usable image (damaged row; such as boxes.csv row 1: column 'laterality' is 'gauche'" in refused()
    )


def test_an_empty_table_is_refused(table, refused):
    table.both_views()
    file = table.write()
    file.write_text(file.read_text().splitlines()[0] + "\n")
    assert "has no rows" in refused()


ATTRIBUTES = ("shape=mass_shape", "margins=mass_margins", "pathology")


def converted_shared(name, tmp_path, capsys, *options):
    folder = SHARED / name
    if not folder.exists():
        pytest.skip("the reduced films are not here")
    return convert("table", folder, tmp_path, capsys, "--boxes", folder / "boxes.csv", *options)


def test_the_reduced_films_of_cbis_ddsm_are_all_converted(tmp_path, capsys):
    """The counts are those of the official tables."""
    done = converted_shared(
        *("cbis-ddsm-mass", tmp_path, capsys, "--validation", "0", "--check"),
        *("--lesion-attributes", *ATTRIBUTES, "subtlety", "--breast-attributes", "density=breast_density"),
    )
    assert done.skipped == set()
    assert "no problems" in done.said
    for section, breasts, both, cc_alone, mlo_alone, boxes in (
        ("training", 722, 509, 64, 149, 1318),
        ("test", 210, 151, 19, 40, 378),
    ):
        pairs = done.datalist[section]
        views = [tuple(pair.views) for pair in pairs]
        assert len(pairs) == breasts
        assert [views.count(kind) for kind in (("cc", "mlo"), ("cc",), ("mlo",))] == [
            both,
            cc_alone,
            mlo_alone,
        ]
        assert sum(len(view.boxes) for pair in pairs for view in pair.views.values()) == boxes
    assert done.datalist["validation"] == ()
    assert all(set(pair.links.values()) <= {"single_pair"} for pair in done.pairs.values())
    assert done.report["sections"]["test"]["links_single_pair"] == 144
    pixel_size = done.pairs["P_00016_L"].mlo.pixel_size
    assert pixel_size == pytest.approx((5491 / 800, 2011 / 293))


def test_the_low_energy_images_of_cdd_cesm_are_all_converted(tmp_path, capsys):
    done = converted_shared("cdd-cesm", tmp_path, capsys, "--lesion-attributes", *ATTRIBUTES)
    counts = done.report["sections"]["all"]
    assert (counts["views"], counts["pairs"], counts["pairs"] - counts["one_view"]) == (205, 117, 88)
    assert done.skipped == set()


@pytest.mark.slow
def test_the_pixels_show_on_which_side_the_chest_wall_of_a_film_is(tmp_path, capsys):
    """Known of these films: 29% are mirrored; both views of a breast always agree. Three were looked at."""
    done = converted_shared("cbis-ddsm-mass", tmp_path, capsys)
    sides = {
        pair.pair_id: {name: find_breast(read_image(view.image).pixels) for name, view in pair.views.items()}
        for pair in done.pairs.values()
    }
    is_mirrored = []
    for pair_id, views in sides.items():
        assert len({found.chest_side for found in views.values()}) == 1, pair_id
        usual = "left" if pair_id.endswith("L") else "right"
        is_mirrored += [found.chest_side != usual for found in views.values()]
    assert len(is_mirrored) == 1592
    assert np.mean(is_mirrored) == pytest.approx(0.29, abs=0.005)
    assert sides["P_00016_L"]["cc"].chest_side == sides["P_01614_L"]["mlo"].chest_side == "right"
    film = read_image(SHARED / "cbis-ddsm-mass" / "images" / "train_P_00637_RIGHT_CC.jpg")
    (placed,) = preprocess_views([film], (200, 120), "R")
    assert placed.breast.chest_side == "left" and placed.placement.x_scale > 0
