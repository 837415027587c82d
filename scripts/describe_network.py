"""Write docs/network.md: what the networks are made of, and how they differ from the paper.

Run ``python scripts/describe_network.py > docs/network.md``.
"""

import sys
from collections.abc import Iterator
from typing import Any

import torch
from network_configs import build, parse
from torch import Tensor, nn

from clnet.networks import (
    CLNet,
    DetectorOutputs,
    GeometricLinker,
    ImageEncoder,
    LesionLinker,
    LightBackbone,
    ProposalDetector,
    ViewInteractiveDetector,
)
from clnet.networks.detector import DecoderLayer
from clnet.networks.encoder import DeformableEncoder, EncoderLayer
from clnet.networks.feature_levels import ImageFeatures
from clnet.networks.geometry import GeometricInterAttention, ViewGeometry
from clnet.networks.lesion_linker import LinkerLayer
from clnet.networks.proposals import ProposalHead

OPENED = (
    CLNet,
    ImageEncoder,
    DeformableEncoder,
    EncoderLayer,
    ViewInteractiveDetector,
    DecoderLayer,
    LesionLinker,
    LinkerLayer,
    LightBackbone,
    ProposalDetector,
    ProposalHead,
    GeometricInterAttention,
    GeometricLinker,
    ViewGeometry,
)
"""Modules whose parts have rows of their own, with the ResNet."""

SHARED = ("width", "heads", "levels", "points", "ffn", "dropout", "object_queries")
"""Settings at the top of the config, which several parts refer to."""

WHY_LIGHT = {
    "encoder#backbone": "learns from scratch within minutes on a CPU; no ImageNet weights are needed",
    "levels": "strides 4, 8 and 16: masses of a small image are small, too",
    "width": "fewer parameters for a small data set",
    "heads": "16 channels per head",
    "encoder#layers": "one nearly doubles the time of a training; mammograms gain little (MELBA 2025:009)",
    "detector#layers": "cost",
    "ffn": "twice the width",
    "dropout": "a short training from scratch needs none",
    "object_queries": "cost; still many times the lesions of a breast",
    "detector#box_refinement": "boxes settle in fewer steps",
    "matcher#layers": "cost; the paper's own ablation loses 1.0 at R@0.25 with 1 in place of 3. In a first "
    "layer link queries cannot yet tell one another what they have read",
}
"""Why the phantom's network takes another value than the paper's."""

CHOICES = [
    (
        "place of the inter-attention",
        '"at the end of each transformer decoder block", on "embeddings output by cross-attention layer"',
        "at the end of the block, after the feed-forward network",
    ),
    (
        "norm and dropout in inter-attention and linker",
        "equations show the residual only",
        "residual, dropout, post-norm, as in the rest of the decoder",
    ),
    ("inter-attention from CC to MLO and back", "one symbol M", "one set of weights for both directions"),
    ("two sets of object queries", "not said how", "one learned embedding per view, all else is shared"),
    ("position of the dustbin", "not said", "a learned vector of its own"),
    ("heads of the linker", "three FFN layers", "three 3-layer MLPs, as in HOTR; scores begin at 1%"),
    (
        "box refinement of Deformable DETR",
        "not said",
        "a setting; off in `paper.yaml`, on in `clnet.yaml`",
    ),
    (
        "where the linker learns of places",
        "from the queries' learned positions, by which they begin",
        "the same, although with box refinement boxes end elsewhere",
    ),
    (
        "temperature of the cross-entropy over similarities",
        "none",
        "0.1, a setting of the loss. The paper follows HOTR, whose code divides by one (0.05 to 0.2). "
        "Without, which is `temperature 1`, the right one of 126 candidates can have at most 5.6% of the "
        "probability",
    ),
    ("pair score in the matching cost", "s", "its sigmoid, since the cost takes a power of it"),
    (
        "loss of the linker's earlier layers",
        "not said",
        "as in HOTR the same loss, against detections of the last decoder layer, added up, so that 3 linker "
        "layers weigh three times against L_D; `auxiliary` of the loss",
    ),
    (
        "normaliser of L_Link",
        "a sum over link queries",
        "that sum over the number of lesions in the batch, as L_D is over the number of boxes",
    ),
    (
        "a missing view",
        "not treated",
        "inter-attention to it is left out, the linker sees its dustbin alone, the loss nothing of it",
    ),
    (
        "grey images with ImageNet weights",
        "not said",
        "`--backbone_weights` names the file; its first convolution is summed over colours, which equals "
        "showing the image in all three",
    ),
    ("size of the images, length of the warm-up", "not said", "1024 × 512 and 1,000 steps in `paper.yaml`"),
    ("MLP of Pair Verification", "one symbol MLP", "one set of weights for both views"),
    (
        "Paired Lesion Query, a lesion seen in one view",
        "not said",
        "costs what it costs in that view; its score in the other view is taught to be 0",
    ),
]
"""Where the text leaves a choice, and what is done."""

