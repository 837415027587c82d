"""ResNets under torchvision's names, with weights from a file, for grey images."""

import pytest
import torch
from transformers_weights import randomise, resnet, torchvision_names

from clnet.networks.resnet import BackboneError, FrozenBatchNorm2d, ResNetBackbone

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


def test_the_frozen_norm_has_the_output_and_gradient_of_batch_norm_in_evaluation():
    torch.manual_seed(0)
    norm = FrozenBatchNorm2d(5)
    randomise(norm.double())
    x = torch.rand(2, 5, 9, 8, dtype=torch.float64, requires_grad=True)
    plain = torch.nn.functional.batch_norm(x, norm.running_mean, norm.running_var, norm.weight, norm.bias)
    results = [[out, *torch.autograd.grad(out.square().sum(), [x])] for out in (norm(x), plain)]
    for found, expected in zip(*results, strict=True):
        torch.testing.assert_close(found, expected)


def test_batch_norm_stays_as_it_is_in_training():
    backbone = ResNetBackbone("resnet18").train()
    before = {name: buffer.clone() for name, buffer in backbone.named_buffers()}
    sum(feature.sum() for feature in backbone(torch.rand(2, 1, 64, 64))).backward()
    assert all(torch.equal(buffer, before[name]) for name, buffer in backbone.named_buffers())
    assert not any("bn" in name for name, _ in backbone.named_parameters())


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


def test_an_unknown_resnet_is_answered_with_the_known_ones():
    with pytest.raises(BackboneError, match=r"'vgg'.*resnet18, resnet34, resnet50"):
        ResNetBackbone("vgg")


@pytest.mark.parametrize("stages", [(), (0, 1), (2, 5), (3, 2), (2, 2)])
def test_stages_that_do_not_exist_or_do_not_rise_are_refused(stages):
    with pytest.raises(BackboneError, match=r"stages: .* must be one or more of 1, 2, 3, 4, in rising order"):
        ResNetBackbone("resnet18", stages=stages)


@pytest.mark.parametrize("stages", [(1,), (1, 3), (2, 3), (1, 2, 3, 4)])
@torch.no_grad()
def test_a_resnet_may_end_at_any_stage_and_gives_the_maps_of_the_whole_one(stages, tmp_path):
    torch.manual_seed(0)
    whole = ResNetBackbone("resnet18", stages=(1, 2, 3, 4))
    state = {name: tensor for name, tensor in whole.state_dict().items() if name[:5] != "layer"}
    state |= {
        name: tensor
        for name, tensor in whole.state_dict().items()
        if name[:5] == "layer" and int(name[5]) <= stages[-1]
    }
    torch.save(state, tmp_path / "shortened.pth")  # as a file without later stages and fc
    backbone = ResNetBackbone("resnet18", tmp_path / "shortened.pth", stages)
    image = torch.rand(1, 1, 64, 96)
    maps = backbone(image)
    expected = [whole(image)[stage - 1] for stage in stages]
    assert set(backbone.state_dict()) == set(state)
    assert backbone.channels == [64 * 2 ** (stage - 1) for stage in stages]
    assert backbone.strides == [64 // one.shape[2] for one in maps]
    for found, of_whole in zip(maps, expected, strict=True):
        assert torch.equal(found, of_whole)


def test_under_autocast_it_learns_in_half_precision():
    torch.manual_seed(0)
    backbone, image = ResNetBackbone("resnet18", stages=(2, 3)), torch.rand(1, 1, 64, 64)
    expected = backbone(image)
    with torch.autocast("cpu", torch.bfloat16):
        maps = backbone(image)
    for found, exact in zip(maps, expected, strict=True):
        assert found.dtype == torch.bfloat16
        assert (found - exact).abs().max() < 0.1 * exact.abs().max()
    sum(one.float().sum() for one in maps).backward()
    assert all(parameter.grad.isfinite().all() for parameter in backbone.parameters())
