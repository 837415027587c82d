"""The shared image encoder: backbone, feature levels, and deformable self-attention between all cells."""

from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from clnet.networks.deformable_attention import DeformableAttention
from clnet.networks.feature_levels import FeatureLevels, ImageFeatures
from clnet.networks.feed_forward import FeedForward
from clnet.networks.layers import Residual
from clnet.networks.light import LightBackbone
from clnet.networks.positions import sine_positions

if TYPE_CHECKING:
    from clnet.networks.resnet import ResNetBackbone


class EncoderLayer(nn.Module):
    """Every cell reads from places around it in all levels, then a feed-forward network."""

    def __init__(self, width: int, heads: int, levels: int, points: int, ffn: int, dropout: float) -> None:
        super().__init__()
        self.attention = DeformableAttention(width, heads, levels, points)
        self.attention_residual = Residual(width, dropout)
        self.ffn = FeedForward(width, ffn, dropout)

    def forward(self, features: ImageFeatures, positions: Tensor, references: Tensor) -> ImageFeatures:
        """The same features with new tokens.

        Positions [B or 1, S, D], and references [B or 1, S, L, 2] in units of each level's map, say where
        they are.
        """
        tokens = features.tokens
        update = self.attention(tokens + positions, references, tokens, features.shapes, features.padding)
        return features._replace(tokens=self.ffn(self.attention_residual(tokens, update)))


class DeformableEncoder(nn.Module):
    """Encoder layers, and what tells the cells of one level from those of another."""

    def __init__(
        self, width: int, heads: int, levels: int, points: int, layers: int, ffn: int, dropout: float
    ) -> None:
        super().__init__()
        self.level_embedding = nn.Parameter(torch.empty(levels, width).normal_())
        self.layers = nn.ModuleList(
            EncoderLayer(width, heads, levels, points, ffn, dropout) for _ in range(layers)
        )

    def forward(self, features: ImageFeatures) -> ImageFeatures:
        """The same features with new tokens."""
        levels = [
            embedding.expand(rows * columns, -1)
            for embedding, (rows, columns) in zip(self.level_embedding.unbind(), features.shapes, strict=True)
        ]
        positions = sine_positions(features.centres, features.tokens.shape[-1]) + torch.cat(levels)
        # A cell's centre, in units of the valid image, taken to each level's whole map.
        references = features.centres[:, :, None] * features.valid_ratios[:, None]
        for layer in self.layers:
            features = layer(features, positions, references)
        return features


class ImageEncoder(nn.Module):
    """What the paper calls the shared backbone and feature encoder; it sees one image at a time."""

    def __init__(
        self,
        backbone: str,
        backbone_weights: str | Path | None,
        levels: int,
        width: int,
        heads: int,
        points: int,
        layers: int,
        ffn: int,
        dropout: float,
    ) -> None:
        super().__init__()
        self.backbone = _backbone(backbone, backbone_weights)
        self.levels = FeatureLevels(self.backbone.channels, levels, width)
        self.transformer = (
            DeformableEncoder(width, heads, levels, points, layers, ffn, dropout) if layers else None
        )

    def forward(self, images: Tensor, valid_size: Tensor | None = None) -> ImageFeatures:
        """Encode grey images.

        Args:
            images: [B, 1, H, W].
            valid_size: int [B, 2], (rows, columns) of the image within its canvas; None if it fills it.
        """
        size = (images.shape[-2], images.shape[-1])
        features = self.levels(self.backbone(images), size, valid_size)
        return features if self.transformer is None else self.transformer(features)


def _backbone(name: str, weights: str | Path | None) -> "LightBackbone | ResNetBackbone":
    if name == "light":
        return LightBackbone()
    from clnet.networks.resnet import ResNetBackbone  # MONAI's import takes longer than all of ours

    return ResNetBackbone(name, weights)
