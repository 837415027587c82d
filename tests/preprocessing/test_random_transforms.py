import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from monai.transforms import Compose

from clnet.preprocessing.placement import Placement
from clnet.preprocessing.random_transforms import (
    RandChestWallPaird,
    RandCropPaird,
    RandFlipPaird,
    RandNormalisePaird,
    RandRotatePaird,
    RandZoomPaird,
)
from clnet.preprocessing.transforms import FinishPaird, PreprocessPaird, TransformSettingError

SIZE = (160, 96)
GEOMETRY = {
    "flip": lambda: RandFlipPaird(prob=0.5, horizontal_prob=0.5),
    "crop": lambda: RandCropPaird(prob=1.0, min_part=0.5),
    "zoom": lambda: RandZoomPaird(prob=1.0, min_zoom=0.6, max_zoom=1.6),
}
EVERYTHING = lambda: Compose([make() for make in GEOMETRY.values()])  # noqa: E731
BOTH = ("cc", "mlo")
CUT = {"chest wall": lambda: RandChestWallPaird(prob=1.0, max_part=0.3)}
OTHERS = {**CUT, "normalise": RandNormalisePaird, "rotate": lambda: RandRotatePaird(prob=1.0)}


def item_of(cc_size=(150, 60), mlo_size=(160, 90), axis=1):
    """A pair in the model's space whose pixels say where they are: their centre along an axis."""
    item = {"pair_id": "p", "epoch": 0}
    for view, (rows, columns) in (("cc", cc_size), ("mlo", mlo_size)):
        image = torch.zeros(1, *SIZE)
        image[0, :rows, :columns] = torch.from_numpy(np.indices((rows, columns))[axis] + 0.5)
        item |= {
            view: image,
            f"{view}_valid_size": [rows, columns],
            f"{view}_placement": Placement().to_dict(),
            f"{view}_boxes": torch.tensor([[10.0, 20.0, 22.0, 30.0]]),
            f"{view}_lesion_ids": torch.tensor([0]),
            f"{view}_meta": None,
        }
    return item


def without(item, view):
    gone = {view: None, f"{view}_valid_size": None, f"{view}_placement": None, f"{view}_meta": None}
    boxes = {f"{view}_boxes": torch.zeros(0, 4), f"{view}_lesion_ids": torch.zeros(0, dtype=torch.int64)}
    return {**item, **gone, **boxes}


def changed(transform, item, seed):
    return transform.set_random_state(seed=seed)(item)


def where_from(item, view):
    """Where the centres of the valid pixels were before, by the placement: [2 (y, x), rows, columns]."""
    y, x = np.indices(item[f"{view}_valid_size"]) + 0.5
    back = Placement.from_dict(item[f"{view}_placement"]).invert(np.stack([x, y, x, y], axis=-1))
    return np.stack([back[..., 1], back[..., 0]])


@pytest.mark.parametrize("axis", [0, 1], ids=["rows", "columns"])
@pytest.mark.parametrize(
    "make", [*GEOMETRY.values(), *CUT.values(), EVERYTHING], ids=[*GEOMETRY, *CUT, "all"]
)
@pytest.mark.parametrize("seed", range(12))
def test_pixels_go_where_the_placement_says(make, seed, axis):
    before = item_of(axis=axis)
    item = changed(make(), before, seed)
    for view in BOTH:
        rows, columns = item[f"{view}_valid_size"]
        expected = where_from(item, view)
        # At the ends of the ramp, and where a crop has cut it, a filter has nothing on the other side.
        size = np.reshape(before[f"{view}_valid_size"], (2, 1, 1))
        inner = ((expected > 3) & (expected < size - 3)).all(axis=0)
        inner[:3] = inner[-3:] = inner[:, :3] = inner[:, -3:] = False
        assert inner.sum() > 100
        image = item[view][0, :rows, :columns].numpy()
        np.testing.assert_allclose(image[inner], expected[axis][inner], atol=0.15)


@pytest.mark.parametrize("make", [*GEOMETRY.values(), EVERYTHING], ids=[*GEOMETRY, "all"])
def test_what_happens_to_depth_happens_to_both_views_and_rows_go_their_own_way(make):
    rows_differ = 0
    for seed in range(30):
        item = changed(make(), item_of(), seed)
        cc, mlo = (item[f"{view}_placement"] for view in BOTH)
        assert cc["x_scale"] == pytest.approx(mlo["x_scale"])
        assert cc["x_shift"] == pytest.approx(mlo["x_shift"])
        rows_differ += cc["y_shift"] != mlo["y_shift"]
    assert rows_differ > 5


