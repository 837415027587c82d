"""The light backbone, and that it needs PyTorch alone."""

import os
import subprocess
import sys

import torch

from clnet.networks.light import LightBackbone


def test_the_light_backbone_halves_the_image_to_strides_4_8_and_16():
    backbone = LightBackbone()
    maps = backbone(torch.rand(3, 1, 160, 96))
    assert backbone.strides == [4, 8, 16]
    assert [tuple(m.shape) for m in maps] == [(3, 32, 40, 24), (3, 48, 20, 12), (3, 64, 10, 6)]


def test_the_light_network_is_there_without_the_import_of_monai():
    """Which takes longer than PyTorch's; only ResNets need it."""
    code = "import sys; from clnet.networks import LightBackbone; sys.exit('monai' in sys.modules)"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, check=False)
    assert done.returncode == 0
