"""Results are computed once per file."""

import json

import pytest

from clnet.converters.file_cache import FileCache
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


def stored(path):
    return json.loads(path.read_text())


def test_results_are_kept_and_image_errors_are_not(files, tmp_path):
    cache = FileCache(tmp_path / "cache.json", workers=1)
    bad = tmp_path / "bad"
    found = cache.map(length, [*files, bad], "")
    assert list(found.values())[:2] == [1, 1]
    assert isinstance(found[bad], ImageError)
    assert len(stored(tmp_path / "cache.json")) == 2


def test_other_arguments_and_changed_files_are_computed_again(files, tmp_path):
    path = tmp_path / "cache.json"
    assert FileCache(path, 1).map(length, dict.fromkeys(files, (1,)), "")[files[0]] == 1
    assert FileCache(path, 1).map(length, dict.fromkeys(files, (5,)), "")[files[0]] == 5
    files[0].write_text("longer")
    assert FileCache(path, 1).map(length, dict.fromkeys(files, (5,)), "")[files[0]] == 30


def test_finished_results_are_kept_when_the_user_interrupts(files, tmp_path):
    path = tmp_path / "cache.json"
    with pytest.raises(KeyboardInterrupt):
        FileCache(path, 1).map(length, [*files, tmp_path / "stop"], "")
    assert len(stored(path)) == 2


@pytest.mark.parametrize("content", ["", "{", "[]", "null"])
def test_an_unreadable_cache_is_ignored(content, files, tmp_path):
    path = tmp_path / "cache.json"
    path.write_text(content)
    assert list(FileCache(path, 1).map(length, files, "").values()) == [1, 1]


def test_the_cache_holds_no_path(files, tmp_path):
    FileCache(tmp_path / "cache.json", 1).map(length, files, "")
    assert str(tmp_path) not in (tmp_path / "cache.json").read_text()


def test_several_processes_give_the_same_results(files, tmp_path):
    found = FileCache(workers=2).map(length, [*files, tmp_path / "bad"], "")
    assert [found[file] for file in files] == [1, 1]
    assert isinstance(found[tmp_path / "bad"], NotAnImageError)
