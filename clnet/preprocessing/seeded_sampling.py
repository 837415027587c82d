"""Random draws that depend on nothing but what they are for.

MONAI seeds a random transform once per worker process; what an item gets then depends on how many workers
there are and on what each has done before. Here every draw follows from ``(seed, epoch, pair_id)`` alone. A
run can be resumed at any epoch, on any number of workers, and sees to the bit what it would have seen.

The epoch travels with the index: `EpochSampler` yields ``epoch * n + index``, `EpochDataset` takes it apart.
So it reaches workers that were started in an earlier epoch, too.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import ignite.distributed as idist
import numpy as np
import torch
from monai.transforms.compose import Compose
from monai.transforms.transform import Randomizable
from torch.utils.data import Dataset, Sampler


class SeededCompose(Compose):
    """A chain of random transforms, seeded anew for each item by ``(seed, item["epoch"], item["pair_id"])``.

    Args:
        transforms: the random transforms, in order.
        seed: of the run.
    """

    def __init__(self, transforms: Sequence[Callable[..., Any]], seed: int = 0) -> None:
        super().__init__(transforms)
        self.seed = seed

    def __call__(self, input_: Any, *args: Any, **kwargs: Any) -> Any:  # type: ignore[override]
        """Seed, then run the chain; an item without an epoch is of epoch 0."""
        # One state for all, drawn from in turn: to make one for each would cost more than some transforms do.
        state = np.random.RandomState(item_seed(self.seed, input_.get("epoch", 0), input_["pair_id"]))
        for transform in self.transforms:
            if isinstance(transform, Randomizable):
                transform.set_random_state(state=state)
        return super().__call__(input_, *args, **kwargs)


def item_seed(seed: int, epoch: int, pair_id: str) -> int:
    """A number below 2**32, the same in every process (which Python's `hash` of a text is not)."""
    digest = hashlib.blake2b(f"{seed} {epoch} {pair_id}".encode(), digest_size=4).digest()
    return int.from_bytes(digest, "little")


class EpochDataset(Dataset[Any]):
    """Items of other data, with their epoch, through the random part of the transforms.

    Args:
        data: the items after the deterministic transforms: MONAI's Dataset, CacheDataset, PersistentDataset.
        transform: what is done to each, a `SeededCompose` and `FinishPaird`.
    """

    def __init__(self, data: Sequence[Mapping[str, Any]], transform: Callable[[Any], Any]) -> None:
        self.data = data
        self.transform = transform

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, draw: int) -> Any:
        """The item of a draw ``epoch * n + index``."""
        epoch, index = divmod(draw, len(self.data))
        return self.transform({**self.data[index], "epoch": epoch})


class EpochSampler(Sampler[int]):
    """Each epoch a new order of all items, given by the seed and the epoch; the next epoch at each iteration.

    Of n processes each takes every n-th item of that order; the few items that would make their shares
    unequal are left for another epoch.

    Args:
        length: number of items.
        seed: of the run.
        epoch: the epoch to begin with; set it to resume.
    """

    def __init__(self, length: int, seed: int = 0, epoch: int = 0) -> None:
        self.length = length
        self.seed = seed
        self.epoch = epoch
        self.rank, self.processes = idist.get_rank(), idist.get_world_size()

    def __len__(self) -> int:
        return self.length // self.processes

    def __iter__(self) -> Iterator[int]:
        generator = torch.Generator().manual_seed(item_seed(self.seed, self.epoch, "order"))
        order = self.epoch * self.length + torch.randperm(self.length, generator=generator)
        self.epoch += 1
        return iter(order[self.rank :: self.processes][: len(self)].tolist())


class ShardSampler(Sampler[int]):
    """All items in their order, each in one process only: for evaluation, where every item counts once."""

    def __init__(self, length: int) -> None:
        self.indices = range(idist.get_rank(), length, idist.get_world_size())

    def __len__(self) -> int:
        return len(self.indices)

    def __iter__(self) -> Iterator[int]:
        return iter(self.indices)
