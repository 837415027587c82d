"""A small CL-Net learns four breasts by heart: every part of network and loss pulls the right way."""

import pytest
import torch

from clnet.boxes import box_iou, denormalise
from clnet.networks import CLNet, extract_linked_pairs
from clnet.training import CLNetLoss, LinkLoss

ROWS, COLUMNS = 160, 96
# (x, y, radius) in pixels of each lesion in CC and in MLO, None where it is not seen: a linked lesion, two
# that change their order between views, and one lesion in either view alone.
BREASTS = [
    [((30, 50, 8), (33, 90, 8))],
    [((20, 40, 6), (22, 120, 6)), ((60, 110, 10), (57, 50, 10))],
    [((40, 100, 7), None)],
    [(None, (50, 60, 9))],
]


def blobs() -> tuple[torch.Tensor, list[dict]]:
    """Four breasts with bright spots in noise: images [4, 2, H, W] and their targets."""
    generator = torch.Generator().manual_seed(0)
    y, x = torch.meshgrid(torch.arange(ROWS), torch.arange(COLUMNS), indexing="ij")
    images = torch.rand(len(BREASTS), 2, ROWS, COLUMNS, generator=generator) * 0.2
    targets = []
    for breast, lesions in enumerate(BREASTS):
        boxes, ids = [], []
        for view in range(2):
            seen = [(number, lesion[view]) for number, lesion in enumerate(lesions) if lesion[view]]
            for _, (cx, cy, radius) in seen:
                images[breast, view] += torch.exp(-2 * ((x - cx) ** 2 + (y - cy) ** 2) / radius**2)
            size = torch.tensor([COLUMNS, ROWS, COLUMNS, ROWS])
            boxes.append(
                torch.tensor([[cx, cy, 2 * r, 2 * r] for _, (cx, cy, r) in seen]).reshape(-1, 4) / size
            )
            ids.append(torch.tensor([number for number, _ in seen], dtype=torch.long))
        targets.append({"boxes": boxes, "lesion_ids": ids})
    return images, targets


def lesion_of_each_detection(boxes: torch.Tensor, target: dict, view: int) -> list[int | None]:
    """The id of the lesion that each of N boxes [N, 4] overlaps by half, or None."""
    truth = target["boxes"][view]
    if not len(truth):
        return [None] * len(boxes)
    overlap = box_iou(denormalise(boxes, ROWS, COLUMNS), denormalise(truth, ROWS, COLUMNS))
    best, index = overlap.max(1)
    return [
        target["lesion_ids"][view][i].item() if iou >= 0.5 else None
        for iou, i in zip(best, index, strict=True)
    ]


@pytest.mark.slow
def test_a_small_network_learns_four_breasts_by_heart():
    torch.manual_seed(0)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    images, targets = blobs()
    present = torch.ones(len(images), 2, dtype=torch.bool)
    network = CLNet(dropout=0.0)
    loss = CLNetLoss(link=LinkLoss(temperature=0.1))
    steps = 180
    optimiser = torch.optim.AdamW(network.parameters(), lr=2e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, max_lr=2e-3, total_steps=steps)
    for _ in range(steps):
        optimiser.zero_grad()
        loss(network(images, present), targets, present)["loss"].backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimiser.step()
        schedule.step()
    torch.set_num_threads(threads)

    network.eval()
    with torch.no_grad():
        outputs = network(images)
    lesions = [
        [lesion_of_each_detection(outputs["boxes"][-1, breast, view], target, view) for view in range(2)]
        for breast, target in enumerate(targets)
    ]

    # Recall 1.0 at 0 false positives: above the threshold is each lesion, once, and nothing else.
    for breast, target in enumerate(targets):
        for view in range(2):
            confident = (outputs["logits"][-1, breast, view].sigmoid() > 0.5).nonzero().flatten().tolist()
            found = [lesions[breast][view][query] for query in confident]
            assert sorted(found, key=str) == target["lesion_ids"][view].tolist(), (breast, view)

    # Link accuracy 1.0: above the threshold is each lesion's pair, once.
    pairs = extract_linked_pairs(outputs)
    for breast, expected in enumerate(BREASTS):
        found = []
        for cc, mlo, score in zip(*(field[breast].tolist() for field in pairs), strict=True):
            if score > 0.5:
                ends = [
                    "dustbin" if query == len(lesions[breast][view]) else lesions[breast][view][query]
                    for view, query in enumerate((cc, mlo))
                ]
                found.append(tuple(ends))
        truth = [tuple(n if seen else "dustbin" for seen in lesion) for n, lesion in enumerate(expected)]
        assert sorted(found, key=str) == sorted(truth, key=str), breast
