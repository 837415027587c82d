"""The whole network: compared with Hugging Face's of the same size and weights; and the cost of a pair."""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from benchmarks.clocks import ROUNDS, take_turns, take_turns_apart, times_as_fast
from network_configs import build
from torch import Tensor, nn
from transformers_weights import deformable_detr, our_names

from clnet.networks import CLNet
from clnet.runs.allocator import keep_freed_memory

THEIR_SETTINGS = {
    "num_queries": 125,
    "d_model": 256,
    "dropout": 0.1,
    "activation_dropout": 0.1,
    "attention_dropout": 0.1,
    **{f"{part}_layers": 6 for part in ("encoder", "decoder")},
    **{f"{part}_ffn_dim": 1024 for part in ("encoder", "decoder")},
    **{f"{part}_attention_heads": 8 for part in ("encoder", "decoder")},
    **{f"{part}_n_points": 4 for part in ("encoder", "decoder")},
}
SINGLE_VIEW = ("clnet", "paper", "deformable_detr")  # configs over train.yaml
SMALL, LARGE = (512, 256), (1024, 512)
SIDES = ("ours", "transformers")
KINDS = {
    "inference": ("inference", False),
    "inference_memory_kept": ("inference", True),
    "training_step": ("training", False),
    "training_step_memory_kept": ("training", True),
}
"""What is measured, and whether transformers keeps the memory that it frees, as the bundle's runs do."""


def same_networks() -> tuple[CLNet, nn.Module]:
    """Ours, one view at a time, and theirs; with the same weights, the same of them frozen."""
    torch.manual_seed(0)
    theirs = deformable_detr(4, box_refinement=False, resnet50=True, sizes=THEIR_SETTINGS)
    ours = build(*SINGLE_VIEW).eval()
    ours.load_state_dict(our_names(theirs))
    for part in ("conv1", "layer1"):
        ours.get_submodule(f"encoder.backbone.{part}").requires_grad_(False)
    for name, parameter in theirs.model.backbone.named_parameters():
        parameter.requires_grad_("stages" in name and "stages.0" not in name)
    return ours, theirs


def outputs_of(side: str, network: nn.Module, image: Tensor) -> list[Tensor]:
    """Logits and boxes of two images [1, 2, rows, columns], in one form for both sides."""
    if side == "ours":
        outputs = network(image)
        return [outputs["logits"][-1].flatten(0, 1), outputs["boxes"][-1].flatten(0, 1)]
    found = network(image.flatten(0, 1)[:, None])
    return [found.logits.squeeze(-1), found.pred_boxes]


def make_run(side: str, kind: str, size: tuple[int, int], memory_kept: bool) -> Callable[[], object]:
    """Inference or a training step of one side, one thread; a loss that costs nothing."""
    if memory_kept:
        keep_freed_memory()
    torch.set_num_threads(1)
    network = dict(zip(SIDES, same_networks(), strict=True))[side]
    image = torch.rand(1, 2, *size)
    if kind == "inference":
        return torch.inference_mode()(lambda: outputs_of(side, network, image))
    network.train()

    def step() -> None:
        network.zero_grad()
        outputs = outputs_of(side, network, image)
        torch.stack([output.square().mean() for output in outputs]).sum().backward()

    return step


def network(size: tuple[int, int], rounds: int) -> dict[str, Any]:
    """Two images at a time; each side in its own process, without the other's memory."""
    torch.set_num_threads(1)
    image = torch.rand(1, 2, *size)
    with torch.inference_mode():
        sides = zip(SIDES, same_networks(), strict=True)
        found = [outputs_of(side, network, image) for side, network in sides]
    result: dict[str, Any] = {
        "greatest_difference": max((a - b).abs().max().item() for a, b in zip(*found, strict=True))
    }
    for name, (kind, memory_kept) in KINDS.items():
        makers = {side: partial(make_run, side, kind, size, memory_kept or side == "ours") for side in SIDES}
        result[name] = take_turns_apart(makers, rounds)
        result[f"{name}_times_as_fast"] = times_as_fast(result[name], *SIDES)
    return result


def network_small() -> dict[str, Any]:
    """At 512×256."""
    return network(SMALL, ROUNDS["512x256"])


def network_large() -> dict[str, Any]:
    """At 1024×512."""
    return network(LARGE, ROUNDS["1024x512"])


def pair() -> dict[str, Any]:
    """The cost of a pair in CL-Net, as a multiple of two images in the single-view network."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    image = torch.rand(1, 2, *SMALL)
    clnet, single = build("clnet", "paper").eval(), build(*SINGLE_VIEW).eval()
    with torch.inference_mode():
        times = take_turns({"pair": lambda: clnet(image), "two_images": lambda: single(image)}, rounds=5)
    return {**times, "pair_over_two_images": times_as_fast(times, "two_images", "pair")}
