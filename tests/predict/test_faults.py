"""`clnet predict` when names are odd, files are damaged, disks are full, and somebody else writes too."""

import json
import os
import shutil

import pytest
from full_disk import full_disk

from clnet.cli.main import main
from clnet.files import only_writer
from clnet.phantom import PhantomSettings, make_phantom


def predict(*words):
    return main(["predict", *map(str, words), "--model", "phantom", "--workers", "0"])


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    """Two breasts of one study."""
    folder = tmp_path_factory.mktemp("archive")
    make_phantom(folder, PhantomSettings(2, rows=160, columns=112), workers=1)
    return folder / "images"


@pytest.fixture(scope="module")
def analysed(archive, tmp_path_factory):
    output = tmp_path_factory.mktemp("analysed") / "output"
    assert predict(archive, "--output", output) == 0
    return output


def contents(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_name_that_is_not_utf8_is_one_like_others(archive, tmp_path, capfd):
    odd = os.fsdecode(b"Br\xfcste \xff")
    (tmp_path / odd).mkdir()
    for file in archive.iterdir():
        shutil.copy(file, tmp_path / odd / os.fsdecode(b"\xe9" + os.fsencode(file.name)))
    (tmp_path / odd / os.fsdecode(b"none\xe9")).write_text("not an image")
    assert predict(tmp_path / odd, "--output", tmp_path / "output") == 1
    summary = json.loads((tmp_path / "output" / "summary.json").read_text(encoding="utf-8"))
    assert len(summary["analysed"]) == 2
    assert [item["file"] for item in summary["refused"]] == [os.fsdecode(b"none\xe9")]
    assert r"refused   none\udce9: " in capfd.readouterr().out
    assert predict(tmp_path / odd, "--output", tmp_path / "output") == 1
    assert "2 breasts analysed, 0 of them now" in capfd.readouterr().out


def test_a_second_run_into_the_same_output_is_told_to_wait(archive, analysed, capsys):
    before = contents(analysed)
    with only_writer(analysed):
        assert predict(archive, "--output", analysed) == 2
    said = capsys.readouterr().err
    assert f"{analysed}: another process is writing there. Wait until it has finished" in said
    assert said.count("\n") == 1
    assert contents(analysed) == before
    assert predict(archive, "--output", analysed) == 0


def cut(file):
    file.write_bytes(file.read_bytes()[:-9])


def turn_a_bit(file):
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)


def says(text):
    return lambda file: file.write_text(text)


@pytest.mark.parametrize(
    ("pattern", "damage", "again"),
    [
        ("breasts/*/findings.json", says(""), 1),
        ("breasts/*/findings.json", cut, 1),
        ("breasts/*/breast.json", says("{}"), 1),
        ("breasts/*/breast.json", says("[]"), 1),
        ("breasts/*/breast.json", says("[" * 100_000), 1),
        ("breasts/*/breast.json", cut, 1),
        ("breasts/*/breast.json", turn_a_bit, 1),
        ("breasts/*/picture.png", turn_a_bit, 1),
        ("breasts/*/picture.png", lambda file: file.unlink(), 1),
        ("studies/*/measurements.dcm", says(""), 0),
        ("studies/*/picture.dcm", turn_a_bit, 0),
        ("studies/*/study.json", says("null"), 0),
        ("studies/*/study.json", says("{}"), 0),
        ("findings.json", says(""), 0),
    ],
)
def test_a_damaged_result_is_made_again_and_the_others_are_kept(
    archive, analysed, tmp_path, capsys, pattern, damage, again
):
    output = shutil.copytree(analysed, tmp_path / "output")
    file = next(output.glob(pattern))
    before = contents(output)
    damage(file)
    assert predict(archive, "--output", output) == 0
    assert f"2 breasts analysed, {again} of them now" in capsys.readouterr().out
    now = contents(output)
    assert now.keys() == before.keys()
    assert now[file.relative_to(output)] not in (b"", b"{}", b"[]", b"null")
    others = [name for name in before if file.parent.name not in name.parts and name.parts[0] == "breasts"]
    assert others or pattern == "findings.json"
    assert all(now[name] == before[name] for name in others)
    made = [name for name in before if name.name in ("findings.json", "picture.png", "breast.json")]
    assert all(now[name] == before[name] for name in made)  # in the same batch, so with the same rounding


