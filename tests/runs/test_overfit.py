"""A small CL-Net learns four breasts by heart: every part of network and loss pulls the right way."""

import pytest
import torch
from monai.transforms import Compose
from network_configs import build_with_loss

from clnet.boxes import box_iou, denormalise
from clnet.phantom import PhantomSettings, make_phantom
from clnet.preprocessing.batch import collate_pairs
from clnet.preprocessing.transforms import FinishPaird, LoadPaird, PreprocessPaird

ROWS, COLUMNS = 160, 96


def four_breasts(folder) -> tuple[torch.Tensor, list[dict]]:
    """Phantom breasts from DICOM to tensors [4, 2, H, W] with their targets.

    The one with most lesions, one without, one with a lesion of one view, and one with a linked lesion.
    """
    datalist = make_phantom(folder, PhantomSettings(pairs=40, seed=3, rows=192, columns=128), workers=1)
    pairs = [pair for section in datalist.sections.values() for pair in section]

    def lesions(pair):
        return set(pair.cc.lesion_ids) | set(pair.mlo.lesion_ids)

    chosen = [
        max(pairs, key=lambda pair: len(lesions(pair))),
        next(pair for pair in pairs if not lesions(pair)),
        next(pair for pair in pairs if len(lesions(pair)) == 1 and not pair.links),
        next(pair for pair in pairs if len(lesions(pair)) == 1 and pair.links),
    ]
    load = Compose([LoadPaird(), PreprocessPaird((ROWS, COLUMNS)), FinishPaird()])
    batch = collate_pairs([load(pair.to_item()) for pair in chosen])
    targets = [
        {"boxes": boxes, "lesion_ids": ids}
        for boxes, ids in zip(batch["boxes"], batch["lesion_ids"], strict=True)
    ]
    return batch["image"], targets


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
@pytest.mark.parametrize("configs", [["clnet"], []], ids=["CL-Net", "Geometric CL-Net"])
def test_a_small_network_learns_four_breasts_by_heart(tmp_path, configs):
    torch.manual_seed(0)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    images, targets = four_breasts(tmp_path)
    present = torch.ones(len(images), 2, dtype=torch.bool)
    network, loss = build_with_loss(*configs)
    steps = 180
    optimiser = torch.optim.AdamW(network.parameters(), lr=2e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, max_lr=2e-3, total_steps=steps)
    for _ in range(steps):
        optimiser.zero_grad()
        loss(network(images, present), {"lesions": targets, "present": present}).backward()
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
    for breast, target in enumerate(targets):
        found = []
        links, scores = outputs["links"][breast].tolist(), outputs["link_scores"][breast].tolist()
        sure = [tuple(link) for link, score in zip(links, scores, strict=True) if score > 0.5]
        # Both detections of a pair choose in the Geometric Linker, so that it tells each pair twice.
        for cc, mlo in sure if configs else set(sure):
            ends = [
                "dustbin" if query == len(lesions[breast][view]) else lesions[breast][view][query]
                for view, query in enumerate((cc, mlo))
            ]
            found.append(tuple(ends))
        in_cc, in_mlo = (set(ids.tolist()) for ids in target["lesion_ids"])
        truth = [
            (lesion if lesion in in_cc else "dustbin", lesion if lesion in in_mlo else "dustbin")
            for lesion in in_cc | in_mlo
        ]
        assert sorted(found, key=str) == sorted(truth, key=str), breast