@settings(max_examples=60)
@given(
    st.tuples(st.integers(1, 160), st.integers(1, 96)),
    st.tuples(st.integers(1, 160), st.integers(1, 96)),
    st.integers(0, 2**32 - 1),
)
def test_something_of_both_views_is_left_on_the_canvas_and_padding_is_zero(cc_size, mlo_size, seed):
    chain = Compose([RandFlipPaird(), GEOMETRY["crop"](), GEOMETRY["zoom"]()])
    item = changed(chain, item_of(cc_size, mlo_size), seed)
    for view in BOTH:
        rows, columns = item[f"{view}_valid_size"]
        assert item[view].shape == (1, *SIZE)
        assert 1 <= rows <= SIZE[0]
        assert 1 <= columns <= SIZE[1]
        assert item[view][0, rows:].abs().sum() == 0
        assert item[view][0, :, columns:].abs().sum() == 0
        assert item[view].abs().sum() > 0


@pytest.mark.parametrize("make", [GEOMETRY["crop"], GEOMETRY["zoom"]], ids=["crop", "zoom"])
def test_a_view_much_narrower_than_the_other_keeps_its_share(make):
    for seed in range(20):
        item = changed(make(), item_of(cc_size=(160, 10), mlo_size=(160, 96)), seed)
        assert item["cc_valid_size"][1] >= 4


@pytest.mark.parametrize("missing", BOTH)
@pytest.mark.parametrize("make", [*GEOMETRY.values(), *OTHERS.values()], ids=[*GEOMETRY, *OTHERS])
def test_a_missing_view_passes_through(make, missing):
    for seed in range(10):
        item = changed(make(), without(item_of(), missing), seed)
        sample = FinishPaird()(item)
        assert item[missing] is None
        assert sample["present"].tolist() == [missing != "cc", missing != "mlo"]


@pytest.mark.parametrize("make", [*GEOMETRY.values(), *OTHERS.values()], ids=[*GEOMETRY, *OTHERS])
def test_the_given_item_is_left_as_it_is(make):
    item, twin = item_of(), item_of()
    changed(make(), item, 3)
    for key, value in twin.items():
        assert torch.equal(item[key], value) if torch.is_tensor(value) else item[key] == value


def test_views_are_turned_upside_down_together():
    turned = {
        tuple(
            changed(RandFlipPaird(prob=0.5), item_of(), seed)[f"{view}_placement"]["y_scale"] for view in BOTH
        )
        for seed in range(20)
    }
    assert turned == {(1, 1), (-1, -1)}


def test_the_chest_wall_is_cut_off_in_one_view_of_which_the_rest_moves_to_the_edge():
    cut_off = {view: [] for view in BOTH}
    for seed in range(60):
        item = changed(RandChestWallPaird(prob=1.0, max_part=0.3), item_of(), seed)
        shifts = {view: -item[f"{view}_placement"]["x_shift"] for view in BOTH}
        view = max(BOTH, key=lambda name: shifts[name])
        assert min(shifts.values()) == 0, "one view alone"
        cut_off[view].append(shifts[view])
        columns = {"cc": 60, "mlo": 90}[view]
        assert item[f"{view}_valid_size"][1] == columns - shifts[view]
        assert item[view][0, 0, 0] == shifts[view] + 0.5, "pixels say which column they were"
    assert 0.2 * 60 < max(cut_off["cc"]) <= 0.3 * 60
    assert 0.2 * 90 < max(cut_off["mlo"]) <= 0.3 * 90
    with pytest.raises(TransformSettingError, match="max_part"):
        RandChestWallPaird(max_part=1.0)


def test_a_vertical_flip_turns_the_rows_of_the_view_not_of_the_canvas():
    item = RandFlipPaird(prob=1.0)(item_of(axis=0))
    np.testing.assert_array_equal(item["cc"][0, :150, 0], np.arange(150)[::-1] + 0.5)
    assert Placement.from_dict(item["cc_placement"]).apply(np.array([[1.0, 0.0, 2.0, 10.0]])).tolist() == [
        [1.0, 140.0, 2.0, 150.0]
    ]


def test_a_horizontal_flip_mirrors_both_views_about_one_line():
    item = RandFlipPaird(prob=0.0, horizontal_prob=1.0)(item_of())
    for view in BOTH:
        assert item[f"{view}_placement"]["x_shift"] == 90  # the wider view
        assert item[f"{view}_valid_size"][1] == 90
    np.testing.assert_array_equal(item["cc"][0, 0, :32], [0.0] * 30 + [59.5, 58.5])