BEYOND = [
    (
        "where object queries begin",
        "learned vectors, the same for every image",
        "at the 30 best of the boxes that the cells of the image propose, as in two-stage Deformable DETR; "
        "of neighbouring cells the best alone",
        "ProposalHead, networks/proposals.py",
    ),
    (
        "what teaches the image encoder",
        "one query per lesion",
        "also up to 9 cells per lesion, those in its middle",
        "ProposalLoss, losses/proposal.py",
    ),
    (
        "positions of queries",
        "learned, by where a query begins",
        "sines of the box that the layer refines, with periods down to 1/64 of the canvas",
        "BoxPosition, networks/proposals.py",
    ),
    (
        "inter-attention",
        "by embeddings and learned positions",
        "−g, what depth, row and size say against two boxes, added to its logits; and a learned ∅, nothing "
        "there, among what can be read",
        "GeometricInterAttention, networks/geometry.py",
    ),
    (
        "candidates for links",
        "16 link queries",
        "every detection of either view with its best partner, or with the dustbin",
        "GeometricLinker, networks/geometric_linker.py",
    ),
    (
        "what teaches links",
        "link queries matched with lesions, λ_sim L_sim + λ_cls L_cls",
        "the cross-entropy of the right partner, or of the dustbin, for the detections of lesions",
        "PartnerLoss, losses/link.py",
    ),
]
"""What Geometric CL-Net does in place of the paper, and where."""


def page(size: tuple[int, int] = (1024, 512)) -> str:
    """The whole of docs/network.md, for one breast with images of (rows, columns)."""
    paper, light = settings("clnet", "paper"), settings("clnet")
    small, film = (160, 96), tuple(parse("film")["size"])
    return "\n".join(
        [
            "# The networks",
            "",
            "![Both views pass one backbone; object queries of the two views attend to each other; link "
            "queries point at detections](images/method.png)",
            "",
            "`CLNet(encoder, detector, matcher)`: three parts, each named by its class in the config. This "
            "page is generated by `python scripts/describe_network.py > docs/network.md`.",
            "",
            "## The paper's size",
            "",
            f"`paper.yaml`, {_size('clnet', 'paper')}. Shapes are those of one breast with images of "
            f"{size[0]} × {size[1]} pixels; its two views pass encoder and detector as a batch of 2.",
            "",
            *layer_table(size, "clnet", "paper"),
            "",
            "## The small network",
            "",
            f"`clnet.yaml`, {_size('clnet')}, at {small[0]} × {small[1]} pixels.",
            "",
            *layer_table(small, "clnet"),
            "",
            "## Geometric CL-Net",
            "",
            f"`film.yaml`, {_size('film')}, at {film[0]} × {film[1]} pixels; that of `train.yaml` has the "
            f"same parts and {_size()}. Equations and reasons are in "
            "[method.md](method.md#beyond-the-paper-geometric-cl-net).",
            "",
            *layer_table(film, "film"),
            "",
            "What differs from the paper:",
            "",
            "| point | the paper | Geometric CL-Net | where |",
            "|---|---|---|---|",
            *(
                f"| {point} | {paper_has} | {here} | {_source(where)} |"
                for point, paper_has, here, where in BEYOND
            ),
            "",
            "## Every setting, in paper.yaml and in clnet.yaml",
            "",
            "Set one from the command line by its name: `--width 128`, `--network_def#encoder#layers 1`.",
            "",
            "| setting | paper.yaml | clnet.yaml | why it differs |",
            "|---|---|---|---|",
            *(
                f"| `{_option(name)}` | {value} | {light[name]} | "
                f"{WHY_LIGHT[name] if value != light[name] else ''} |"
                for name, value in paper.items()
            ),
            "",
            "## Where the paper leaves a choice",
            "",
            "| point | the paper | here |",
            "|---|---|---|",
            *(f"| {point} | {paper} | {here} |" for point, paper, here in CHOICES),
            "",
        ]
    )


def settings(*names: str) -> dict[str, Any]:
    """Every setting of the network that these configs give a value of its own, by its path."""
    parser = parse(*names)
    shared = {name: parser[name] for name in SHARED}
    return {**shared, **dict(_leaves(parser["network_def"]))}


def _leaves(config: dict[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in config.items():
        if name == "backbone":
            yield f"{path}{name}", value.get("name", value["_target_"].rpartition(".")[2])
        elif isinstance(value, dict):
            yield from _leaves(value, f"{path}{name}#")
        elif not name.startswith("_") and not str(value).startswith("@"):
            yield f"{path}{name}", value


def _source(where: str) -> str:
    name, path = where.split(", ")
    return f"`{name}`, [`{path}`](../clnet/{path})"


def _option(name: str) -> str:
    return f"--{name}" if name in SHARED else f"--network_def#{name}"


def layer_table(size: tuple[int, int], *names: str) -> list[str]:
    """Rows of a Markdown table: part, module, output shape and parameters, in the order of the names."""
    with torch.device("meta"):  # shapes without numbers: nothing is computed
        network = build(*names).eval()
        shapes: dict[nn.Module, str] = {}
        for module in network.modules():
            module.register_forward_hook(lambda of, _, output: shapes.update({of: _shape(output)}))
        network(torch.empty(1, 2, *size))
    rows = [
        f"| `{name}` | {kind} | {shape or 'that of its norm'} | {parameters:,} |"
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
        if isinstance(shown, OPENED) or hasattr(shown, "layer1"):
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
    if isinstance(output, DetectorOutputs):
        return _shape(output[:4])  # logits, boxes, embeddings, positions
    if isinstance(output, dict):
        return ", ".join(f"{name} {_shape(value)}" for name, value in output.items())
    return ", ".join(_shape(value) for value in output if value is not None)


def _size(*names: str) -> str:
    with torch.device("meta"):
        parameters = sum(parameter.numel() for parameter in build(*names).parameters())
    return f"{parameters / 1e6:.2f} million parameters"


if __name__ == "__main__":
    sys.stdout.write(page())
