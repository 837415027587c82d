import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clnet.data.datalist import Datalist, DatalistError, read_datalist, split_by_patient, write_datalist
from clnet.data.pair import Pair, View

REAL_FILM = Path(__file__).parent / "cbis-ddsm"


def pair(number, patient=None, folder=Path()):
    return Pair(
        pair_id=f"pair{number}",
        patient_id=patient or f"patient{number}",
        laterality="L",
        cc=View(folder / "images" / f"{number}_cc.dcm", [[1, 2, 30.5, 40]], ("1",), size=(100, 80)),
        mlo=View(folder / "images" / f"{number}_mlo.dcm", [[5, 6, 7, 8]], ("1",)),
        links={"1": "geometric"},
        attributes={"density": "B"},
    )


def write_json(folder, **sections):
    path = folder / "datalist.json"
    path.write_text(json.dumps({"schema": 1, "name": "n", **sections}))
    return path


def test_what_is_written_is_what_is_read(tmp_path):
    datalist = Datalist(
        "mine", {"training": (pair(1, folder=tmp_path),), "test": (pair(2, folder=tmp_path),)}
    )
    write_datalist(datalist, tmp_path / "datalist.json")
    assert read_datalist(tmp_path) == datalist


def test_a_pixel_size_is_written_and_read_and_absent_where_unknown(tmp_path):
    cc = View(tmp_path / "cc.jpg", size=(100, 80), pixel_size=(5, 4.9975))
    datalist = Datalist("mine", {"test": (Pair("1", "1", "L", cc, View(tmp_path / "mlo.jpg")),)})
    write_datalist(datalist, tmp_path / "datalist.json")
    assert read_datalist(tmp_path) == datalist
    (written,) = json.loads((tmp_path / "datalist.json").read_text())["test"]
    assert written["cc"]["pixel_size"] == [5, 4.9975]
    assert "pixel_size" not in written["mlo"]


def test_the_bytes_of_a_datalist_without_pixel_sizes_stay_as_they_were(tmp_path):
    """The file of the real films was written before views had a pixel size."""
    (tmp_path / "datalist.json").write_bytes((REAL_FILM / "datalist.json").read_bytes())
    write_datalist(read_datalist(tmp_path), tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == (REAL_FILM / "datalist.json").read_bytes()


def test_paths_are_relative_to_the_file_so_that_the_folder_can_move(tmp_path):
    write_datalist(Datalist("mine", {"test": (pair(1, folder=tmp_path),)}), tmp_path / "datalist.json")
    moved = tmp_path.with_name("moved")
    tmp_path.rename(moved)
    assert read_datalist(moved)["test"][0].cc.image == moved / "images" / "1_cc.dcm"


def test_writing_twice_gives_the_same_bytes(tmp_path):
    datalist = Datalist("mine", {"test": (pair(1, folder=tmp_path), pair(2, folder=tmp_path))})
    for name in ("a.json", "b.json"):
        write_datalist(datalist, tmp_path / name)
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()


def test_a_patient_in_two_sections_is_refused():
    with pytest.raises(DatalistError, match=r"patient 'same' is in training and in test \(pair 'pair2'\)"):
        Datalist("mine", {"training": (pair(1, "same"),), "test": (pair(2, "same"),)})


def test_a_repeated_pair_id_is_refused():
    with pytest.raises(DatalistError, match="pair_id 'pair1' appears twice"):
        Datalist("mine", {"training": (pair(1), pair(1))})


def test_an_unknown_section_is_refused():
    with pytest.raises(DatalistError, match="unknown section 'train'; a datalist has training"):
        Datalist("mine", {"train": ()})
    with pytest.raises(DatalistError, match="unknown section 'train'"):
        Datalist("mine")["train"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("not json", "cannot be read as JSON"),
        ("[]", "is not of type 'object'"),
        ("[" * 100_000, "cannot be read as JSON"),
        ('{"schema": ' + "1" * 5000 + "}", "cannot be read as JSON"),  # more digits than Python reads
        (
            '{"schema": 1, "name": "n", "test": [{"pair_id": "x", "patient_id": "y", "laterality": "L",'
            ' "cc": {"image": "a\\u0000.dcm"}}]}',
            r"pair 'x', cc: image is '.*a\\x00.dcm'; the name of a file has no NUL character",
        ),
        ('{"schema": 2, "name": "n"}', "at schema: 1 was expected"),
        ('{"schema": 1}', "'name' is a required property"),
        (
            '{"schema": 1, "name": "n", "test": [{"pair_id": "x", "patient_id": "y", "laterality": "left"}]}',
            r"at test\[0\] \(pair 'x'\) laterality: 'left' is not one of \['L', 'R'\]",
        ),
        (
            '{"schema": 1, "name": "n", "test": [{"pair_id": "x", "patient_id": "y", "laterality": "L",'
            ' "cc": {"image": "a.dcm", "boxes": [[1, 2, 3]], "lesion_ids": ["1"]}}]}',
            r"pair 'x'\) cc boxes\[0\]",
        ),
        (
            '{"schema": 1, "name": "n", "test": [{"pair_id": "x", "patient_id": "y", "laterality": "L",'
            ' "cc": {"image": "a.dcm", "boxes": [[9, 2, 3, 4]], "lesion_ids": ["1"]}}]}',
            "pair 'x', cc: .*a.dcm: box 0 is",
        ),
        (
            '{"schema": 1, "name": "n", "test": [{"pair_id": "x", "patient_id": "y", "laterality": "L"}]}',
            "pair 'x': no cc and no mlo",
        ),
        (
            '{"schema": 1, "name": "n", "test": [{"pair_id": "x", "patient_id": "y", "laterality": "L",'
            ' "cc": {"image": "a.jpg", "pixel_size": [0.07, -1]}}]}',
            r"pair 'x'\) cc pixel_size\[1\]: -1 is less than or equal to the minimum of 0",
        ),
    ],
)
def test_an_invalid_file_is_refused_with_file_and_place(tmp_path, content, message):
    path = tmp_path / "datalist.json"
    path.write_text(content)
    with pytest.raises(DatalistError, match=message) as caught:
        read_datalist(path)
    assert str(path) in str(caught.value)


