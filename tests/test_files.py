"""A file or a folder is whole or not there."""

import errno
import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from full_disk import full_disk
from pydicom.dataset import Dataset

from clnet.files import (
    BusyError,
    WriteError,
    are_intact,
    digests,
    make_folder,
    only_writer,
    remove_file,
    remove_unfinished_files,
    remove_unfinished_folders,
    set_aside,
    system_words,
    whole_file,
    whole_folder,
    write_bytes,
    write_text,
)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_text_is_written_as_utf8_with_its_line_ends(tmp_path):
    write_text(tmp_path / "a.txt", "Brüste\nµm\n")
    assert (tmp_path / "a.txt").read_bytes() == b"Br\xc3\xbcste\n\xc2\xb5m\n"
    assert names(tmp_path) == ["a.txt"]


def test_bytes_replace_what_was_there(tmp_path):
    (tmp_path / "a.bin").write_bytes(b"old and longer")
    write_bytes(str(tmp_path / "a.bin"), b"new")
    assert (tmp_path / "a.bin").read_bytes() == b"new"
    assert names(tmp_path) == ["a.bin"]


def test_folders_on_the_way_are_created(tmp_path):
    write_text(tmp_path / "a" / "b" / "c.txt", "text")
    assert (tmp_path / "a" / "b" / "c.txt").read_text() == "text"


def test_until_the_block_ends_readers_find_the_old_file(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")
    with whole_file(path) as unfinished:
        unfinished.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_an_error_leaves_the_old_file_and_nothing_else(tmp_path, error):
    path = tmp_path / "a.txt"
    path.write_text("old")
    with pytest.raises(error), whole_file(path) as unfinished:
        unfinished.write_text("half of the n")
        raise error
    assert path.read_text() == "old"
    assert names(tmp_path) == ["a.txt"]


def test_an_error_before_anything_is_written_is_the_one_that_is_raised(tmp_path):
    with pytest.raises(ValueError, match="too early"), whole_file(tmp_path / "a.txt"):
        raise ValueError("too early")
    assert names(tmp_path) == []


def test_two_may_write_the_same_file_at_once(tmp_path):
    path = tmp_path / "a.bin"
    with whole_file(path) as first, whole_file(path) as second:
        assert first != second
        first.write_bytes(b"first")
        second.write_bytes(b"second")
    assert path.read_bytes() == b"first"  # the block that ends last

    contents = [bytes([number]) * 100_000 for number in range(8)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda content: write_bytes(path, content), contents))
    assert path.read_bytes() in contents
    assert names(tmp_path) == ["a.bin"]


@pytest.fixture
def synced(monkeypatch):
    """Notes each path that is written to the disk, and which names its folder held by then."""
    fsync, found = os.fsync, []

    def follow(number):
        path = Path(f"/proc/self/fd/{number}").readlink()
        found.append((path, names(path if path.is_dir() else path.parent)))
        fsync(number)

    monkeypatch.setattr(os, "fsync", follow)
    return found


def test_the_content_is_on_the_disk_before_the_name_and_then_the_name(tmp_path, synced):
    write_text(tmp_path / "a.txt", "text")
    (content, before), name = synced
    assert before == [content.name]  # still unfinished
    assert name == (tmp_path, ["a.txt"])


def test_a_folder_is_on_the_disk_with_all_its_files_before_its_name_and_then_the_name(tmp_path, synced):
    with whole_folder(tmp_path / "one") as unfinished:
        (unfinished / "sub").mkdir()
        (unfinished / "sub" / "a.txt").write_text("a")
    *parts, name = synced
    assert {path for path, _ in parts} == {unfinished, unfinished / "sub", unfinished / "sub" / "a.txt"}
    assert name == (tmp_path, ["one"])


def test_a_removed_file_is_gone_on_the_disk_too(tmp_path, synced):
    (tmp_path / "a.txt").touch()
    for _ in range(2):  # the second time, there is none
        remove_file(tmp_path / "a.txt")
    assert synced == [(tmp_path, [])]


def test_a_damaged_file_keeps_its_content_under_another_name(tmp_path):
    for text in ("one", "two"):
        (tmp_path / "a.json").write_text(text)
        assert set_aside(tmp_path / "a.json").read_text() == text
    assert [name.endswith(".damaged") for name in names(tmp_path)] == [True, True]