def test_a_lesion_that_a_crop_leaves_out_is_dropped_and_its_partner_stays():
    # The lesions lie at rows 0 to 10 in CC and 75 to 85 in MLO: a crop of the rows drops one, rarely both.
    item = item_of()
    item["cc_boxes"] = torch.tensor([[10.0, 0.0, 30.0, 10.0]])
    item["mlo_boxes"] = torch.tensor([[10.0, 75.0, 30.0, 85.0]])
    outcomes = set()
    for seed in range(40):
        sample = FinishPaird()(changed(RandCropPaird(prob=1.0, min_part=0.7), item, seed))
        assert [len(boxes) for boxes in sample["boxes"]] == [len(ids) for ids in sample["lesion_ids"]]
        outcomes.add(tuple(len(ids) for ids in sample["lesion_ids"]))
        assert all(((boxes >= 0) & (boxes <= 1)).all() for boxes in sample["boxes"])
    assert {(1, 1), (0, 1)} <= outcomes


MIRRORED = Placement(x_scale=-0.5, x_shift=96.0, y_scale=0.5)
"""Of an image with the chest wall on the right."""
ANGLED = Placement(x_scale=0.5, x_shift=-4.0, y_scale=0.5, y_shift=3.0)


def with_ellipses(placement, box=(30.0, 45.0, 52.0, 87.0)):
    """A pair with a bright ellipse in this frame of the canvas; its boxes are in original pixels."""
    item = item_of(cc_size=(150, 96), mlo_size=(160, 96))
    y, x = np.indices(SIZE) + 0.5
    left, top, right, bottom = box
    inside = (
        np.hypot((x - (left + right) / 2) * 2 / (right - left), (y - (top + bottom) / 2) * 2 / (bottom - top))
        < 1
    )
    for view in BOTH:
        rows, columns = item[f"{view}_valid_size"]
        image = torch.zeros(1, *SIZE)
        image[0, :rows, :columns] = 0.3  # tissue
        image[0][torch.from_numpy(inside)] = 1.0
        item |= {
            view: image,
            f"{view}_placement": placement.to_dict(),
            f"{view}_boxes": placement.invert(torch.tensor([box])),
        }
    return item


def frame_of_bright_pixels(image):
    rows, columns = np.nonzero(np.asarray(image) > 0.65)
    return [columns.min(), rows.min(), columns.max() + 1, rows.max() + 1]


@pytest.mark.parametrize("placement", [ANGLED, MIRRORED], ids=["chest wall left", "chest wall right"])
def test_a_rotation_turns_boxes_as_it_turns_the_image(placement):
    before = with_ellipses(placement)
    moved = []
    for seed in range(12):
        item = changed(RandRotatePaird(prob=1.0, max_degrees=30), before, seed)
        for view in BOTH:
            box = Placement.from_dict(item[f"{view}_placement"]).apply(item[f"{view}_boxes"])[0].tolist()
            assert frame_of_bright_pixels(item[view][0]) == pytest.approx(box, abs=1.5)
            moved.append(max(abs(one - other) for one, other in zip(box, (30, 45, 52, 87), strict=True)))
            assert item[f"{view}_placement"] == placement.to_dict()
    assert max(moved) > 15


def test_a_rotation_by_nothing_changes_nothing():
    before = with_ellipses(MIRRORED)
    item = changed(RandRotatePaird(prob=1.0, max_degrees=0), before, 0)
    for view in BOTH:
        torch.testing.assert_close(item[view], before[view], atol=1e-4, rtol=0)
        torch.testing.assert_close(item[f"{view}_boxes"], before[f"{view}_boxes"], atol=1e-3, rtol=0)


def test_views_are_turned_by_angles_of_their_own_about_the_middle_of_the_chest_wall():
    before = item_of(cc_size=(150, 96), mlo_size=(160, 96))
    for view in BOTH:
        before[view] = torch.zeros(1, *SIZE)
    before["cc"][0, 74:76, :60] = 1.0  # a line from the middle of the chest wall into the breast
    before["mlo"][0, 79:81, :60] = 1.0
    for seed in range(5):
        item = changed(RandRotatePaird(prob=1.0, max_degrees=20), before, seed)
        slopes = []
        for view, middle in (("cc", 75), ("mlo", 80)):
            rows, columns = np.nonzero(item[view][0].numpy() > 0.5)
            slope, start = np.polyfit(columns + 0.5, rows + 0.5, 1)
            assert start == pytest.approx(middle, abs=0.5)
            slopes.append(np.degrees(np.arctan(slope)))
        assert max(map(abs, slopes)) <= 20.5
        assert abs(slopes[0] - slopes[1]) > 0.5


def film_chain():
    return Compose(
        [
            RandFlipPaird(prob=0.5),
            RandZoomPaird(prob=1.0, min_zoom=0.78, max_zoom=1.28),
            RandCropPaird(prob=0.5, min_part=0.85),
            RandRotatePaird(prob=1.0, max_degrees=15),
        ]
    )