def test_a_missing_file_is_refused_with_what_to_give(tmp_path):
    with pytest.raises(DatalistError, match="no such file; give a datalist, or a folder"):
        read_datalist(tmp_path)


def test_the_schema_file_is_a_valid_schema():
    import jsonschema

    from clnet.data import datalist

    schema = json.loads((Path(datalist.__file__).with_name("datalist.schema.json")).read_text())
    jsonschema.Draft202012Validator.check_schema(schema)


def test_the_real_film_has_two_breasts_with_three_linked_masses():
    left, right = read_datalist(REAL_FILM)["test"]
    assert left.links == {"1": "single_pair"}
    assert right.links == {"1": "geometric", "2": "geometric"}
    assert all(view.image.exists() for pair in (left, right) for view in pair.views.values())


@given(patients=st.lists(st.integers(0, 30), min_size=1, max_size=60), seed=st.integers(0, 5))
def test_a_split_keeps_patients_whole_and_loses_nothing(patients, seed):
    pairs = [pair(number, f"patient{patient}") for number, patient in enumerate(patients)]
    split = split_by_patient(pairs, {"training": 0.6, "validation": 0.2, "test": 0.2}, seed)
    Datalist("split", split)  # refuses a patient in two sections
    assert sorted(p.pair_id for part in split.values() for p in part) == sorted(p.pair_id for p in pairs)


@given(order=st.permutations(range(20)))
def test_a_split_does_not_depend_on_the_order_of_the_pairs(order):
    pairs = [pair(number) for number in range(20)]
    shares = {"training": 0.5, "test": 0.5}
    expected = {p.pair_id for p in split_by_patient(pairs, shares)["test"]}
    shuffled = split_by_patient([pairs[n] for n in order], shares)
    assert {p.pair_id for p in shuffled["test"]} == expected
    assert len(expected) == 10


def test_another_seed_gives_another_split():
    pairs = [pair(number) for number in range(40)]
    shares = {"training": 0.5, "test": 0.5}
    assert split_by_patient(pairs, shares, seed=1) != split_by_patient(pairs, shares, seed=2)


@pytest.mark.parametrize("fractions", [{"training": 0.5}, {"training": 1.5, "test": -0.5}])
def test_shares_that_do_not_sum_to_one_are_refused(fractions):
    with pytest.raises(DatalistError, match="sum to 1"):
        split_by_patient([pair(1)], fractions)
