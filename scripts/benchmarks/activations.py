"""What a training step on a GPU keeps for the gradients, in bytes per pair.

Counted by hooks on tensors without content, so that no GPU is needed and nothing is computed.
"""

from typing import Any

import torch
from network_configs import build, parse
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode

from clnet.networks import CLNet
from clnet.ops.deformable_attention import deformable_attention
from clnet.ops.winograd import WinogradConv2d

WAYS = [(amp, checkpointing) for checkpointing in (False, True) for amp in (False, True)]


def kept_bytes(network: nn.Module, image: Tensor, *inputs: Tensor, amp: bool = False) -> int:
    """Bytes that a forward pass keeps for the gradients, weights aside; what is kept twice counts once."""
    weights = {weight.untyped_storage()._cdata for weight in network.parameters()}
    kept: dict[int, Tensor] = {}

    def keep(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()._cdata
        if storage not in weights:
            kept[storage] = tensor
        return tensor

    with (
        torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor),
        torch.autocast(image.device.type, torch.bfloat16, enabled=amp),
    ):
        network(image, *inputs)
    return sum(tensor.untyped_storage().nbytes() for tensor in kept.values())


def as_on_gpu(checkpointing: bool) -> CLNet:
    """The paper's network in training, stem and first stage fixed, as with ImageNet's weights."""
    network = build("clnet", "paper", checkpointing=checkpointing).train()
    for part in ("conv1", "layer1"):
        network.get_submodule(f"encoder.backbone.{part}").requires_grad_(False)
    for module in network.modules():
        if isinstance(module, WinogradConv2d):  # which is for CPUs
            module.__class__ = nn.Conv2d  # type: ignore[assignment]
    return network


def activations() -> dict[str, Any]:
    """The paper's network with one pair of each size, in every way."""
    one = torch.zeros(1, 1, 1, 1, 1, 2)
    deformable_attention(one[..., 0, 0], [(1, 1)], one[0, 0], one, one[..., 0])  # compiles the kernel
    result: dict[str, Any] = {"state": training_state()}
    for rows, columns in ((512, 256), (1024, 512)):
        ways = result[f"{rows}x{columns}"] = {}
        for amp, checkpointing in WAYS:
            name = ("bfloat16" if amp else "float32") + (", checkpointing" if checkpointing else "")
            with FakeTensorMode(allow_non_fake_inputs=True):
                image = torch.empty(1, 2, rows, columns)
                ways[name] = kept_bytes(as_on_gpu(checkpointing), image, amp=amp)
    return result


def training_state() -> dict[str, int]:
    """Bytes of weights, gradients and AdamW's two moments; and the pairs per GPU of `paper.yaml`."""
    settings = parse("clnet", "paper")
    parameters = settings.get_parsed_content("network_def").parameters()
    state = sum(4 * weight.nbytes for weight in parameters)
    return {"bytes": state, "pairs": settings.get_parsed_content("batch_size")}
