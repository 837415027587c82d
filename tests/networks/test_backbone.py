"""ResNets under torchvision's names, with weights from a file, for grey images."""

import os
import subprocess
import sys

import pytest
import torch
from transformers_weights import randomise, resnet, torchvision_names

from clnet.networks.backbone import BackboneError, LightBackbone, make_backbone
from clnet.networks.resnet import FrozenBatchNorm2d, ResNetBackbone

KINDS = {
    "resnet18": ([2, 2, 2, 2], False),
    "resnet34": ([3, 4, 6, 3], False),
    "resnet50": ([3, 4, 6, 3], True),
}


@pytest.mark.parametrize("name", KINDS)
@torch.no_grad()
def test_features_of_a_grey_image_equal_those_of_a_colour_resnet_that_sees_it_in_all_colours(name, tmp_path):
    torch.manual_seed(0)
    theirs = resnet(*KINDS[name], channels=3)
    randomise(theirs)
    file = tmp_path / f"{name}.pth"
    torch.save(torchvision_names(theirs.state_dict()), file)
    image = torch.rand(2, 1, 75, 50)

    found = ResNetBackbone(name, file)(image)

    expected = theirs(image.expand(-1, 3, -1, -1)).feature_maps
    assert [feature.shape[1] for feature in found] == ResNetBackbone(name).channels
    for ours, reference in zip(found, expected, strict=True):
        assert ours.shape == reference.shape
        assert (ours - reference).abs().max() <= 1e-5 * reference.abs().max()


@pytest.mark.parametrize("name", KINDS)
def test_names_are_those_of_torchvision(name):
    expected = torchvision_names(resnet(*KINDS[name], channels=1).state_dict())
    expected = {key for key in expected if not key.endswith("num_batches_tracked")}
    assert set(ResNetBackbone(name).state_dict()) == expected
    assert {
        "conv1.weight",
        "bn1.running_var",
        "layer2.0.downsample.1.bias",
        "layer4.1.conv2.weight",
    } <= expected


def test_with_weights_the_stem_and_first_stage_are_frozen(tmp_path):
    torch.save(ResNetBackbone("resnet18").state_dict(), tmp_path / "weights.pth")
    learns = {
        name.split(".")[0]: parameter.requires_grad
        for name, parameter in ResNetBackbone("resnet18", tmp_path / "weights.pth").named_parameters()
    }
    assert learns == {"conv1": False, "layer1": False, "layer2": True, "layer3": True, "layer4": True}


def test_norm_and_convolution_in_one_have_the_output_and_gradients_of_one_after_the_other():
    torch.manual_seed(0)
    convolution, norm = (
        torch.nn.Conv2d(3, 5, 3, stride=2, padding=1, bias=False).double(),
        FrozenBatchNorm2d(5),
    )
    randomise(norm.double())
    x = torch.rand(2, 3, 9, 8, dtype=torch.float64, requires_grad=True)
    apart = torch.nn.functional.batch_norm(
        convolution(x), norm.running_mean, norm.running_var, norm.weight, norm.bias
    )
    results = [
        [out, *torch.autograd.grad(out.square().sum(), [x, convolution.weight])]
        for out in (norm.convolve(convolution, x), apart)
    ]
    for found, expected in zip(*results, strict=True):
        torch.testing.assert_close(found, expected)


def test_batch_norm_stays_as_it_is_in_training():
    backbone = ResNetBackbone("resnet18").train()
    before = {name: buffer.clone() for name, buffer in backbone.named_buffers()}
    sum(feature.sum() for feature in backbone(torch.rand(2, 1, 64, 64))).backward()
    assert all(torch.equal(buffer, before[name]) for name, buffer in backbone.named_buffers())
    assert not any("bn" in name for name, _ in backbone.named_parameters())


def test_the_light_backbone_halves_the_image_to_strides_4_8_and_16():
    backbone = LightBackbone()
    maps = backbone(torch.rand(3, 1, 160, 96))
    assert [tuple(m.shape) for m in maps] == [(3, 32, 40, 24), (3, 48, 20, 12), (3, 64, 10, 6)]


def test_weights_of_another_resnet_are_refused_by_name_and_shape(tmp_path):
    torch.save(ResNetBackbone("resnet18").state_dict(), tmp_path / "resnet18.pth")
    with pytest.raises(BackboneError, match=r"resnet18\.pth has .* at layer1\.0\.conv1\.weight.* is needed"):
        ResNetBackbone("resnet50", tmp_path / "resnet18.pth")


class Harmful:
    """What a pickle may do."""

    def __reduce__(self):
        return (print, ("run by unpickling",))


@pytest.mark.parametrize("content", [{"model": 1}, [1, 2], Harmful()], ids=["no tensors", "a list", "code"])
def test_a_file_that_is_no_state_dict_is_refused(content, tmp_path, capsys):
    torch.save(content, tmp_path / "odd.pth")
    with pytest.raises(BackboneError, match=r"odd\.pth"):
        ResNetBackbone("resnet18", tmp_path / "odd.pth")
    assert "run by unpickling" not in capsys.readouterr().out


@pytest.mark.parametrize("content", [b"", b"not a checkpoint"])
def test_a_file_that_torch_cannot_read_is_refused(content, tmp_path):
    (tmp_path / "broken.pth").write_bytes(content)
    with pytest.raises(BackboneError, match=r"broken\.pth cannot be read"):
        ResNetBackbone("resnet18", tmp_path / "broken.pth")


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(BackboneError, match=r"nowhere\.pth"):
        ResNetBackbone("resnet18", tmp_path / "nowhere.pth")


def test_an_unknown_backbone_is_answered_with_the_known_ones():
    with pytest.raises(BackboneError, match=r"'vgg'.*light, resnet18, resnet34, resnet50"):
        make_backbone("vgg")


def test_the_light_backbone_takes_no_weights():
    with pytest.raises(BackboneError, match="from scratch"):
        make_backbone("light", "weights.pth")


@pytest.mark.slow
def test_the_light_network_is_there_without_the_import_of_monai():
    """Which takes longer than PyTorch's; only ResNets need it."""
    code = "import sys; from clnet.networks import CLNet; CLNet(); sys.exit('monai' in sys.modules)"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, check=False)
    assert done.returncode == 0
