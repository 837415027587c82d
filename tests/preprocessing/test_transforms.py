from dataclasses import replace

import numpy as np
import pytest
import torch
from drawn_mammograms import breast
from monai.data import CacheDataset, Dataset, PersistentDataset
from monai.transforms import Compose
from PIL import Image

from clnet.boxes import denormalise
from clnet.data.image_errors import ImageError
from clnet.data.pair import Pair, PairError, View
from clnet.preprocessing.placement import Placement
from clnet.preprocessing.transforms import FinishPaird, LoadPaird, PreprocessPaird

SIZE = (160, 96)
CC_BOX, MLO_BOXES = [80.0, 300.0, 120.0, 350.0], [[60.0, 400.0, 110.0, 460.0], [150.0, 500.0, 180.0, 520.0]]


@pytest.fixture
def pair(tmp_path):
    """A right breast: lesion a in both views, lesion b in MLO only."""
    for name, depth in (("cc", 250), ("mlo", 300)):
        image = breast(depth=depth)[:, ::-1].astype(np.uint16)
        Image.fromarray(image).save(tmp_path / f"{name}.png")
    mirror = np.array([[-1, 1, -1, 1]]), np.array([[500, 0, 500, 0]])
    cc, mlo = ((np.array(boxes)[:, [2, 1, 0, 3]] * mirror[0] + mirror[1]) for boxes in ([CC_BOX], MLO_BOXES))
    return Pair(
        "p1",
        "patient",
        "R",
        View(tmp_path / "cc.png", cc, ("a",)),
        View(tmp_path / "mlo.png", mlo, ("a", "b")),
    )


pipeline = Compose([LoadPaird(), PreprocessPaird(SIZE), FinishPaird()])


def test_a_pixel_size_in_the_datalist_sets_the_scale_of_a_view(pair):
    cc, mlo = replace(pair.cc, pixel_size=(1, 1)), replace(pair.mlo, pixel_size=(2, 2))
    placements = pipeline(replace(pair, cc=cc, mlo=mlo).to_item())["placements"]
    assert placements[1]["y_scale"] == pytest.approx(2 * placements[0]["y_scale"])
    placements = pipeline(pair.to_item())["placements"]
    assert placements[1]["y_scale"] == placements[0]["y_scale"]


def test_a_pair_becomes_the_sample_that_the_network_gets(pair):
    sample = pipeline(pair.to_item())
    assert set(sample) == {
        "pair_id",
        "image",
        "present",
        "boxes",
        "lesion_ids",
        "original_boxes",
        "placements",
        "meta",
    }
    assert sample["pair_id"] == "p1"
    assert sample["image"].shape == (2, *SIZE)
    assert sample["image"].dtype == torch.float32
    assert sample["present"].tolist() == [True, True]
    assert [ids.tolist() for ids in sample["lesion_ids"]] == [[0], [0, 1]]
    assert all(ids.dtype == torch.int64 for ids in sample["lesion_ids"])


def test_boxes_of_the_sample_lead_back_to_the_original_pixels(pair):
    item = pair.to_item()
    sample = pipeline(item)
    for boxes, placement, view in zip(sample["boxes"], sample["placements"], ("cc", "mlo"), strict=True):
        assert ((boxes >= 0) & (boxes <= 1)).all()
        back = Placement.from_dict(placement).invert(denormalise(boxes, *SIZE))
        np.testing.assert_allclose(back, item[f"{view}_boxes"], atol=1e-3)


def test_depth_from_the_chest_wall_is_in_the_same_unit_in_both_views(pair):
    sample = pipeline(pair.to_item())
    # Drawn for a left breast, x is the depth: 80 to 120 in CC, 60 to 110 in MLO.
    (cc, mlo) = (denormalise(boxes, *SIZE)[0] for boxes in sample["boxes"])
    scale = abs(sample["placements"][0]["x_scale"])
    assert cc[0] == pytest.approx(80 * scale, abs=0.3)
    assert mlo[0] == pytest.approx(60 * scale, abs=0.3)


@pytest.mark.parametrize("missing", ["cc", "mlo"])
def test_a_missing_view_is_a_blank_channel_without_boxes(pair, missing):
    there = {"cc": "mlo", "mlo": "cc"}[missing]
    sample = pipeline(Pair("p1", "patient", "R", **{there: getattr(pair, there)}).to_item())
    index = ("cc", "mlo").index(missing)
    assert sample["present"].tolist() == [missing != "cc", missing != "mlo"]
    assert sample["image"][index].abs().sum() == 0
    assert sample["image"][1 - index].max() > 0.9
    assert sample["boxes"][index].shape == (0, 4)
    assert sample["lesion_ids"][index].shape == (0,)
    assert sample["placements"][index] is sample["meta"][index] is None


