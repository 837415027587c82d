"""The shared image encoder: backbone, feature levels, and deformable self-attention between all cells."""

from pathlib import Path

from torch import Tensor, nn

from clnet.networks.backbone import make_backbone
from clnet.networks.deformable_attention import DeformableAttention
from clnet.networks.feature_levels import FeatureLevels, ImageFeatures
from clnet.networks.layers import FeedForward, Residual


class EncoderLayer(nn.Module):
    """Every cell reads from places around it in all levels, then a feed-forward network."""

    def __init__(self, width: int, heads: int, levels: int, points: int, ffn: int, dropout: float) -> None:
        super().__init__()
        self.attention = DeformableAttention(width, heads, levels, points)
        self.attention_residual = Residual(width, dropout)
        self.ffn = FeedForward(width, ffn, dropout)

    def forward(self, features: ImageFeatures) -> ImageFeatures:
        """The same features with new tokens."""
        # A cell's centre, in units of the valid image, taken to each level's whole map.
        references = features.centres[:, :, None] * features.valid_ratios[:, None]  # [B, S, L, 2]
        tokens = features.tokens
        update = self.attention(
            tokens + features.positions, references, tokens, features.shapes, features.padding
        )
        return features._replace(tokens=self.ffn(self.attention_residual(tokens, update)))


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
        self.backbone = make_backbone(backbone, backbone_weights)
        self.levels = FeatureLevels(self.backbone.channels, levels, width)
        self.layers = nn.ModuleList(
            EncoderLayer(width, heads, levels, points, ffn, dropout) for _ in range(layers)
        )

    def forward(self, images: Tensor, valid_size: Tensor | None = None) -> ImageFeatures:
        """Encode grey images.

        Args:
            images: [B, 1, H, W].
            valid_size: int [B, 2], (rows, columns) of the image within its canvas; None if it fills it.
        """
        size = (images.shape[-2], images.shape[-1])
        features = self.levels(self.backbone(images), size, valid_size)
        for layer in self.layers:
            features = layer(features)
        return features
