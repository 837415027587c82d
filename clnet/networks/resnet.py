"""ResNets with torchvision's names, for grey images, as Deformable DETR uses them."""

import pickle
from pathlib import Path

import torch
from monai.networks.nets.resnet import ResNet, ResNetBlock, ResNetBottleneck
from torch import Tensor, nn
from torch.nn import functional as F

from clnet.networks.backbone import BackboneError

LAYOUTS: dict[str, tuple[type[ResNetBlock | ResNetBottleneck], list[int]]] = {
    "resnet18": (ResNetBlock, [2, 2, 2, 2]),
    "resnet34": (ResNetBlock, [3, 4, 6, 3]),
    "resnet50": (ResNetBottleneck, [3, 4, 6, 3]),
}
PLANES = [64, 128, 256, 512]


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
        """[B, C, H, W] to [B, C, H, W]."""
        return F.batch_norm(x, self.running_mean, self.running_var, self.weight, self.bias)


class ResNetBackbone(ResNet):
    """C3, C4 and C5 of a ResNet: strides 8, 16 and 32.

    With weights from a file, the stem and the first stage keep them, as in Deformable DETR. Without,
    everything but the norms learns; that is meant for networks whose checkpoint is loaded next, not for
    training from scratch, where `LightBackbone` serves better.

    Args:
        name: resnet18, resnet34 or resnet50.
        weights: a file with torchvision's state dict of that network, or None.
    """

    def __init__(self, name: str, weights: str | Path | None = None) -> None:
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
        self.channels: list[int] = [planes * block.expansion for planes in PLANES[1:]]
        _freeze_batch_norm(self)
        if weights is not None:
            self.load_state_dict(read_imagenet_weights(Path(weights), self.state_dict()))
            self.conv1.requires_grad_(False)
            self.layer1.requires_grad_(False)

    def forward(self, image: Tensor) -> list[Tensor]:  # type: ignore[override]  # the base gives one vector
        """Grey images [B, 1, H, W] to three maps [B, channels[i], H / stride, W / stride]."""
        x = self.layer1(self.maxpool(self.act(self.bn1(self.conv1(image)))))
        c3 = self.layer2(x)
        c4 = self.layer3(c3)
        return [c3, c4, self.layer4(c4)]


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
        raise BackboneError(f"backbone_weights: {file} cannot be read as a state dict: {error}") from error
    if not isinstance(state, dict) or not isinstance(state.get("conv1.weight"), Tensor):
        raise BackboneError(
            f"backbone_weights: {file} holds no tensor conv1.weight; "
            "give the state dict of a torchvision ResNet"
        )
    if state["conv1.weight"].shape[1] == 3:
        state["conv1.weight"] = state["conv1.weight"].sum(dim=1, keepdim=True)
    for name, tensor in expected.items():
        found = tuple(state[name].shape) if name in state else "nothing"
        if found != tuple(tensor.shape):
            raise BackboneError(
                f"backbone_weights: {file} has {found} at {name}, {tuple(tensor.shape)} is needed; "
                "is it the state dict of the same ResNet?"
            )
    return {name: state[name] for name in expected}


def _freeze_batch_norm(module: nn.Module) -> None:
    for name, child in module.named_children():
        if isinstance(child, nn.BatchNorm2d):
            setattr(module, name, FrozenBatchNorm2d(child.num_features))
        else:
            _freeze_batch_norm(child)
