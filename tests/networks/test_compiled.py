"""Encoder, detector and matcher compile, each as one graph, and checkpointing changes no number."""

import pytest
import torch
from benchmarks.activations import kept_bytes
from network_configs import build

from clnet.networks.views import to_images

PRESENT = torch.tensor([[True, True], [True, False]])
SMALL = {"encoder__layers": 1, "detector__layers": 2}
CONFIGS = {
    "paper": {**SMALL, "matcher__layers": 1, "object_queries": 9, "width": 64, "ffn": 64},
    "film": {**SMALL, "width": 64, "ffn": 64},
    "train": {},
}


def made(name, **more):
    """A network in training, without dropout, and images of two breasts."""
    torch.manual_seed(0)
    names = {"train": [], "film": ["film"], "paper": ["clnet", "paper"]}[name]
    dropout = {} if name == "train" else {"dropout": 0.0}
    network = build(*names, **CONFIGS[name], **dropout, **more).train()
    return network, torch.rand(2, 2, 64, 64)


@pytest.mark.slow
@pytest.mark.parametrize("name", CONFIGS)
def test_no_part_breaks_its_graph(name):
    network, image = made(name)
    images = to_images(image)[:, None]
    features = network.encoder(images)
    detections = network.detector(features, PRESENT)
    calls = {"encoder": (images,), "detector": (features, PRESENT), "matcher": (detections, PRESENT)}
    for part, inputs in calls.items():
        torch._dynamo.reset()
        explained = torch._dynamo.explain(getattr(network, part))(*inputs)
        assert (explained.graph_count, explained.graph_break_count) == (1, 0), part


def gradients(network, image):
    """Outputs, and the gradient of every weight."""
    network.zero_grad()
    outputs = network(image, PRESENT)
    # The lowest finite number stands where a view is missing.
    sum(output.clamp(-9, 9).square().mean() for output in outputs.values() if output.requires_grad).backward()
    return outputs, {name: weight.grad for name, weight in network.named_parameters()}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "checkpointing"), [("film", False), ("film", True), ("paper", False), ("train", False)]
)
def test_a_compiled_network_gives_the_numbers_of_the_plain_one(name, checkpointing, monkeypatch):
    network, image = made(name)
    expected, expected_gradients = gradients(network, image)
    compiled, _ = made(name, checkpointing=checkpointing)
    compile_part = torch.nn.Module.compile
    monkeypatch.setattr(  # with gradients, but without a compiler for C++
        torch.nn.Module, "compile", lambda part, **how: compile_part(part, backend="aot_eager", **how)
    )
    type(compiled).__init__(compiled, compiled.encoder, compiled.detector, compiled.matcher, compiled=True)
    assert compiled.state_dict().keys() == network.state_dict().keys()
    outputs, found = gradients(compiled, image)
    for key, output in outputs.items():
        torch.testing.assert_close(output, expected[key], atol=1e-5, rtol=1e-5)
    for weight, gradient in found.items():
        torch.testing.assert_close(gradient, expected_gradients[weight], atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("name", ["paper", "film"])
def test_checkpointing_keeps_less_and_changes_no_number(name):
    network, image = made(name)
    less_keeping, _ = made(name, checkpointing=True)
    assert kept_bytes(less_keeping, image, PRESENT) < 0.7 * kept_bytes(network, image, PRESENT)
    expected, expected_gradients = gradients(network, image)
    outputs, found = gradients(less_keeping, image)
    assert all(torch.equal(output, expected[key]) for key, output in outputs.items())
    for weight, gradient in found.items():
        torch.testing.assert_close(gradient, expected_gradients[weight])
