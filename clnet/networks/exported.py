"""The network as it leaves Python: an image in, detections and links out, for TorchScript and ONNX."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn


class ExportedNetwork(nn.Module):
    """A network with one input and plain tensors as outputs, which is what MONAI's exports can express.

    Which views exist is read from the image: a view that is 0 everywhere is missing.

    Args:
        network: a `CLNet`. Checkpoints of it are checkpoints of this.
        links: whether to return links too, if the network makes any.
    """

    def __init__(self, network: nn.Module, links: bool = True) -> None:
        super().__init__()
        self.network = network
        self.links = links

    def forward(self, image: Tensor) -> Tensor | tuple[Tensor, Tensor, Tensor]:
        """Detect and link lesions.

        Args:
            image: [B, 2, H, W] in [0, 1], CC and MLO as preprocessing made them. Once exported, H and W are
                those of the example; another size is refused.

        Returns:
            - ``pred`` [B, 2, N, 5]: score, cx, cy, w, h of each detection in each view, all in [0, 1]; boxes
              are in units of the canvas. The scores of a missing view are 0.
            - ``links`` int64 [B, M, 2]: indices of the detections in CC and MLO; N: not seen in that view.
            - ``link_scores`` [B, M] in [0, 1].

            Only ``pred``, not in a tuple, if there are no links.
        """
        image = require_size(image, int(image.shape[2]), int(image.shape[3]))
        present = (image != 0).flatten(2).any(-1)
        outputs = self.network(image, present)
        scores = outputs["logits"][-1].sigmoid() * present[..., None]
        pred = torch.cat([scores[..., None], outputs["boxes"][-1]], dim=-1)
        if not self.links or outputs["links"].shape[1] == 0:
            return pred
        return pred, outputs["links"], outputs["link_scores"]

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> Any:
        """Load a checkpoint of the network itself: this is no other network."""
        return self.network.load_state_dict(state_dict, strict, assign)


# Scripted, since a trace keeps no conditions: it takes the numbers of cells for constants, and would answer
# to an image of another size with boxes that are wrong.
@torch.jit.script_if_tracing
def require_size(image: Tensor, rows: int, columns: int) -> Tensor:
    """The image [B, 2, rows, columns] itself, or an error if it has another size."""
    if image.shape[2] != rows or image.shape[3] != columns:
        raise ValueError(
            f"image: {image.shape[2]} rows, {image.shape[3]} columns; this model takes {rows}, {columns}"
        )
    return image
