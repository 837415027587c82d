"""The command line as a person uses it: in a process of its own."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from clnet.cli.main import main

REAL_FILM = Path(__file__).parent / "data" / "cbis-ddsm"
COMMANDS = (
    "phantom",
    "pairs",
    "inspect",
    "convert",
    "check",
    "predict",
    "bundle",
    "evaluate",
    "report",
    "compare",
    "threshold",
)
VIEWS = ["left_cc", "left_mlo", "right_cc", "right_mlo"]


def clnet(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "clnet.cli", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
    )


def test_help_lists_the_commands():
    said = clnet("--help")
    assert said.returncode == 0
    assert all(command in said.stdout for command in COMMANDS)


def test_a_phantom_is_made_and_its_sections_are_counted(tmp_path):
    said = clnet("phantom", "--output", tmp_path / "p", "--pairs", 8, "--size", 128, 96, "--workers", 1)
    assert said.returncode == 0, said.stderr
    assert "training" in said.stdout
    assert (tmp_path / "p" / "preview.png").stat().st_size > 1000


def test_an_error_is_one_line_without_a_traceback(tmp_path):
    said = clnet("phantom", "--output", tmp_path, "--difficulty", "brutal")
    assert said.returncode == 2
    expected = "expected one of easy, standard, hard, patient"
    assert said.stderr == f"clnet phantom: difficulty is 'brutal'; {expected}\n"


def test_a_reader_that_has_seen_enough_is_no_error():
    command = f"{sys.executable} -m clnet.cli inspect {REAL_FILM}/*.dcm --json | head -1"
    said = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert said.stdout == "[\n"
    assert said.stderr == ""


def test_inspect_prints_one_json_object_for_each_image(capsys):
    files = [str(REAL_FILM / f"{view}.dcm") for view in VIEWS]
    assert main(["inspect", *files, "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert [fact["file"] for fact in facts] == files
    assert [(fact["laterality"], fact["view"]) for fact in facts] == [
        ("L", "CC"),
        ("L", "MLO"),
        ("R", "CC"),
        ("R", "MLO"),
    ]
    assert [fact["flipped"] for fact in facts] == [False, False, True, True]
    assert [fact["refused"] for fact in facts] == [None] * 4


def test_inspect_draws_a_picture_and_says_where(tmp_path, capsys):
    picture = tmp_path / "sub" / "out.png"
    assert main(["inspect", str(REAL_FILM / "left_cc.dcm"), "--picture", str(picture)]) == 0
    said = capsys.readouterr()
    assert "view       CC, laterality L" in said.out
    assert str(picture) in said.err
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_inspect_says_by_its_status_that_a_file_was_refused(tmp_path, capsys):
    (tmp_path / "no.dcm").write_text("not an image")
    assert main(["inspect", str(tmp_path / "no.dcm")]) == 1
    assert "refused" in capsys.readouterr().out


def test_pairs_lists_breasts_and_what_is_left_out(capsys):
    assert main(["pairs", str(REAL_FILM), "--json", "--secondary-capture"]) == 0
    found = json.loads(capsys.readouterr().out)
    names = [[Path(pair[view]).name for view in ("cc", "mlo")] for pair in found["pairs"]]
    assert names == [["left_cc.dcm", "left_mlo.dcm"], ["right_cc.dcm", "right_mlo.dcm"]]
    assert {Path(item["file"]).name for item in found["left_out"]} == {
        "README.md",
        "datalist.json",
        "reduce.py",
    }


def test_pairs_finds_both_views_of_a_phantom_breast(tmp_path, capsys):
    options = ["--pairs", "2", "--size", "96", "64", "--workers", "1"]
    assert main(["phantom", "--output", str(tmp_path), *options]) == 0
    capsys.readouterr()
    assert main(["pairs", str(tmp_path / "images")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == "2 pairs, 0 files left out"
    assert [line[0] for line in lines[:2]] == ["L", "R"]
    assert all("CC.dcm" in line and "MLO.dcm" in line for line in lines[:2])


@pytest.mark.parametrize("path", ["nowhere", "nowhere/x.dcm"])
def test_pairs_of_a_missing_folder_is_an_error_that_names_it(path, tmp_path, capsys):
    assert main(["pairs", str(tmp_path / path)]) == 2
    assert f"{tmp_path / path}: no such file or folder" in capsys.readouterr().err


@pytest.mark.parametrize(
    "command", ["phantom", "inspect", "evaluate", "report", "compare", "threshold", "predict"]
)
def test_help_tells_a_default_once_and_none_where_there_is_none(command, capsys):
    with pytest.raises(SystemExit):
        main([command, "--help"])
    text = " ".join(capsys.readouterr().out.split())
    assert "(default: None)" not in text
    assert "(default: False)" not in text
    assert not re.search(r"\(default: [^)]*\) \(default:", text)
    has_seed = command in ("phantom", "evaluate", "compare")
    assert ("(default: 0)" in text) == has_seed  # 0 is a default like any other
