"""ResNets with torchvision's names, for grey images, as Deformable DETR uses them."""

import pickle
from collections.abc import Sequence
from pathlib import Path

import torch
from monai.networks.nets.resnet import ResNet, ResNetBlock, ResNetBottleneck
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from clnet.errors import ClnetError
from clnet.ops.winograd import use_winograd

EPSILON = 1e-5
LAYOUTS: dict[str, tuple[type[ResNetBlock | ResNetBottleneck], list[int]]] = {
    "resnet18": (ResNetBlock, [2, 2, 2, 2]),
    "resnet34": (ResNetBlock, [3, 4, 6, 3]),
    "resnet50": (ResNetBottleneck, [3, 4, 6, 3]),
}
PLANES = [64, 128, 256, 512]
STRIDES = [4, 8, 16, 32]


class BackboneError(ClnetError):
    """There is no such ResNet or stage, or the file of weights does not fit."""


class FrozenBatchNorm2d(nn.Module):
    """Batch norm whose statistics and scale stay as ImageNet left them: batches here are too small."""

    weight: Tensor
    bias: Tensor
    running_mean: Tensor
    running_var: Tensor

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.register_buffer("weight", torch.ones(channels))
        self.register_buffer("bias", torch.zeros(channels))
        self.register_buffer("running_mean", torch.zeros(channels))
        self.register_buffer("running_var", torch.ones(channels))

    def forward(self, x: Tensor) -> Tensor:
        """[B, C, H, W] to the same shape."""
        scale = self.weight * (self.running_var + EPSILON).rsqrt()
        shift = self.bias - self.running_mean * scale
        # Unlike `F.batch_norm`, this keeps no copy of x for the backward pass.
        return torch.addcmul(shift.to(x.dtype)[:, None, None], x, scale.to(x.dtype)[:, None, None])


class ResNetBackbone(ResNet):
    """The outputs of some stages of a ResNet: C3, C4 and C5 by default, of strides 8, 16 and 32.

    With weights from a file, the stem and the first stage keep them, as in Deformable DETR. Without,
    everything but the norms learns; that is meant for networks whose checkpoint is loaded next, not for
    training from scratch, where `LightBackbone` serves better.

    Args:
        name: resnet18, resnet34 or resnet50.
        weights: a file with torchvision's state dict of that network, or None; later stages than those used
            may be missing from it.
        stages: those whose outputs are given, rising from 1 to 4; what comes after the last is left out.
        checkpointing: whether training keeps only what enters each block, and computes the rest again for
            the gradients: less memory, more time.
    """

    def __init__(
        self,
        name: str,
        weights: str | Path | None = None,
        stages: Sequence[int] = (2, 3, 4),
        checkpointing: bool = False,
    ) -> None:
        if name not in LAYOUTS:
            raise BackboneError(f"name: no ResNet is called {name!r}; choose {', '.join(LAYOUTS)}")
        if not stages or list(stages) != sorted(set(stages) & {1, 2, 3, 4}):
            raise BackboneError(f"stages: {list(stages)} must be one or more of 1, 2, 3, 4, in rising order")
        block, depths = LAYOUTS[name]
        super().__init__(
            block,
            depths,
            PLANES,
            spatial_dims=2,
            n_input_channels=1,
            conv1_t_stride=2,
            feed_forward=False,
            bias_downsample=False,
        )
        self.checkpointing = checkpointing
        self.stages = tuple(stages)
        self.channels: list[int] = [PLANES[stage - 1] * block.expansion for stage in stages]
        self.strides: list[int] = [STRIDES[stage - 1] for stage in stages]
        for unused in range(self.stages[-1] + 1, 5):
            delattr(self, f"layer{unused}")
        _freeze_batch_norm(self)
        use_winograd(self)
        if weights is not None:
            self.load_state_dict(read_imagenet_weights(Path(weights), self.state_dict()))
            self.conv1.requires_grad_(False)
            self.layer1.requires_grad_(False)

    def forward(self, image: Tensor) -> list[Tensor]:  # type: ignore[override]  # the base gives one vector
        """Grey images [B, 1, H, W] to one map per stage, [B, channels[i], H / strides[i], W / strides[i]]."""
        # Channels side by side: convolution and pooling are faster on CPU, in the stem several times.
        image = image.to(memory_format=torch.channels_last)
        x = self.maxpool(self.act(self.bn1(self.conv1(image))))
        maps = []
        for stage in range(1, self.stages[-1] + 1):
            for block in self.get_submodule(f"layer{stage}").children():
                if self.checkpointing and self.training and learns(block):
                    x = checkpoint(block, x, use_reentrant=False)
                else:
                    x = block(x)
            if stage in self.stages:
                maps.append(x)
        return maps


def read_imagenet_weights(file: Path, expected: dict[str, Tensor]) -> dict[str, Tensor]:
    """Read a ResNet's state dict in torchvision's names, for grey images.

    A grey image shown to a colour network is the same plane three times, so the first convolution gives the
    same as one whose kernels are summed over the three colours: that sum is what is returned.

    Args:
        file: the state dict, as saved by `torch.save`.
        expected: names and shapes that the network needs.

    Returns:
        The tensors of `expected`'s names.
    """
    try:
        state = torch.load(file, map_location="cpu", weights_only=True)
    except (OSError, RuntimeError, EOFError, pickle.UnpicklingError) as error:
        raise BackboneError(f"weights: {file} cannot be read as a state dict: {error}") from error
    if not isinstance(state, dict) or not isinstance(state.get("conv1.weight"), Tensor):
        raise BackboneError(
            f"weights: {file} holds no tensor conv1.weight; give the state dict of a torchvision ResNet"
        )
    if state["conv1.weight"].shape[1] == 3:
        state["conv1.weight"] = state["conv1.weight"].sum(dim=1, keepdim=True)
    for name, tensor in expected.items():
        found = tuple(state[name].shape) if name in state else "nothing"
        if found != tuple(tensor.shape):
            raise BackboneError(
                f"weights: {file} has {found} at {name}, {tuple(tensor.shape)} is needed; "
                "is it the state dict of the same ResNet?"
            )
    return {name: state[name] for name in expected}


def learns(module: nn.Module) -> bool:
    """Whether any of its weights does."""
    return any(parameter.requires_grad for parameter in module.parameters())


def _freeze_batch_norm(module: nn.Module) -> None:
    for name, child in module.named_children():
        if isinstance(child, nn.BatchNorm2d):
            setattr(module, name, FrozenBatchNorm2d(child.num_features))
        else:
            _freeze_batch_norm(child)