def test_a_breast_without_lesions_gives_empty_targets(pair):
    sample = pipeline(Pair("n", "patient", "R", cc=View(pair.cc.image), mlo=View(pair.mlo.image)).to_item())
    assert [boxes.shape for boxes in sample["boxes"]] == [(0, 4), (0, 4)]


def test_meta_says_what_was_done_and_what_to_watch(pair):
    meta = pipeline(pair.to_item())["meta"][0]
    assert meta["file"].endswith("cc.png")
    assert (meta["rows"], meta["columns"]) == (800, 500)
    assert meta["steps"][0].startswith("PNG")
    assert "padded" in meta["steps"][-1]


def test_a_box_outside_the_breast_is_a_warning(pair):
    outside = View(pair.cc.image, [[10.0, 10.0, 60.0, 60.0]], ("a",))
    meta = pipeline(Pair("p1", "patient", "R", cc=outside).to_item())["meta"][0]
    assert any("box 0" in warning and "beyond the breast" in warning for warning in meta["warnings"])


def test_a_box_outside_the_image_is_refused_with_pair_view_index_value_and_size(pair):
    view = View(pair.mlo.image, [*pair.mlo.boxes[:1], [400.0, 10.0, 501.0, 60.0]], ("a", "b"))
    with pytest.raises(PairError, match=r"p1.*mlo.*box 1.*501.*500 columns and 800 rows"):
        LoadPaird()(Pair("p1", "patient", "R", mlo=view).to_item())


def test_an_unreadable_image_is_refused_by_name(pair, tmp_path):
    (tmp_path / "cc.png").write_bytes(b"no image")
    with pytest.raises(ImageError, match=r"cc\.png"):
        LoadPaird()(pair.to_item())


@pytest.mark.parametrize(("min_visible", "left"), [(0.1, 1), (0.5, 1), (0.6, 0)])
def test_a_lesion_stays_while_enough_of_it_is_visible_and_is_cut_at_the_edge(pair, min_visible, left):
    item = PreprocessPaird(SIZE)(LoadPaird()(pair.to_item()))
    # Move the CC view up until the edge of the canvas cuts its lesion at 45% of its height: 55% remain.
    top, bottom = 300.0, 350.0
    placement = Placement.from_dict(item["cc_placement"])
    cut = placement.y_scale * (top + 0.45 * (bottom - top)) + placement.y_shift
    item["cc_placement"] = placement.then(Placement(y_shift=-cut)).to_dict()
    sample = FinishPaird(min_visible)(item)
    assert len(sample["boxes"][0]) == len(sample["lesion_ids"][0]) == left
    assert sample["lesion_ids"][1].tolist() == [0, 1]  # the other view keeps the lesion
    if left:
        assert denormalise(sample["boxes"][0], *SIZE)[0, 1] == pytest.approx(0, abs=1e-4)


def test_a_box_ends_where_the_view_ends_not_where_the_canvas_does(pair):
    item = PreprocessPaird(SIZE)(LoadPaird()(pair.to_item()))
    whole = Placement.from_dict(item["cc_placement"]).apply(item["cc_boxes"])[0]
    item["cc_valid_size"] = [int(whole[3]) - 1, item["cc_valid_size"][1]]  # as a crop leaves it
    sample = FinishPaird()(item)
    assert denormalise(sample["boxes"][0], *SIZE)[0, 3] == pytest.approx(int(whole[3]) - 1, abs=1e-3)


def test_every_cache_of_monai_stores_the_preprocessed_item(pair, tmp_path):
    transform = Compose([LoadPaird(), PreprocessPaird(SIZE)])
    expected = Dataset([pair.to_item()], transform)[0]
    cache = tmp_path / "cache"
    PersistentDataset([pair.to_item()], transform, cache_dir=cache)[0]  # writes
    for stored in (
        PersistentDataset([pair.to_item()], transform, cache_dir=cache)[0],
        CacheDataset([pair.to_item()], transform, progress=False)[0],
    ):
        assert torch.equal(FinishPaird()(stored)["image"], FinishPaird()(expected)["image"])
        assert stored["cc_placement"] == expected["cc_placement"]
        assert stored["cc_meta"] == expected["cc_meta"]
