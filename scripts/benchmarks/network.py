"""The whole network: against Hugging Face's of the same size and weights; and what a pair costs."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from clocks import take_turns, times_as_fast
from torch import Tensor, nn

from clnet.networks import PAPER_SETTINGS, CLNet

sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "networks"))
from transformers_weights import deformable_detr, our_names

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
SINGLE_VIEW = {"inter_attention": False, "match_learning": "none"}
SMALL, LARGE = (512, 256), (1024, 512)


def same_networks() -> tuple[CLNet, nn.Module]:
    """Ours without anything between views, and theirs; the same weights, the same of them frozen."""
    torch.manual_seed(0)
    theirs = deformable_detr(4, box_refinement=False, resnet50=True, sizes=THEIR_SETTINGS)
    ours = CLNet(**PAPER_SETTINGS | SINGLE_VIEW).eval()
    ours.load_state_dict(our_names(theirs))
    for part in (ours.encoder.backbone.conv1, ours.encoder.backbone.layer1):
        part.requires_grad_(False)
    for name, parameter in theirs.model.backbone.named_parameters():
        parameter.requires_grad_("stages" in name and "stages.0" not in name)
    return ours, theirs


def step(network: nn.Module, run: Callable[[], list[Tensor]]) -> None:
    """Forward and backward, by a loss that costs nothing."""
    network.zero_grad()
    torch.stack([output.square().mean() for output in run()]).sum().backward()


def network(rows: int, columns: int, rounds: int) -> dict[str, Any]:
    """Two images at a time, one thread."""
    torch.set_num_threads(1)
    ours, theirs = same_networks()
    image = torch.rand(1, 2, rows, columns)

    def run_ours() -> list[Tensor]:
        outputs = ours(image)
        return [outputs["logits"][-1].flatten(0, 1), outputs["boxes"][-1].flatten(0, 1)]

    def run_theirs() -> list[Tensor]:
        outputs = theirs(image.flatten(0, 1)[:, None])
        return [outputs.logits.squeeze(-1), outputs.pred_boxes]

    with torch.inference_mode():
        outputs = zip(run_ours(), run_theirs(), strict=True)
        difference = max((a - b).abs().max().item() for a, b in outputs)
        inference = take_turns({"ours": run_ours, "transformers": run_theirs}, rounds)
    ours.train()
    theirs.train()
    training = take_turns(
        {"ours": lambda: step(ours, run_ours), "transformers": lambda: step(theirs, run_theirs)}, rounds
    )
    return {
        "inference": inference,
        "inference_times_as_fast": times_as_fast(inference, "ours", "transformers"),
        "training_step": training,
        "training_step_times_as_fast": times_as_fast(training, "ours", "transformers"),
        "greatest_difference": difference,
    }


def network_small() -> dict[str, Any]:
    """At 512×256."""
    return network(*SMALL, rounds=5)


def network_large() -> dict[str, Any]:
    """At 1024×512."""
    return network(*LARGE, rounds=1)


def pair() -> dict[str, Any]:
    """What a pair costs in CL-Net, as a multiple of two images in the network without a second view."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    image = torch.rand(1, 2, *SMALL)
    clnet, single = CLNet(**PAPER_SETTINGS).eval(), CLNet(**PAPER_SETTINGS | SINGLE_VIEW).eval()
    with torch.inference_mode():
        times = take_turns({"pair": lambda: clnet(image), "two_images": lambda: single(image)}, rounds=5)
    return {**times, "pair_over_two_images": times_as_fast(times, "two_images", "pair")}
