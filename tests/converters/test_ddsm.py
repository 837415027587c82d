"""DDSM as it is on disk, with each of its pitfalls."""

from collections import Counter

import numpy as np
import pytest
from conversions import convert
from miniatures import CALCIFICATION, MASS, Ddsm, chain, overlay, zip_in_place
from PIL import Image
from sof3 import encode

from clnet.converters.datasets.ddsm import section_of
from clnet.converters.datasets.ddsm_ics import IcsError, parse_ics
from clnet.converters.datasets.ddsm_overlay import parse_overlay, trace
from clnet.data.reader import read_image

FILMS = ("LEFT_CC", "LEFT_MLO", "RIGHT_CC", "RIGHT_MLO")
PINNED = {"B_3024": "training", "B_3000": "validation", "C_0029": "test"}  # 0.009, 0.793, 0.962
CC, MLO = (5, 10, 20, 30), (6, 20, 22, 41)


def four_films(**texts):
    return dict.fromkeys(FILMS) | texts


def mass(box):
    return overlay(([MASS], chain(box)))


@pytest.fixture
def data(tmp_path):
    return Ddsm(tmp_path / "data")


@pytest.fixture
def converted(data, tmp_path, capsys):
    return lambda *options: convert("ddsm", data.folder, tmp_path / "out", capsys, *options)


def test_a_case_gives_two_breasts_with_the_boxes_of_its_outlines(data, converted):
    data.case("B_3024_1", four_films(LEFT_CC=mass(CC), LEFT_MLO=mass(MLO)))
    done = converted("--check")
    left, right = done.pairs["B_3024_1_L"], done.pairs["B_3024_1_R"]
    assert left.patient_id == right.patient_id == "B_3024"
    assert left.cc.boxes.tolist() == [list(CC)]
    assert left.mlo.boxes.tolist() == [list(MLO)]
    assert left.links == {"1": "single_pair"}
    assert right.cc.boxes.tolist() == right.mlo.boxes.tolist() == []
    assert left.attributes["density"] == "3"
    assert left.attributes["lesions"]["1"] == {
        "assessment": "4",
        "margins": "spiculated",
        "pathology": "malignant",
        "shape": "irregular",
        "subtlety": "3",
    }
    assert done.report["skipped"] == []
    assert "no problems" in done.said


def test_chain_codes_go_clockwise_from_up():
    around = trace((5, 5), [0, 1, 2, 3, 4, 5, 6, 7])
    assert around.tolist() == [[5, 5], [5, 4], [6, 3], [7, 3], [8, 4], [8, 5], [7, 6], [6, 6], [5, 5]]


@pytest.mark.parametrize(
    ("case_id", "digitizer", "density"),
    [
        ("A_1000_1", "DBA", lambda grey: (np.log10(grey) - 4.80662) / -1.07553),
        ("A_1000_1", "HOWTEK 960", lambda grey: 3.789 - 0.00094568 * grey),
        ("B_3024_1", "LUMISYS LASER", lambda grey: (grey - 4096.99) / -1009.01),
        ("C_0029_1", "LUMISYS", lambda grey: (grey - 4096.99) / -1009.01),
        ("D_4000_1", "HOWTEK MULTI-RAD850", lambda grey: 3.96604095 - 0.00099055808 * grey),
        ("D_4000_1", "", lambda grey: 3.96604095 - 0.00099055808 * grey),
    ],
)
def test_films_become_optical_densities_by_digitizer_bright_where_dense(
    case_id, digitizer, density, data, converted
):
    data.case(case_id, {"LEFT_CC": None}, digitizer)
    done = converted()
    image = read_image(done.pairs[f"{case_id}_L"].cc.image)
    grey = data.grey("LEFT_CC", (60, 40)).astype(float)
    expected = (3.0 - density(grey).clip(0.05, 3.0)) / 2.95 * 65535
    assert np.abs(image.pixels - expected).max() <= 0.51
    brightest = np.unravel_index(grey.argmax(), grey.shape)
    assert image.pixels[brightest] == image.pixels.max()


