"""The one owner of how two views become a batch of images: image 2·b + v is view v of breast b.

Encoder and detector treat images alike, so both views pass them as one batch: CC, MLO, CC, MLO, ….
"""

from torch import Tensor


def to_images(pairs: Tensor) -> Tensor:
    """[B, 2, ...] to [2B, ...]."""
    return pairs.flatten(0, 1)


def to_pairs(images: Tensor) -> Tensor:
    """[2B, ...] to [B, 2, ...]."""
    return images.reshape(-1, 2, *images.shape[1:])


def swap_views(images: Tensor) -> Tensor:
    """[2B, ...] of CC, MLO, CC, MLO, … to MLO, CC, MLO, CC, …."""
    return to_images(to_pairs(images).flip(1))
