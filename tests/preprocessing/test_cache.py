"""Preprocessed pairs are kept on disk, and found again for the same images and settings only."""

import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch
from monai.data import CacheDataset
from monai.transforms import Compose

from clnet.data.datalist import read_datalist
from clnet.phantom import PhantomSettings, make_phantom
from clnet.preprocessing.cache import CachePaird
from clnet.preprocessing.transforms import LoadPaird, PreprocessPaird


class Counted(Compose):
    """The transforms of the bundle, which count how often they are asked."""

    def __init__(self, size=(64, 48), apply_voi=True):
        super().__init__([LoadPaird(apply_voi), PreprocessPaird(size)])
        self.asked = 0

    def __call__(self, data):
        """Count, and do the work."""
        self.asked += 1
        return super().__call__(data)


@pytest.fixture(scope="module")
def phantom(tmp_path_factory):
    folder = tmp_path_factory.mktemp("phantom")
    make_phantom(folder, PhantomSettings(pairs=6, rows=96, columns=64), workers=1)
    return folder


@pytest.fixture
def item(phantom):
    return read_datalist(phantom)["training"][0].to_item()


def asked_for(item, folder, transform=None):
    """How often the transforms had to work for an item."""
    transform = transform or Counted()
    CachePaird(transform, folder)(item)
    return transform.asked


def assert_same(one, other):
    assert one.keys() == other.keys()
    for key, value in one.items():
        if isinstance(value, torch.Tensor):
            assert torch.equal(value, other[key]), key
        else:
            assert value == other[key], key


def test_what_is_remembered_is_what_the_transforms_make(item, tmp_path):
    made = Counted()(dict(item))
    remember = CachePaird(Counted(), tmp_path)
    assert_same(remember(item), made)
    assert_same(remember(item), made)


def test_the_second_run_finds_what_the_first_has_made(item, tmp_path):
    assert [asked_for(item, tmp_path) for _ in range(3)] == [1, 0, 0]


def test_a_missing_view_is_remembered_as_missing(item, tmp_path):
    alone = {**item, "mlo": None}
    assert_same(CachePaird(Counted(), tmp_path)(alone), CachePaird(Counted(), tmp_path)(alone))
    assert asked_for(alone, tmp_path) == 0
    assert asked_for(item, tmp_path) == 1


def test_other_settings_boxes_and_pixels_are_not_mixed_up(item, phantom, tmp_path):
    assert asked_for(item, tmp_path) == 1
    assert asked_for(item, tmp_path, Counted(size=(96, 64))) == 1
    assert asked_for(item, tmp_path, Counted(apply_voi=False)) == 1
    moved = {**item, "cc_boxes": item["cc_boxes"] + 1}
    assert asked_for(moved, tmp_path) == (1 if len(item["cc_boxes"]) else 0)
    assert asked_for({**item, "cc_pixel_size": (5.0, 5.0)}, tmp_path) == 1
    assert asked_for({**item, "cc_pixel_size": (5.0, 4.0)}, tmp_path) == 1
    other = read_datalist(phantom)["training"][1].to_item()
    assert asked_for({**item, "cc": other["cc"]}, tmp_path) == 1


@pytest.fixture
def copy(item, tmp_path):
    """The item with a CC of its own, which may be changed."""
    shutil.copy(item["cc"], tmp_path / "copy.dcm")
    return {**item, "cc": str(tmp_path / "copy.dcm")}


def test_an_image_is_known_by_its_path_size_and_time_of_change(item, copy, tmp_path):
    file, cache = Path(copy["cc"]), tmp_path / "cache"
    assert asked_for(item, cache) == 1
    assert asked_for(copy, cache) == 1  # another path
    state = file.stat()
    os.utime(file, ns=(state.st_atime_ns, state.st_mtime_ns + 1))
    assert asked_for(copy, cache) == 1
    file.write_bytes(file.read_bytes() + b"\0")
    os.utime(file, ns=(state.st_atime_ns, state.st_mtime_ns))
    assert asked_for(copy, cache) == 1
    assert asked_for(copy, cache) == 0


def test_what_is_known_is_not_read_again(copy, tmp_path):
    file, cache = Path(copy["cc"]), tmp_path / "cache"
    made = CachePaird(Counted(), cache)(copy)
    state = file.stat()
    file.write_bytes(b"x" * state.st_size)  # whoever read it would notice
    os.utime(file, ns=(state.st_atime_ns, state.st_mtime_ns))
    transform = Counted()
    in_no_memory = CacheDataset([copy], CachePaird(transform, cache), cache_rate=0.0, progress=False)
    for _ in range(3):
        assert_same(in_no_memory[0], made)
    assert transform.asked == 0


def test_a_pair_has_its_own_name_and_file(item, tmp_path):
    CachePaird(Counted(), tmp_path)(item)
    transform = Counted()
    found = CachePaird(transform, tmp_path)({**item, "pair_id": "another"})
    assert transform.asked == 0
    assert (found["pair_id"], found["cc_meta"]["file"]) == ("another", item["cc"])


def test_files_that_are_damaged_or_deleted_are_made_again(item, tmp_path):
    made = CachePaird(Counted(), tmp_path)(item)
    (file,) = tmp_path.rglob("*.pt")
    for damaged in (file.read_bytes()[:1000], b"", b"no file of torch"):
        file.write_bytes(damaged)
        transform = Counted()
        assert_same(CachePaird(transform, tmp_path)(item), made)
        assert transform.asked == 1
    remember = CachePaird(Counted(), tmp_path)
    shutil.rmtree(tmp_path)
    assert_same(remember(item), made)


def test_no_name_of_a_pair_or_file_is_kept(item, tmp_path):
    CachePaird(Counted(), tmp_path)(item)
    (file,) = tmp_path.rglob("*.pt")
    content = file.read_bytes() + str(file.relative_to(tmp_path)).encode()
    assert item["pair_id"].encode() not in content
    assert b".dcm" not in content


def test_where_nothing_can_be_written_only_time_is_lost(item, tmp_path):
    (tmp_path / "cache").write_text("a file in the way")
    with pytest.warns(UserWarning, match="cannot be kept"):
        assert_same(CachePaird(Counted(), tmp_path / "cache")(item), Counted()(dict(item)))


def test_a_cache_in_memory_asks_once(item, tmp_path):
    transform = Counted()
    data = CacheDataset([item], CachePaird(transform, tmp_path), num_workers=None, progress=False)
    shutil.rmtree(tmp_path)
    assert_same(data[0], data[0])
    assert transform.asked == 1


def test_many_at_once_leave_whole_files_alone(phantom, tmp_path):
    items = [pair.to_item() for pair in read_datalist(phantom)["training"]] * 4
    remember = CachePaird(Counted(), tmp_path)
    with ThreadPoolExecutor(8) as pool:
        for found, item in zip(pool.map(remember, items), items, strict=True):
            assert found["pair_id"] == item["pair_id"]
    assert all(file.suffix == ".pt" for file in tmp_path.rglob("*") if file.is_file())
