"""ResNets with torchvision's names, for grey images, as Deformable DETR uses them."""

import pickle
from pathlib import Path
from typing import cast

import torch
from monai.networks.nets.resnet import ResNet, ResNetBlock, ResNetBottleneck
from torch import Tensor, nn
from torch.nn import functional as F

from clnet.networks.backbone import BackboneError
from clnet.ops.winograd import takes_winograd, winograd_convolution

EPSILON = 1e-5


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

    def convolve(self, convolution: nn.Conv2d, x: Tensor, stride: int | None = None) -> Tensor:
        """The norm of the convolution, in its kernels or on its output, whichever is less.

        Another stride than the convolution's may be given.
        """
        scale = self.weight * (self.running_var + EPSILON).rsqrt()
        shift = self.bias - self.running_mean * scale
        kernels, steps, padding = convolution.weight, stride or convolution.stride, convolution.padding
        if takes_winograd(x, convolution):
            out = winograd_convolution(x, kernels)
        elif kernels[0].numel() <= x.shape[-2] * x.shape[-1]:
            # Scaled kernels, and the shift as their bias: the norm is for free where the map is large.
            return F.conv2d(x, kernels * scale[:, None, None, None], shift, steps, padding)
        else:
            out = F.conv2d(x, kernels, None, steps, padding)
        return torch.addcmul(shift[:, None, None], out, scale[:, None, None])


class Block(ResNetBlock):
    """Two convolutions of 3×3, added to what they were made from."""

    def forward(self, x: Tensor) -> Tensor:
        """[B, C, H, W] to [B, planes, H / stride, W / stride]."""
        out = self.bn1.convolve(self.conv1, x).relu_()
        return self.bn2.convolve(self.conv2, out).add_(_shortcut(self, x)).relu_()


class Bottleneck(ResNetBottleneck):
    """A convolution of 3×3 between two of 1×1, added to what they were made from."""

    def forward(self, x: Tensor) -> Tensor:
        """[B, C, H, W] to [B, 4 · planes, H / stride, W / stride]."""
        out = self.bn1.convolve(self.conv1, x).relu_()
        out = self.bn2.convolve(self.conv2, out).relu_()
        return self.bn3.convolve(self.conv3, out).add_(_shortcut(self, x)).relu_()


def _shortcut(block: Block | Bottleneck, x: Tensor) -> Tensor:
    if block.downsample is None:
        return x
    convolution, norm = cast(tuple[nn.Conv2d, FrozenBatchNorm2d], block.downsample)  # a Sequential of both
    # What a stride passes over is left out before: PyTorch's 1×1 convolution is quick without one.
    rows, columns = convolution.stride
    return norm.convolve(convolution, x[:, :, ::rows, ::columns], stride=1)


LAYOUTS: dict[str, tuple[type[Block | Bottleneck], list[int]]] = {
    "resnet18": (Block, [2, 2, 2, 2]),
    "resnet34": (Block, [3, 4, 6, 3]),
    "resnet50": (Bottleneck, [3, 4, 6, 3]),
}
PLANES = [64, 128, 256, 512]


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
        # Channels side by side: convolution and pooling are faster on CPU, in the stem several times.
        image = image.to(memory_format=torch.channels_last)
        x = self.layer1(self.maxpool(self.bn1.convolve(self.conv1, image).relu_()))
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