def test_an_unknown_digitizer_is_named(data, converted):
    data.case("B_3024_1", {"LEFT_CC": None})
    data.case("A_0001_1", {"LEFT_CC": None}, digitizer="")
    done = converted()
    assert list(done.pairs) == ["B_3024_1_L"]
    name = "cases/cancers/cancer_01/case0001/A_0001_1.LEFT_CC.LJPEG"
    assert (name, "unknown digitizer") in done.skipped


def test_the_raw_form_is_big_endian_and_gives_the_same_image(data, converted, tmp_path, capsys):
    folder = data.case("B_3024_1", {"LEFT_CC": None})
    first = np.asarray(Image.open(converted().pairs["B_3024_1_L"].cc.image))
    (folder / "B_3024_1.LEFT_CC.LJPEG").unlink()
    raw = data.grey("LEFT_CC", (60, 40)).astype(">u2").tobytes()
    (folder / "B_3024_1.LEFT_CC.LJPEG.1").write_bytes(raw)
    again = convert("ddsm", data.folder, tmp_path / "raw", capsys)
    second = np.asarray(Image.open(again.pairs["B_3024_1_L"].cc.image))
    assert second.dtype == first.dtype == np.uint16
    np.testing.assert_array_equal(first, second)


def test_gzipped_files_are_read_whatever_their_name(data, converted):
    folder = data.case("B_3024_1", {"LEFT_CC": mass(CC), "LEFT_MLO": mass(MLO)})
    for file in folder.iterdir():
        zip_in_place(file)
    (folder / "B_3024_1.LEFT_CC.LJPEG").rename(folder / "B_3024_1.LEFT_CC.LJPEG.gz")
    done = converted()
    assert done.boxes("B_3024_1_L", "cc") == [list(CC)]
    assert done.report["skipped"] == []


def test_rows_and_columns_that_a_stream_swaps_follow_the_ics(data, converted):
    folder = data.case("B_3024_1", {"LEFT_CC": mass(CC)})
    grey = data.grey("LEFT_CC", (60, 40))
    (folder / "B_3024_1.LEFT_CC.LJPEG").write_bytes(encode(grey, 12, 1, True, size=(40, 60)))
    done = converted()
    pixels = read_image(done.pairs["B_3024_1_L"].cc.image).pixels
    expected = (3.0 - ((grey - 4096.99) / -1009.01).clip(0.05, 3.0)) / 2.95 * 65535
    assert np.abs(pixels - expected).max() <= 0.51
    assert "swaps rows and columns" in done.warnings


def test_a_lesion_with_several_types_is_a_mass_if_one_of_them_is(data, converted):
    both = overlay(([CALCIFICATION, MASS], chain(CC)), ([CALCIFICATION], chain((25, 30, 30, 40))))
    data.case("B_3024_1", {"LEFT_CC": both})
    done = converted()
    assert done.boxes("B_3024_1_L", "cc") == [list(CC)]
    name = "cases/cancers/cancer_01/case3024/B_3024_1.LEFT_CC.OVERLAY"
    assert (f"{name}: abnormality 2", "not a mass") in done.skipped


def test_the_core_within_a_boundary_does_not_count(data, converted):
    text = mass(CC).replace("TOTAL_OUTLINES 1", "TOTAL_OUTLINES 2") + f"CORE \n{chain((8, 15, 12, 20))}\n"
    data.case("B_3024_1", {"LEFT_CC": text})
    done = converted()
    assert done.boxes("B_3024_1_L", "cc") == [list(CC)]
    assert done.report["warnings"] == []


def test_wrong_counts_are_warned_of_and_what_is_there_is_used(data, converted):
    text = mass(CC).replace("TOTAL_OUTLINES 1", "TOTAL_OUTLINES 4")
    data.case("B_3024_1", {"LEFT_CC": text.replace("TOTAL_ABNORMALITIES 1", "TOTAL_ABNORMALITIES 0")})
    done = converted()
    assert done.boxes("B_3024_1_L", "cc") == [list(CC)]
    assert "1 outlines, but TOTAL_OUTLINES is 4" in done.warnings
    assert "has 1 abnormalities, but TOTAL_ABNORMALITIES is 0" in done.warnings


