"""The light backbone: from a grey image to feature maps of strides 4, 8 and 16."""

from torch import Tensor, nn


class LightBackbone(nn.Module):
    """A small network of strides 4, 8 and 16, for small images and training from scratch on a CPU.

    Group norm, since it neither needs large batches nor weights that somebody trained before.
    """

    def __init__(self) -> None:
        super().__init__()
        self.channels: list[int] = [32, 48, 64]
        self.strides: list[int] = [4, 8, 16]
        self.stem = _light_stage(1, 16)
        self.stages = nn.ModuleList(
            _light_stage(below, above) for below, above in zip([16, 32, 48], self.channels, strict=True)
        )

    def forward(self, image: Tensor) -> list[Tensor]:
        """Grey images [B, 1, H, W] to three maps [B, channels[i], H / strides[i], W / strides[i]]."""
        x = self.stem(image)
        maps = []
        for stage in self.stages:
            x = stage(x)
            maps.append(x)
        return maps


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
