"""The shared image encoder: backbone, feature levels, and deformable self-attention between all cells."""

from typing import Protocol

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from clnet.networks.deformable_attention import DeformableAttention
from clnet.networks.feature_levels import FeatureLevels, ImageFeatures
from clnet.networks.feed_forward import FeedForward
from clnet.networks.geometry import find_content
from clnet.networks.layers import Residual
from clnet.networks.positions import sine_positions
from clnet.networks.settings import require_heads


class EncoderLayer(nn.Module):
    """Every cell reads from places around it in all levels, then a feed-forward network."""

    def __init__(self, width: int, heads: int, levels: int, points: int, ffn: int, dropout: float) -> None:
        super().__init__()
        self.attention = DeformableAttention(width, heads, levels, points)
        self.attention_residual = Residual(width, dropout)
        self.ffn = FeedForward(width, ffn, dropout)

    def forward(self, features: ImageFeatures, positions: Tensor) -> ImageFeatures:
        """The same features with new tokens; positions [1, S, D] tell cells and levels apart."""
        tokens = features.tokens
        update = self.attention(tokens + positions, features.centres, tokens, features.shapes)
        return features._replace(tokens=self.ffn(self.attention_residual(tokens, update)))


class DeformableEncoder(nn.Module):
    """Encoder layers, and what tells the cells of one level from those of another."""

    def __init__(
        self,
        width: int,
        heads: int,
        levels: int,
        points: int,
        layers: int,
        ffn: int,
        dropout: float,
        checkpointing: bool,
    ) -> None:
        super().__init__()
        self.checkpointing = checkpointing
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
        for layer in self.layers:
            if self.checkpointing and self.training:
                features = checkpoint(layer, features, positions, use_reentrant=False)
            else:
                features = layer(features, positions)
        return features


class Backbone(Protocol):
    """From grey images [B, 1, H, W] to maps [B, channels[i], H / strides[i], W / strides[i]]."""

    channels: list[int]
    strides: list[int]

    def __call__(self, images: Tensor) -> list[Tensor]:
        """The maps, the finest first."""


class ImageEncoder(nn.Module):
    """What the paper calls the shared backbone and feature encoder; it sees one image at a time.

    Args:
        backbone: a module that is a `Backbone`.
        levels: L, maps of different strides that attention reads from.
        width: D, the length of every embedding.
        heads: of deformable attention.
        points: sampled by deformable attention per head and level.
        layers: of the deformable encoder; 0 leaves it out.
        ffn: hidden width of the feed-forward networks.
        dropout: in every encoder layer.
        checkpointing: whether training keeps only what enters each encoder layer, and computes the rest
            again for the gradients: less memory, more time.
    """

    def __init__(
        self,
        backbone: Backbone,
        levels: int,
        width: int,
        heads: int,
        points: int,
        layers: int,
        ffn: int,
        dropout: float,
        checkpointing: bool = False,
    ) -> None:
        super().__init__()
        require_heads(width, heads)
        self.width = width
        self.backbone = backbone
        self.levels = FeatureLevels(backbone.channels, levels, width)
        self.transformer = (
            DeformableEncoder(width, heads, levels, points, layers, ffn, dropout, checkpointing)
            if layers
            else None
        )

    def forward(self, images: Tensor) -> ImageFeatures:
        """Encode grey images [B, 1, H, W]."""
        features = self.levels(self.backbone(images), find_content(images))
        return features if self.transformer is None else self.transformer(features)