def test_an_outline_that_leaves_the_film_is_clipped_to_it(data, converted):
    data.case("B_3024_1", {"LEFT_CC": mass((30, 50, 45, 66))})  # a film of 60 rows and 40 columns
    done = converted()
    assert done.boxes("B_3024_1_L", "cc") == [[30, 50, 40, 60]]
    assert "mass 1 is clipped to the image" in done.warnings


@pytest.mark.parametrize(
    ("text", "detail"),
    [
        (overlay(([MASS], "5 10 2 2 9 4 #")), "chain code '9'"),
        (overlay(([MASS], "5 10 2 2 4 4")), "cut off"),
        (overlay(([MASS], "x1 10 2 2 4 4 #")), "begins at 'X1 10'"),
        (mass(CC).split("BOUNDARY")[0], "it has no BOUNDARY"),
        (mass((90, 90, 99, 99)), "outside the image"),
        (overlay(([], chain(CC))), "no LESION_TYPE"),
        (
            mass(CC).replace("TOTAL_ABNORMALITIES 1", "TOTAL_ABNORMALITIES 2"),
            "1 more abnormalities than it contains",
        ),
        ("", "no TOTAL_ABNORMALITIES"),
        ("BOUNDARY\n1 2 3 #", "comes before the first ABNORMALITY"),
    ],
)
def test_a_film_with_an_unlocated_mass_is_not_used_as_one_without_masses(text, detail, data, converted):
    data.case("B_3024_1", {"LEFT_CC": text, "LEFT_MLO": mass(MLO)})
    done = converted()
    assert done.pairs["B_3024_1_L"].cc is None
    assert done.boxes("B_3024_1_L", "mlo") == [list(MLO)]
    assert ("B_3024_1.LEFT_CC.png", "mass at an unknown location") in done.skipped
    assert detail in done.detail("B_3024_1.LEFT_CC.png")


def test_overlays_and_the_ics_may_disagree(data, converted):
    flags = {"LEFT_CC": "NON_OVERLAY"}
    data.case("B_3024_1", {"LEFT_CC": mass(CC), "LEFT_MLO": None}, flags=flags)
    folder = data.case("B_3025_1", {"LEFT_CC": mass(CC), "LEFT_MLO": mass(MLO)})
    (folder / "B_3025_1.LEFT_CC.OVERLAY").unlink()
    (folder / "B_3025_1.RIGHT_CC.OVERLAY").write_text(mass(CC))
    done = converted()
    assert done.boxes("B_3024_1_L", "cc") == [list(CC)]
    assert "used, although the .ics file says NON_OVERLAY" in done.warnings
    assert done.pairs["B_3025_1_L"].cc is None
    assert "says OVERLAY, but there is no such file" in done.detail("B_3025_1.LEFT_CC.png")
    stray = "cases/cancers/cancer_01/case3025/B_3025_1.RIGHT_CC.OVERLAY"
    assert (stray, "film not listed in its .ics file") in done.skipped


