"""Shows one pair as files, as tensors and after augmentation, and maps its boxes back to original pixels.

Run as ``python scripts/demo_tensors.py DATASET_DIR PICTURE.png``.
"""

import sys
from pathlib import Path
from typing import Any

import torch
from monai.transforms.compose import Compose

from clnet.boxes import denormalise
from clnet.data.datalist import read_datalist
from clnet.data.pair import VIEW_NAMES
from clnet.data.pictures import Mark, datalist_picture, pair_picture, sheet
from clnet.preprocessing.placement import Placement
from clnet.preprocessing.random_transforms import (
    RandCropPaird,
    RandFlipPaird,
    RandNormalisePaird,
    RandZoomPaird,
)
from clnet.preprocessing.seeded_sampling import SeededCompose
from clnet.preprocessing.transforms import FinishPaird, LoadPaird, PreprocessPaird

SIZE = (320, 192)


def model_boxes(sample: dict[str, Any], view: int) -> torch.Tensor:
    """The boxes [n, 4] of a view, xyxy in model pixels."""
    return denormalise(sample["boxes"][view], *sample["image"].shape[1:])


def model_picture(sample: dict[str, Any], title: str) -> Any:
    """The two channels of a sample with its boxes."""
    marks = {
        name: [
            Mark((box[0], box[1], box[2], box[3]), str(lesion + 1), lesion)
            for box, lesion in zip(
                model_boxes(sample, view).tolist(), sample["lesion_ids"][view].tolist(), strict=True
            )
        ]
        for view, name in enumerate(VIEW_NAMES)
    }
    images = {name: sample["image"][view].numpy() for view, name in enumerate(VIEW_NAMES)}
    return pair_picture(images, marks, title)


def main(dataset: Path, picture: Path) -> None:
    """Run the pair with the most links through the transforms, print what comes out, and draw each stage."""
    pair = max(read_datalist(dataset)["training"], key=lambda pair: len(pair.links))
    load = Compose([LoadPaird(), PreprocessPaird(SIZE)])
    augment = SeededCompose([RandFlipPaird(), RandZoomPaird(), RandCropPaird(), RandNormalisePaird()], seed=1)
    finish = FinishPaird()
    loaded = load(pair.to_item())
    sample, augmented = finish(loaded), finish(augment(loaded))

    print(f"pair {pair.pair_id}: image {list(sample['image'].shape)}, present {sample['present'].tolist()}")
    for view, name in enumerate(VIEW_NAMES):
        placement = Placement.from_dict(sample["placements"][view])
        back = placement.invert(model_boxes(sample, view).double())
        for lesion, original, returned in zip(
            pair.views[name].lesion_ids, pair.views[name].boxes.tolist(), back.tolist(), strict=True
        ):
            error = max(abs(a - b) for a, b in zip(original, returned, strict=True))
            print(f"  {name:<4}lesion {lesion}: box {original}, mapped back within {error:.1e} pixels")

    picture.parent.mkdir(parents=True, exist_ok=True)
    pictures = [
        datalist_picture(pair),
        model_picture(sample, f"as the model sees it, {SIZE[0]} x {SIZE[1]}"),
        model_picture(augmented, "after random flip, zoom, crop, normalisation"),
    ]
    sheet(pictures, columns=3).save(picture)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
