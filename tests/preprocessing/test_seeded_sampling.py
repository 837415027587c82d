import pytest
import torch
from monai.data import DataLoader
from monai.data.utils import no_collation

from clnet.preprocessing.placement import Placement
from clnet.preprocessing.random_transforms import (
    RandCropPaird,
    RandFlipPaird,
    RandNormalisePaird,
    RandZoomPaird,
)
from clnet.preprocessing.seeded_sampling import EpochDataset, EpochSampler, SeededCompose, item_seed

PAIRS = 7


def items():
    views = {}
    for view in ("cc", "mlo"):
        views |= {
            view: torch.linspace(0, 1, 40 * 24).reshape(1, 40, 24),
            f"{view}_valid_size": [40, 24],
            f"{view}_placement": Placement().to_dict(),
        }
    return [{"pair_id": f"pair {number}", **views} for number in range(PAIRS)]


def loader(workers, first_epoch=0, seed=1):
    augment = SeededCompose(
        [RandFlipPaird(), RandCropPaird(), RandZoomPaird(), RandNormalisePaird()], seed=seed
    )
    return DataLoader(
        EpochDataset(items(), augment),
        sampler=EpochSampler(PAIRS, seed=seed, epoch=first_epoch),
        num_workers=workers,
        batch_size=2,
        collate_fn=no_collation,
        persistent_workers=workers > 0,
    )


def epochs(data_loader, count):
    """What each epoch gives: pair ids in order, and all pixels."""
    result = []
    for _ in range(count):
        samples = [sample for batch in data_loader for sample in batch]
        result.append(
            (
                [sample["pair_id"] for sample in samples],
                torch.stack([torch.cat([sample["cc"], sample["mlo"]]) for sample in samples]),
            )
        )
    return result


def assert_same(first, second):
    for (first_ids, first_pixels), (second_ids, second_pixels) in zip(first, second, strict=True):
        assert first_ids == second_ids
        assert torch.equal(first_pixels, second_pixels)


@pytest.mark.parametrize("workers", [1, 2])
def test_any_number_of_workers_gives_the_same_epochs_to_the_bit(workers):
    assert_same(epochs(loader(0), 2), epochs(loader(workers), 2))


def test_a_run_resumed_at_an_epoch_sees_what_it_would_have_seen():
    torch.manual_seed(123)
    assert_same(epochs(loader(0), 3)[2:], epochs(loader(0, first_epoch=2), 1))


def test_each_epoch_shows_every_pair_once_in_another_order_and_otherwise_changed():
    (first_ids, first_pixels), (second_ids, second_pixels) = epochs(loader(0), 2)
    assert sorted(first_ids) == sorted(second_ids) == [f"pair {number}" for number in range(PAIRS)]
    assert first_ids != second_ids
    same_pair = second_ids.index(first_ids[0])
    assert not torch.equal(first_pixels[0], second_pixels[same_pair])


def test_another_seed_gives_another_run():
    assert epochs(loader(0), 1)[0][0] != epochs(loader(0, seed=2), 1)[0][0]


def test_pairs_of_one_epoch_draw_differently():
    _, pixels = epochs(loader(0), 1)[0]
    assert len({tuple(image.flatten().tolist()) for image in pixels}) == PAIRS


def test_the_seed_of_an_item_is_the_same_on_every_machine():
    # printf '7 3 breast-12' | b2sum -l 32
    assert item_seed(7, 3, "breast-12").to_bytes(4, "little").hex() == "51705057"