def test_an_output_that_is_a_file_or_may_not_be_written_is_told_in_one_line_with_status_3(
    archive, tmp_path, capsys
):
    (tmp_path / "file").write_text("mine")
    for output, words in (
        (tmp_path / "file", "there is a file where a folder is expected"),
        (tmp_path / "file" / "further" / "down", "there is a file where a folder is expected"),
        ("/sys/output", "may not be written"),  # not even by root
    ):
        assert predict(archive, "--output", output) == 3
        said = capsys.readouterr().err
        assert words in said and said.count("\n") == 1
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.parametrize("size", [0, 500, 20_000])
def test_a_full_disk_is_told_in_one_line_with_status_3_and_the_run_can_be_resumed(
    archive, tmp_path, capsys, size
):
    with full_disk(size):
        assert predict(archive, "--output", tmp_path / "output") == 3
    said = capsys.readouterr().err
    assert "the disk is full. Free some space and start again" in said
    assert said.count("clnet predict:") == 1 and "Traceback" not in said
    assert predict(archive, "--output", tmp_path / "output") == 0
    assert len(json.loads((tmp_path / "output" / "summary.json").read_text())["analysed"]) == 2


def test_an_input_without_files_is_told_with_status_2(tmp_path, capsys):
    (tmp_path / "input").mkdir()
    (tmp_path / "input" / ".hidden").touch()
    assert predict(tmp_path / "input", "--output", tmp_path / "output") == 2
    assert "no files there" in capsys.readouterr().err


def test_many_refused_files_take_a_few_lines_and_are_all_in_the_summary(tmp_path, capsys):
    (tmp_path / "input").mkdir()
    for number in range(50):
        (tmp_path / "input" / f"{number}.txt").touch()
    assert predict(tmp_path / "input", "--output", tmp_path / "output") == 1
    said = capsys.readouterr().out
    assert said.count("refused   ") == 20
    assert "and 30 more refused" in said
    assert len(json.loads((tmp_path / "output" / "summary.json").read_text())["refused"]) == 50


def test_a_file_of_a_datalist_that_is_gone_is_refused_and_the_other_view_analysed(archive, tmp_path):
    datalist = json.loads((archive.parent / "datalist.json").read_text())
    pairs = [pair for section in ("training", "validation", "test") for pair in datalist[section]]
    for pair in pairs:
        for view in ("cc", "mlo"):
            pair[view]["image"] = str(archive.parent / pair[view]["image"])
    pairs[0]["cc"]["image"] = str(tmp_path / "gone.dcm")
    neither = {**pairs[0], "pair_id": "neither", "mlo": {**pairs[0]["mlo"], "image": str(tmp_path / "text")}}
    (tmp_path / "text").write_text("hello")
    pairs.append({**neither, "cc": {**pairs[0]["cc"], "image": str(tmp_path / "lost.dcm")}})
    content = {"schema": 1, "name": "with a gap", "test": pairs}
    (tmp_path / "datalist.json").write_text(json.dumps(content))
    assert predict(tmp_path / "datalist.json", "--output", tmp_path / "output") == 1
    summary = json.loads((tmp_path / "output" / "summary.json").read_text())
    assert sorted(breast["views"] for breast in summary["analysed"]) == [["cc", "mlo"], ["mlo"]]
    refused = {item["file"]: item["reason"] for item in summary["refused"]}
    assert set(refused) == {"gone.dcm", "lost.dcm", "text"}  # each for its own reason
    assert "no such file" in refused["gone.dcm"] and "no such file" in refused["lost.dcm"]
    assert "not a DICOM file" in refused["text"]
