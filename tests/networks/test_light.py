"""The light backbone, and that it needs PyTorch alone."""

import torch

from clnet.networks.light import LightBackbone


def test_the_light_backbone_halves_the_image_to_strides_4_8_and_16():
    backbone = LightBackbone()
    maps = backbone(torch.rand(3, 1, 160, 96))
    assert backbone.strides == [4, 8, 16]
    assert [tuple(m.shape) for m in maps] == [(3, 32, 40, 24), (3, 48, 20, 12), (3, 64, 10, 6)]