@pytest.mark.parametrize("placement", [ANGLED, MIRRORED], ids=["chest wall left", "chest wall right"])
def test_boxes_and_images_agree_after_flip_zoom_crop_and_rotation(placement):
    compared = 0
    for seed in range(25):
        sample = FinishPaird()(changed(film_chain(), with_ellipses(placement), seed))
        for image, boxes in zip(sample["image"], sample["boxes"], strict=True):
            for x, y, width, height in (boxes * torch.tensor([96.0, 160.0, 96.0, 160.0])).tolist():
                box = [x - width / 2, y - height / 2, x + width / 2, y + height / 2]
                if min(box[:2]) > 1 and box[2] < 95 and box[3] < 159:  # not cut by the edge
                    assert frame_of_bright_pixels(image) == pytest.approx(box, abs=2)
                    compared += 1
    assert compared > 35


def test_what_a_crop_has_cut_off_a_rotation_does_not_bring_back():
    """A lesion at the lower edge of the view; whatever is left of its box is full of it."""
    kept = dropped = 0
    for seed in range(60):
        chain = Compose([RandCropPaird(prob=1.0, min_part=0.6), RandRotatePaird(prob=1.0, max_degrees=15)])
        item = changed(chain, with_ellipses(ANGLED, box=(30.0, 120.0, 50.0, 148.0)), seed)
        sample = FinishPaird()(item)
        for image, boxes, ids in zip(sample["image"], sample["boxes"], sample["lesion_ids"], strict=True):
            assert len(boxes) == len(ids)
            dropped += not len(boxes)
            for x, y, width, height in (boxes * torch.tensor([96.0, 160.0, 96.0, 160.0])).tolist():
                kept += 1
                rows = slice(round(y - height / 2), round(y + height / 2))
                columns = slice(round(x - width / 2), round(x + width / 2))
                assert (
                    image[rows, columns] > 0.65
                ).float().mean() > 0.5  # an ellipse fills 0.79 of its frame
    assert kept > 20 and dropped > 20


def test_normalisation_keeps_zero_and_order_and_treats_each_view_by_itself():
    item = item_of()
    for view in BOTH:
        item[view] = (item[view] / 96).clamp(0, 1)
    differ = 0
    for seed in range(20):
        result = changed(RandNormalisePaird(prob=1.0), item, seed)
        for view in BOTH:
            assert result[f"{view}_placement"] == item[f"{view}_placement"]
            assert result[view].min() >= 0
            assert result[view].max() <= 1
            assert (result[view][item[view] == 0] == 0).all()
            row = result[view][0, 5, :60]
            assert (row.diff() >= 0).all()
        differ += not torch.equal(result["cc"][0, :150, :60], result["mlo"][0, :150, :60])
    assert differ == 20


def test_normalisation_computes_its_formula():
    item = item_of()
    item["cc"] = item["cc"] / 100
    transform = RandNormalisePaird(prob=1.0, max_low=0.0, high=(0.5, 0.5), gamma=(2.0, 2.0))
    result = transform(item)["cc"][0, 0, :60]
    expected = np.minimum((np.arange(60) + 0.5) / 100 / 0.5, 1) ** 2
    np.testing.assert_allclose(result, expected, atol=1e-6)


@pytest.mark.parametrize(
    ("transform", "settings_", "named"),
    [
        (RandCropPaird, {"min_part": 0.0}, "min_part"),
        (RandZoomPaird, {"min_zoom": 1.2, "max_zoom": 1.1}, "min_zoom"),
        (RandNormalisePaird, {"max_low": 0.9}, "max_low"),
        (RandNormalisePaird, {"gamma": (0.0, 1.0)}, "gamma"),
        (RandRotatePaird, {"max_degrees": -1.0}, "max_degrees"),
        (FinishPaird, {"min_visible": 0.0}, "min_visible"),
        (PreprocessPaird, {"size": (0, 96)}, "size"),
    ],
)
def test_a_setting_that_makes_no_sense_is_refused_by_name(transform, settings_, named):
    with pytest.raises(TransformSettingError, match=rf"{transform.__name__}.*{named}"):
        transform(**settings_)


EVERY = [RandFlipPaird, RandCropPaird, RandZoomPaird, RandRotatePaird, RandNormalisePaird]


@pytest.mark.parametrize("transform", EVERY)
def test_with_probability_zero_nothing_changes(transform):
    item = item_of()
    result = changed(transform(prob=0.0), item, 1)
    assert all(torch.equal(result[view], item[view]) for view in BOTH)
    assert result["cc_placement"] == item["cc_placement"]


@pytest.mark.parametrize("transform", EVERY)
def test_the_same_random_state_gives_the_same_result(transform):
    first, second = (
        [changed(transform(), item_of(axis=0), seed)["mlo"] for seed in range(8)] for _ in range(2)
    )
    assert all(torch.equal(one, other) for one, other in zip(first, second, strict=True))
    assert any(not torch.equal(first[0], other) for other in first[1:])
