"""How often a training step makes the CPU wait for a GPU, which is not needed to tell."""

from collections import Counter

import pytest
import torch
from network_configs import build_with_loss
from whole_loss import DETECTION, link_loss

from clnet.losses import CLNetLoss, DetectionLoss, PartnerLoss
from clnet.networks import CommonFrame, GeometricLinker, LesionLinker, NoMatcher, ViewInteractiveDetector

WAITS = Counter()
FRAME = CommonFrame([[1, 0, 0, 0], [0, 1, 0, 0]], [[1, 0, 0, 0], [0, 1, 0, 0]], [0.1, 0.2, 0.4])


class OnGpu(torch.Tensor):
    """What is computed from it is on the GPU, too; whoever looks at a number waits."""

    def cpu(self):
        """On the CPU."""
        WAITS["cpu"] += 1
        return self.as_subclass(torch.Tensor)

    def waiting(name):  # noqa: N805  # makes methods
        """A method of tensors that waits for the GPU."""

        def method(self, *arguments, **named):
            WAITS[name] += 1
            return getattr(self.as_subclass(torch.Tensor), name)(*arguments, **named)

        return method

    for waits in ("tolist", "item", "numpy", "nonzero", "__bool__", "__int__", "__float__"):
        locals()[waits] = waiting(waits)


def batch(breasts=3, queries=6, layers=2, links=4):
    torch.manual_seed(0)
    outputs = {
        "logits": torch.randn(layers, breasts, 2, queries),
        "boxes": torch.rand(layers, breasts, 2, queries, 4) * 0.4 + 0.1,
        "link_similarity": torch.rand(layers, breasts, 2, links, queries + 1) * 2 - 1,
        "pair_logits": torch.randn(layers, breasts, links),
        "partner": torch.randn(breasts, 2, queries, queries + 1).log_softmax(-1),
        "partner_choice": torch.randint(queries + 1, (breasts, 2, queries)),
        "partner_certainty": torch.randn(breasts, 2, queries),
    }
    return outputs, target(breasts)


def target(breasts):
    """Two lesions in each, on the CPU."""
    lesions = [
        {"boxes": [torch.rand(2, 4) * 0.4 + 0.1] * 2, "lesion_ids": [torch.tensor([1, 2])] * 2}
        for _ in range(breasts)
    ]
    return {"lesions": lesions, "present": torch.ones(breasts, 2, dtype=torch.bool)}


def network_with(matcher):
    """A network's detector and matcher, as far as the loss needs them."""
    detector = ViewInteractiveDetector(32, 2, 1, 1, 1, 32, 0.0, 6, False, False)
    network = torch.nn.Module()
    network.detector, network.matcher = detector, matcher
    return network


@pytest.mark.parametrize(
    ("matcher", "transfers"),
    [
        (lambda: NoMatcher(), 1),
        (lambda: LesionLinker(32, 2, 1, 32, 0.0, 4, link_loss()), 2),
        (lambda: GeometricLinker(32, FRAME, 0.5, PartnerLoss(1.0, 0.5)), 1),
    ],
    ids=["detector", "lesion linker", "geometric linker"],
)
def test_each_matching_makes_one_transfer_however_many_breasts_there_are(matcher, transfers):
    loss = CLNetLoss(DetectionLoss(**DETECTION), network_with(matcher()))
    for breasts in (1, 4):
        outputs, target = batch(breasts)
        WAITS.clear()
        found = loss({name: output.as_subclass(OnGpu) for name, output in outputs.items()}, target)
        assert dict(WAITS) == {"cpu": transfers}
        assert type(found) is OnGpu
        torch.testing.assert_close(found.as_subclass(torch.Tensor), loss(outputs, target))


@pytest.mark.parametrize(
    ("configs", "matchings"),
    [
        ("train", 1),
        ("film", 1),
        ("vild", 1),
        ("pair_verification", 1),
        ("paired_query", 1),
        ("clnet paper", 2),
    ],
)
def test_nothing_else_in_a_step_of_any_network_asks_for_a_number(configs, matchings, monkeypatch):
    """On tensors of PyTorch's device "meta", which have no numbers: whoever wants one gets an error."""
    matched = []

    def match_anyhow(cost, block):
        matched.append(block)
        return cost.new_zeros(cost.shape[:2], dtype=torch.long)

    for module in ("assignment", "link"):
        monkeypatch.setattr(f"clnet.losses.{module}.solve", match_anyhow)
    network, loss = build_with_loss(*configs.replace("train", "").split())
    network.to("meta").train()
    found = loss(network(torch.empty(3, 2, 64, 64, device="meta")), target(3))
    found.backward()
    torch.nn.utils.clip_grad_norm_(network.parameters(), 0.1)
    assert found.device.type == "meta"
    assert len(matched) == matchings