def test_damaged_cases_are_named_and_the_rest_converts(data, converted):
    data.case("B_3024_1", four_films(), age="")
    damaged = data.case("B_3030_1", {"LEFT_CC": None})
    (damaged / "B-3030-1.ics").write_text("LEFT_CC LINES many")
    cut = data.case("B_3031_1", {"LEFT_CC": None, "LEFT_MLO": None, "RIGHT_CC": None})
    film = cut / "B_3031_1.LEFT_CC.LJPEG"
    film.write_bytes(film.read_bytes()[:-50])
    (cut / "B_3031_1.LEFT_MLO.LJPEG").unlink()
    (cut / "B_3031_1.RIGHT_CC.LJPEG").write_bytes(encode(data.grey("RIGHT_CC", (30, 40)), 12, 1, True))
    (cut / "TAPE_B_3031_1.COMB.16_PGM").write_text("a thumbnail")
    done = converted()
    assert set(done.pairs) == {"B_3024_1_L", "B_3024_1_R"}
    assert str(data.folder) not in (data.folder.parent / "out" / "conversion.json").read_text()
    place = "cases/cancers/cancer_01"
    assert done.skipped == {
        (f"{place}/case3030/B-3030-1.ics", "damaged .ics file"),
        (f"{place}/case3030/B_3030_1.LEFT_CC.LJPEG", "case without an .ics file"),
        (f"{place}/case3031/B_3031_1.LEFT_CC.LJPEG", "unreadable image"),
        (f"{place}/case3031/B-3031-1.ics: LEFT_MLO", "image not found"),
        (f"{place}/case3031/B_3031_1.RIGHT_CC.LJPEG", "unreadable image"),
        (
            f"{place}/case3031/TAPE_B_3031_1.COMB.16_PGM",
            "not a DDSM file",
        ),
    }


def test_a_number_of_an_abnormality_that_is_none_reaches_no_message(tmp_path):
    found = parse_overlay("TOTAL_ABNORMALITIES 1\nABNORMALITY \x1b[31m\nTOTAL_OUTLINES 4\n", tmp_path)
    assert found.abnormalities[0].number == "1"
    assert "abnormality 1 has 0 outlines" in found.warnings[0] and found.warnings[0].isprintable()


@pytest.mark.parametrize("number", ["9" * 5000, "9" * 30, "\u0663", "\u00b2"])
def test_numbers_that_no_film_has_are_refused_by_name(number, tmp_path):
    ics = f"filename B-1-1\nDENSITY {number}\nLEFT_CC LINES {{}} PIXELS_PER_LINE 9 OVERLAY\n"
    assert parse_ics(ics.format(8), tmp_path).density is None
    with pytest.raises(IcsError, match=r"LINES is .*expected a number above 0"):
        parse_ics(ics.format(number), tmp_path)
    text = "TOTAL_ABNORMALITIES {}\nABNORMALITY 1\nLESION_TYPE MASS\nBOUNDARY\n{} 2 3 4 #\n"
    (found,) = parse_overlay(text.format(1, number), tmp_path).abnormalities
    assert (found.boundary, "expected a column and a row" in found.problem) == (None, True)
    assert parse_overlay(text.format(number, 1), tmp_path).missing == 0


def test_a_second_run_decodes_nothing_but_what_is_gone(data, converted, tmp_path):
    data.case("B_3024_1", four_films(LEFT_CC=mass(CC)))
    converted()
    out = tmp_path / "out"
    before = {file: (file.read_bytes(), file.stat().st_mtime_ns) for file in (out / "images").iterdir()}
    assert len(before) == 4
    gone = out / "images" / "B_3024_1.LEFT_CC.png"
    gone.unlink()
    listed = (out / "datalist.json").read_bytes()
    converted()
    assert (out / "datalist.json").read_bytes() == listed
    for file, (content, time) in before.items():
        assert file.read_bytes() == content
        assert (file.stat().st_mtime_ns == time) == (file != gone)


def test_the_published_split_depends_on_the_patient_alone(data, converted):
    """Three ids are pinned: whoever has published a result with this split relies on them."""
    assert [section_of(patient) for patient in PINNED] == list(PINNED.values())
    data.case("B_3024_1", {"LEFT_CC": None})
    done = converted("--validation", "0.5", "--seed", "3")
    assert len(done.datalist[section_of("B_3024")]) == 1


def test_the_published_split_has_its_shares():
    sections = Counter(section_of(f"{letter}_{number:04d}") for letter in "ABCD" for number in range(1000))
    assert sections["training"] / 4000 == pytest.approx(0.7, abs=0.03)
    assert sections["validation"] / 4000 == pytest.approx(0.1, abs=0.02)
    assert sections["test"] / 4000 == pytest.approx(0.2, abs=0.03)
