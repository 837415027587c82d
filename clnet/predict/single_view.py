"""The bundle for one image, as MONAI Label's stock app `monaibundle` runs ``configs/inference.json``.

That app takes one image, passes boxes on without their scores, and has no links; ``clnet.apps.label`` is for
pairs. The image's other view counts as missing.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from clnet.data.header import read_header
from clnet.data.image_errors import NotAnImageError
from clnet.data.pair import Pair, View
from clnet.findings.lesions import merge_into_lesions
from clnet.predict.bundle import bundle_config
from clnet.preprocessing.batch import collate_pairs
from clnet.reports.slicer import slicer_boxes


def single_view_network(bundle_root: str) -> nn.Module:
    """The network, without weights: MONAI Label loads them itself."""
    return bundle_config(Path(bundle_root)).get_parsed_content("network_def")


class LoadSingleViewd:
    """Makes a pair of the one view in the file at ``image``, and the network's input from it.

    Args:
        bundle_root: the bundle.
    """

    def __init__(self, bundle_root: str) -> None:
        parser = bundle_config(Path(bundle_root))
        self.transform = parser.get_parsed_content("preprocessing")

    def __call__(self, data: Mapping[str, Any]) -> dict[str, Any]:
        """``image`` [2, H, W], and what is needed to map boxes back."""
        header = read_header(data["image"])
        if header.view not in ("CC", "MLO"):
            raise NotAnImageError(f"{header.file}: the view is {header.view}; CC or MLO is expected")
        name = header.view.lower()
        views = {name: View(header.file)}
        pair = Pair("image", "image", header.laterality or "L", views.get("cc"), views.get("mlo"))
        sample = self.transform(pair.to_item())
        batch = collate_pairs([sample])
        return {**data, "image": sample["image"], "batch": batch, "view": name, "spacing": header.spacing_mm}


class SingleViewDetector:
    """Calls the network that MONAI Label has given it."""

    network: nn.Module | None = None

    def __call__(self, images: Tensor, use_inferer: bool = True) -> list[dict[str, Any]]:
        """Raw outputs for images [1, 2, H, W]; a missing view is 0 everywhere."""
        if self.network is None:
            raise ValueError("the detector has no network")
        return [{"pred": self.network(images, images.flatten(2).any(-1))}]


class SingleViewBoxesd:
    """Boxes in the millimetres in which 3D Slicer shows the image, as MONAI Label's writer wants them.

    Args:
        postprocessing: of the bundle, from raw outputs to findings.
        min_score: of the boxes.
    """

    def __init__(self, postprocessing: Any, min_score: float) -> None:
        self.postprocessing = postprocessing
        self.min_score = min_score

    def __call__(self, data: Mapping[str, Any]) -> dict[str, Any]:
        """``box`` [n, 6]: centre and size along L, P and S; ``label`` [n], all 0."""
        (findings,) = self.postprocessing({**data["batch"], "pred": data["pred"]})["findings"]
        lesions = merge_into_lesions(findings, self.min_score)
        boxes = torch.tensor([lesion.views[data["view"]].box for lesion in lesions]).reshape(-1, 4)
        return {
            **data,
            "box": slicer_boxes(boxes, data["spacing"]),
            "label": torch.zeros(len(boxes), dtype=torch.int64),
        }
