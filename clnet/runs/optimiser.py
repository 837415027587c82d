"""Which parameters learn how fast (Section 4.1: Deformable DETR's factors, and 0.25 for the linker)."""

from typing import Any

from torch import nn

# The first word that occurs in a parameter's name decides its group.
GROUP_WORDS = {
    "backbone": ("backbone",),
    "sampling": ("sampling_offsets", "reference_points"),
    "matcher": ("matcher",),
}


def parameter_groups(
    network: nn.Module,
    lr: float,
    backbone_factor: float = 0.1,
    sampling_factor: float = 0.1,
    matcher_factor: float = 0.25,
) -> list[dict[str, Any]]:
    """Groups for an optimiser, each with its name and learning rate.

    Args:
        network: parameters that do not learn are left out; so are empty groups.
        lr: the base learning rate.
        backbone_factor: on the backbone. 0.1 suits one that was trained before.
        sampling_factor: on sampling offsets and reference points.
        matcher_factor: on the matcher, such as the lesion linker.
    """
    factors = {
        "backbone": backbone_factor,
        "sampling": sampling_factor,
        "matcher": matcher_factor,
        "other": 1.0,
    }
    groups: dict[str, dict[str, Any]] = {
        name: {"name": name, "params": [], "lr": lr * factor} for name, factor in factors.items()
    }
    for parameter_name, parameter in network.named_parameters():
        if parameter.requires_grad:
            groups[_group_of(parameter_name)]["params"].append(parameter)
    return [group for group in groups.values() if group["params"]]


def _group_of(parameter: str) -> str:
    for group, words in GROUP_WORDS.items():
        if any(word in parameter for word in words):
            return group
    return "other"
