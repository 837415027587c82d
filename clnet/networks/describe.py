"""Write docs/network.md: what the networks are made of, and how they differ from the paper.

Run ``python -m clnet.networks.describe > docs/network.md``.
"""

import inspect
import sys
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from clnet.networks.backbone import LightBackbone
from clnet.networks.clnet import PAPER_SETTINGS, CLNet
from clnet.networks.decoder import DecoderLayer, ViewInteractiveDecoder
from clnet.networks.encoder import EncoderLayer, ImageEncoder
from clnet.networks.feature_levels import ImageFeatures
from clnet.networks.lesion_linker import LesionLinker, LinkerLayer

OPENED = (
    CLNet,
    ImageEncoder,
    EncoderLayer,
    ViewInteractiveDecoder,
    DecoderLayer,
    LesionLinker,
    LinkerLayer,
    LightBackbone,
)
"""Modules whose parts have rows of their own, with the ResNet."""

WHY_LIGHT = {
    "backbone": "learns from scratch within minutes on a CPU; no ImageNet weights are needed",
    "feature_levels": "strides 8 and 16 of a small image; stride 4 would make the encoder 4 times as slow",
    "width": "fewer parameters for a small data set",
    "heads": "16 channels a head",
    "encoder_layers": "the encoder is most of the cost, and mammograms gain little from depth (MELBA 2025:009)",
    "decoder_layers": "cost",
    "ffn": "twice the width",
    "object_queries": "a breast has few lesions; 20 candidates a view are plenty",
    "linker_layers": "cost; the paper's own ablation loses 1.0 at R@0.25 with 1 in place of 3",
}
"""Why the light default takes another value than the paper."""

CHOICES = """\
| point | the paper | here |
|---|---|---|
| place of the inter-attention | "at the end of each transformer decoder block", but also "embeddings output by \
cross-attention layer" | at the end, after the feed-forward network |
| inter-attention, linker: norm and dropout | equations show the residual only | residual, dropout, post-norm, as \
in the rest of the decoder |
| inter-attention from CC to MLO and back | one symbol M | one set of weights for both directions |
| two sets of object queries | not said how | one learned embedding for each view, all other weights shared |
| position of the dustbin | not said | a learned vector of its own |
| heads of the linker | "three FFN layers" | three 3-layer MLPs, as in HOTR; scores begin at 1% |
| Deformable DETR's box refinement | not said | off, a setting; `box_refinement` |
| temperature in the cross-entropy over similarities | none | a setting of the loss, 1.0 by default, which is the \
paper to the letter. With it the right one of 126 candidates gets at most 5.6% of the probability |
| pair score in the matching cost | s | its sigmoid, since the cost takes a power of it |
| loss of earlier linker layers | not said | as in HOTR, against the last decoder layer's detections; a setting |
| normaliser of L_Link | a sum over link queries | that sum, divided by the number of lesions in the batch |
| a missing view | not treated | its inter-attention is left out, the linker sees its dustbin alone, it adds \
nothing to the loss |
| grey images with ImageNet weights | not said | first convolution summed over colours, which equals showing the \
image in all three |
| Pair Verification: MLP of CC and of MLO | one symbol MLP | one set of weights |
| Paired Lesion Query: lesion seen in one view | not said | costs what it costs in that view; the other view's \
score is taught to be 0 |
"""
"""Where the text leaves a choice, and what is done."""


def page(size: tuple[int, int] = (1024, 512)) -> str:
    """The whole of docs/network.md, for one breast with images of (rows, columns)."""
    light = {
        name: parameter.default
        for name, parameter in inspect.signature(CLNet).parameters.items()
        if name in PAPER_SETTINGS
    }
    small = (160, 96)
    return "\n".join(
        [
            "# The networks",
            "",
            "This page is generated: `python -m clnet.networks.describe > docs/network.md`.",
            "",
            "## The paper's size",
            "",
            f"`CLNet(**PAPER_SETTINGS)`, {_size(PAPER_SETTINGS)}. Shapes are those of one breast (B = 1) with "
            f"images of {size[0]} × {size[1]} pixels; the two views pass encoder and decoder as a batch of 2.",
            "",
            *layer_table(PAPER_SETTINGS, size),
            "",
            "## The light default",
            "",
            f"`CLNet()`, {_size(light)}, at {small[0]} × {small[1]} pixels.",
            "",
            *layer_table(light, small),
            "",
            "## Every setting, the paper's and the default's",
            "",
            "| setting | paper | default | why it differs |",
            "|---|---|---|---|",
            *(
                f"| `{name}` | {paper} | {light[name]} | {WHY_LIGHT[name] if paper != light[name] else ''} |"
                for name, paper in PAPER_SETTINGS.items()
            ),
            "",
            "## Where the paper leaves a choice",
            "",
            CHOICES,
        ]
    )


def layer_table(settings: dict[str, Any], size: tuple[int, int]) -> list[str]:
    """Rows of a Markdown table: part, module, output shape and parameters, in the order of the names."""
    with torch.device("meta"):  # shapes without numbers: nothing is computed
        network = CLNet(**settings).eval()
        shapes: dict[nn.Module, str] = {}
        for module in network.modules():
            module.register_forward_hook(lambda of, _, output: shapes.update({of: _shape(output)}))
        network(torch.empty(1, 2, *size))
    rows = [
        f"| `{name}` | {kind} | {shape} | {parameters:,} |"
        for name, kind, shape, parameters in _parts("", network, shapes, copies=1)
    ]
    return ["| part | made of | output | parameters |", "|---|---|---|---:|", *rows]


def _parts(
    path: str, module: nn.Module, shapes: dict[nn.Module, str], copies: int
) -> Iterator[tuple[str, str, str, int]]:
    """Every part below a module; of equal layers the first one stands for all, with the parameters of all."""
    for name, parameter in module.named_parameters(recurse=False):
        yield f"{path}{name}", "parameter", _shape(parameter), parameter.numel() * copies
    for name, child in module.named_children():
        number = len(child) if isinstance(child, nn.ModuleList) and _alike(child) else 1
        shown = child[0] if number > 1 else child  # type: ignore[index]
        if isinstance(shown, nn.ModuleList):
            yield from _parts(f"{path}{name}.", shown, shapes, copies)
            continue
        parameters = sum(parameter.numel() for parameter in shown.parameters()) * number * copies
        if not parameters:
            continue
        kind = type(shown).__name__ + (f" × {number}" if number > 1 else "")
        yield f"{path}{name}", kind, shapes.get(shown, ""), parameters
        if isinstance(shown, OPENED) or hasattr(shown, "layer4"):
            yield from _parts(f"{path}{name}.", shown, shapes, copies * number)


def _alike(layers: nn.ModuleList) -> bool:
    """Whether layers have the same parameters; one layer alone is no list."""
    forms = [[(name, p.shape) for name, p in layer.named_parameters()] for layer in layers]
    return len(forms) > 1 and all(form == forms[0] for form in forms)


def _shape(output: Any) -> str:
    if isinstance(output, Tensor):
        return "×".join(map(str, output.shape))
    if isinstance(output, ImageFeatures):
        return _shape(output.tokens)
    if isinstance(output, dict):
        return ", ".join(f"{name} {_shape(value)}" for name, value in output.items())
    return ", ".join(_shape(value) for value in output if value is not None)


def _size(settings: dict[str, Any]) -> str:
    with torch.device("meta"):
        parameters = sum(parameter.numel() for parameter in CLNet(**settings).parameters())
    return f"{parameters / 1e6:.2f} million parameters"


if __name__ == "__main__":
    sys.stdout.write(page())