def test_a_folder_has_one_writer_at_a_time(tmp_path):
    folder = tmp_path / "a" / "b"
    with (
        only_writer(folder),
        pytest.raises(BusyError, match="another process is writing there"),
        only_writer(folder),
    ):
        pass
    with only_writer(folder):
        assert folder.is_dir()


def test_what_cannot_be_written_is_told_with_the_reason(tmp_path):
    (tmp_path / "file").touch()
    for write in (
        lambda: write_text(tmp_path / "file" / "a.txt", "text"),
        lambda: make_folder(tmp_path / "file"),
        lambda: whole_folder(tmp_path / "file" / "a").__enter__(),
        lambda: only_writer(tmp_path / "file").__enter__(),
    ):
        with pytest.raises(WriteError, match="there is a file where a folder is expected"):
            write()
    with pytest.raises(WriteError, match="may not be written"):
        write_text("/sys/a.txt", "text")
    with pytest.raises(WriteError, match=r"the disk is full\. Free some space"), whole_file(tmp_path / "a"):
        raise OSError(errno.ENOSPC, "No space left on device")
    # What the block reads meanwhile is not what it writes.
    with pytest.raises(PermissionError), whole_file(tmp_path / "a"):
        raise PermissionError(errno.EACCES, "Permission denied", "/elsewhere/source")


def test_a_full_disk_is_told_though_pydicom_hides_what_the_system_said(tmp_path):
    dataset = Dataset()
    dataset.PatientComments = "long " * 1000
    with full_disk(1000), pytest.raises(WriteError, match="the disk is full") as told:  # noqa: SIM117
        with whole_folder(tmp_path / "a") as folder:
            dataset.save_as(folder / "report.dcm", implicit_vr=True, little_endian=True)
    assert system_words(told.value) == "File too large"
    assert not (tmp_path / "a").exists()


def test_a_name_that_is_no_utf8_is_written_as_json_writes_it(tmp_path):
    name = os.fsdecode(b"\xe9\xff.dcm")
    write_text(tmp_path / "a.json", json.dumps(["é", name], ensure_ascii=False))
    assert json.loads((tmp_path / "a.json").read_text(encoding="utf-8")) == ["é", name]


def test_a_folder_is_intact_if_its_files_have_the_same_content(tmp_path):
    (tmp_path / "a").write_bytes(b"abc")
    found = digests(tmp_path)
    assert found == {"a": "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"}  # FIPS 180-2
    assert are_intact(tmp_path, found)
    (tmp_path / "a").write_bytes(b"abd")
    assert not are_intact(tmp_path, found)
    (tmp_path / "a").unlink()
    assert not are_intact(tmp_path, found)


def test_what_a_killed_writer_of_files_left_can_be_removed(tmp_path):
    write_text(tmp_path / "a.txt", "text")
    with whole_file(tmp_path / "a.txt") as unfinished:
        unfinished.write_text("half a")
        remove_unfinished_files(tmp_path)
        assert names(tmp_path) == ["a.txt"]
        unfinished.write_text("whole")


def test_a_folder_appears_when_it_is_filled_and_replaces_the_one_that_was_there(tmp_path):
    path = tmp_path / "all" / "one"
    for text in ("first", "second"):
        with whole_folder(path) as unfinished:
            (unfinished / f"{text}.txt").write_text(text)
            assert names(tmp_path / "all") == [".one.unfinished", *(["one"] if text == "second" else [])]
    assert names(path) == ["second.txt"]
    assert names(tmp_path / "all") == ["one"]


def test_a_folder_whose_writer_fails_leaves_the_old_one_and_what_is_left_can_be_removed(tmp_path):
    with whole_folder(tmp_path / "one") as unfinished:
        (unfinished / "a.txt").write_text("old")
    with pytest.raises(KeyboardInterrupt), whole_folder(tmp_path / "one") as unfinished:
        (unfinished / "b.txt").write_text("half a")
        raise KeyboardInterrupt
    assert names(tmp_path / "one") == ["a.txt"]
    remove_unfinished_folders(tmp_path)
    assert names(tmp_path) == ["one"]
