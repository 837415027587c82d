"""From a grey image to feature maps at three strides: the choice of a backbone, and the light one."""

from pathlib import Path
from typing import TYPE_CHECKING

from torch import Tensor, nn

from clnet.errors import ClnetError

if TYPE_CHECKING:
    from clnet.networks.resnet import ResNetBackbone

RESNETS = ("resnet18", "resnet34", "resnet50")


class BackboneError(ClnetError):
    """The backbone has no such name, or the file of weights does not fit it."""


class LightBackbone(nn.Module):
    """A small network of strides 4, 8 and 16, for small images and training from scratch on a CPU.

    Group norm, since it neither needs large batches nor weights that somebody trained before.
    """

    def __init__(self) -> None:
        super().__init__()
        self.channels: list[int] = [32, 48, 64]
        self.stem = _light_stage(1, 16)
        self.stages = nn.ModuleList(
            _light_stage(below, above) for below, above in zip([16, 32, 48], self.channels, strict=True)
        )

    def forward(self, image: Tensor) -> list[Tensor]:
        """Grey images [B, 1, H, W] to three maps [B, channels[i], H / stride, W / stride]."""
        x = self.stem(image)
        maps = []
        for stage in self.stages:
            x = stage(x)
            maps.append(x)
        return maps


def make_backbone(name: str, weights: str | Path | None = None) -> "ResNetBackbone | LightBackbone":
    """The backbone of that name: "light", or a ResNet with weights from a file (or none)."""
    if name in RESNETS:
        from clnet.networks.resnet import ResNetBackbone  # MONAI's import takes longer than all of ours

        return ResNetBackbone(name, weights)
    if name != "light":
        raise BackboneError(f"backbone: no backbone is called {name!r}; choose light, {', '.join(RESNETS)}")
    if weights is not None:
        raise BackboneError(
            f"backbone_weights: {weights} cannot be used, the light backbone learns from scratch"
        )
    return LightBackbone()


def _light_stage(below: int, above: int) -> nn.Sequential:
    """Halve the resolution, then look once more."""
    return nn.Sequential(
        nn.Conv2d(below, above, 3, stride=2, padding=1, bias=False),
        nn.GroupNorm(8, above),
        nn.ReLU(),
        nn.Conv2d(above, above, 3, padding=1, bias=False),
        nn.GroupNorm(8, above),
        nn.ReLU(),
    )
