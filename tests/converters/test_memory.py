"""Work that was done is not done again."""

import json

import pytest

from clnet.converters.memory import Memory
from clnet.data.image_errors import ImageError, NotAnImageError


def length(file, factor=1):
    if file.name == "bad":
        raise NotAnImageError(f"{file}: bad")
    if file.name == "stop":
        raise KeyboardInterrupt
    return len(file.read_bytes()) * factor


@pytest.fixture
def files(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).write_text(name)
    return [tmp_path / "a", tmp_path / "b"]


def remembered(path):
    return json.loads(path.read_text())


def test_results_are_kept_and_refusals_are_not(files, tmp_path):
    memory = Memory(tmp_path / "memory.json", workers=1)
    bad = tmp_path / "bad"
    found = memory.map(length, [*files, bad], "")
    assert list(found.values())[:2] == [1, 1]
    assert isinstance(found[bad], ImageError)
    assert len(remembered(tmp_path / "memory.json")) == 2


def test_other_arguments_and_changed_files_are_done_anew(files, tmp_path):
    path = tmp_path / "memory.json"
    assert Memory(path, 1).map(length, dict.fromkeys(files, (1,)), "")[files[0]] == 1
    assert Memory(path, 1).map(length, dict.fromkeys(files, (5,)), "")[files[0]] == 5
    files[0].write_text("longer")
    assert Memory(path, 1).map(length, dict.fromkeys(files, (5,)), "")[files[0]] == 30


def test_what_is_done_is_kept_when_the_user_stops_it(files, tmp_path):
    path = tmp_path / "memory.json"
    with pytest.raises(KeyboardInterrupt):
        Memory(path, 1).map(length, [*files, tmp_path / "stop"], "")
    assert len(remembered(path)) == 2


@pytest.mark.parametrize("content", ["", "{", "[]", "null"])
def test_a_memory_that_cannot_be_read_is_no_memory(content, files, tmp_path):
    path = tmp_path / "memory.json"
    path.write_text(content)
    assert list(Memory(path, 1).map(length, files, "").values()) == [1, 1]


def test_no_path_stands_in_the_memory(files, tmp_path):
    Memory(tmp_path / "memory.json", 1).map(length, files, "")
    assert str(tmp_path) not in (tmp_path / "memory.json").read_text()


def test_several_processes_give_the_same_results(files, tmp_path):
    found = Memory(workers=2).map(length, [*files, tmp_path / "bad"], "")
    assert [found[file] for file in files] == [1, 1]
    assert isinstance(found[tmp_path / "bad"], NotAnImageError)
