"""Losses against transformers, hand computation and finite differences; and batches that break losses."""

import math

import pytest
import torch
from network_configs import build_with_loss
from transformers.loss.loss_deformable_detr import DeformableDetrHungarianMatcher, DeformableDetrImageLoss
from whole_loss import compare, link_loss

from clnet.losses import PairVerificationLoss, PartnerLoss
from clnet.losses.assignment import assign_detections, assign_paired_queries
from clnet.losses.link import LossSettingError

EMPTY_BOXES, NO_IDS = torch.zeros(0, 4), torch.zeros(0, dtype=torch.long)


def boxes(*shape: int) -> torch.Tensor:
    return torch.cat([torch.rand(*shape, 2), torch.rand(*shape, 2) * 0.3 + 0.05], dim=-1)


def target(cc_ids: list[int], mlo_ids: list[int]) -> dict:
    return {
        "boxes": [boxes(len(cc_ids)), boxes(len(mlo_ids))],
        "lesion_ids": [torch.tensor(ids, dtype=torch.long) for ids in (cc_ids, mlo_ids)],
    }


def random_outputs(pairs=2, n=6, m=4, layers=3, linker_layers=2) -> dict[str, torch.Tensor]:
    return {
        "logits": torch.randn(layers, pairs, 2, n, requires_grad=True),
        "boxes": boxes(layers, pairs, 2, n).requires_grad_(),
        "link_similarity": (torch.rand(linker_layers, pairs, 2, m, n + 1) * 2 - 1).requires_grad_(),
        "pair_logits": torch.randn(linker_layers, pairs, m, requires_grad=True),
        "match_logits": torch.randn(pairs, n + 1, n + 1, requires_grad=True),
    }


BOTH = torch.ones(2, 2, dtype=torch.bool)


def test_the_detection_loss_of_every_layer_is_that_of_transformers():
    torch.manual_seed(0)
    outputs, targets = random_outputs(), [target([1, 2], [2]), target([], [4, 5, 6])]
    parts = compare(outputs, targets, BOTH)
    criterion = DeformableDetrImageLoss(
        DeformableDetrHungarianMatcher(class_cost=2, bbox_cost=5, giou_cost=2), 1, 0.25, ["labels", "boxes"]
    )
    labels = [
        {"class_labels": torch.zeros(len(b), dtype=torch.long), "boxes": b}
        for t in targets
        for b in t["boxes"]
    ]
    expected = {"loss_ce": 0.0, "loss_bbox": 0.0, "loss_giou": 0.0}
    for logits, layer_boxes in zip(outputs["logits"], outputs["boxes"], strict=True):
        layer = {"logits": logits.flatten(0, 1)[..., None], "pred_boxes": layer_boxes.flatten(0, 1)}
        for name, value in criterion(layer, labels).items():
            expected[name] += value.item()
    assert parts["detection_class"].item() == pytest.approx(2 * expected["loss_ce"], rel=1e-4)
    assert parts["detection_l1"].item() == pytest.approx(5 * expected["loss_bbox"], rel=1e-4)
    assert parts["detection_giou"].item() == pytest.approx(2 * expected["loss_giou"], rel=1e-4)


def test_the_loss_is_the_sum_of_its_parts():
    torch.manual_seed(0)
    parts = compare(random_outputs(), [target([1], [1]), target([2], [])], BOTH)
    assert set(parts) == {
        "loss",
        "detection_class",
        "detection_l1",
        "detection_giou",
        "link_similarity",
        "link_class",
        "verification",
    }
    total = sum(value.item() for name, value in parts.items() if name != "loss")
    assert parts["loss"].item() == pytest.approx(total)


SIMILARITY = torch.tensor([[[0.6, -0.2, 0.0], [0.1, 0.9, -1.0]], [[-0.4, 0.3, 0.8], [0.5, 0.2, -1.0]]])[
    None, None
]


@pytest.mark.parametrize("temperature", [1.0, 0.1])
def test_link_loss_computed_by_hand(temperature):
    """One lesion, CC detection 1 and MLO's dustbin; link query 1 is the better one by score.

    emd of query 0: (−0.2 + 0.8)/2 + 1 = 1.3, of query 1: (0.9 − 1)/2 + 1 = 0.95; scores 0.01 and 0.9, so
    the costs are −√0.013 and −√0.855 and query 1 is matched.
    """
    score = torch.tensor([0.01, 0.9])
    logits = torch.log(score / (1 - score))[None, None]
    loss = link_loss(temperature=temperature)
    found = loss(SIMILARITY, logits, candidates=torch.tensor([[1, 2]]), breast=torch.tensor([0]))

    def cross_entropy(similarity: list[float], index: int) -> float:
        exponentials = [math.exp(value / temperature) for value in similarity]
        return -math.log(exponentials[index] / sum(exponentials))

    expected = cross_entropy([0.1, 0.9, -1.0], 1) + cross_entropy([0.5, 0.2, -1.0], 2)
    assert found["link_similarity"].item() == pytest.approx(0.125 * expected, rel=1e-4)
    focal = -0.5 * 0.1**2 * math.log(0.9) - 0.5 * 0.01**2 * math.log(0.99)
    assert found["link_class"].item() == pytest.approx(focal, rel=1e-3)


def test_the_papers_temperature_leaves_a_floor_of_2_886_nats():
    """Even a perfect linker: one cosine of 1 and 125 of −1 in each view."""
    similarity = torch.full((1, 1, 2, 16, 126), -1.0)
    similarity[..., 7] = 1.0
    found = link_loss()(similarity, torch.zeros(1, 1, 16), torch.tensor([[7, 7]]), torch.tensor([0]))
    assert found["link_similarity"].item() / 0.125 / 2 == pytest.approx(2.886, abs=1e-3)


def test_without_auxiliary_losses_only_the_last_linker_layer_counts():
    torch.manual_seed(0)
    outputs = random_outputs(linker_layers=3)
    arguments = torch.tensor([[1, 6], [2, 2]]), torch.tensor([0, 1])
    last = link_loss(auxiliary=False)(outputs["link_similarity"], outputs["pair_logits"], *arguments)
    by_layer = [
        link_loss()(outputs["link_similarity"][k : k + 1], outputs["pair_logits"][k : k + 1], *arguments)
        for k in range(3)
    ]
    every = link_loss()(outputs["link_similarity"], outputs["pair_logits"], *arguments)
    for name in last:
        assert last[name].item() == pytest.approx(by_layer[-1][name].item())
        assert every[name].item() == pytest.approx(sum(layer[name].item() for layer in by_layer))


def test_gradients_of_the_link_loss_are_right():
    torch.manual_seed(0)
    similarity = (torch.rand(2, 2, 2, 3, 5, dtype=torch.float64) * 1.8 - 0.9).requires_grad_()
    logits = torch.randn(2, 2, 3, dtype=torch.float64, requires_grad=True)
    candidates, breast = torch.tensor([[0, 4], [1, 2], [4, 3]]), torch.tensor([0, 0, 1])
    for method in ("mul", "add"):
        loss = link_loss(temperature=0.3, cost_method=method)
        assert torch.autograd.gradcheck(
            lambda s, p, loss=loss: sum(loss(s, p, candidates, breast).values()), (similarity, logits)
        )


def test_verification_loss_computed_by_hand():
    logits = torch.zeros(1, 3, 3)
    found = PairVerificationLoss(0.75, 2.0)(logits, torch.tensor([[0, 1], [2, 0]]), torch.tensor([0, 0]))
    each = 0.5**2 * math.log(2)
    assert found["verification"].item() == pytest.approx((2 * 0.75 + 7 * 0.25) * each / 2)


def test_partner_loss_computed_by_hand():
    """Lesion 0 is detection 0 of CC and 1 of MLO; lesion 1 is detection 1 of CC and nothing in MLO."""
    cc = [[0.2, 0.5, 0.3], [0.1, 0.1, 0.8]]
    mlo = [[0.3, 0.3, 0.4], [0.6, 0.2, 0.2]]
    partner = torch.tensor([[cc, mlo]]).log().requires_grad_()
    # CC's first detection is linked rightly to MLO's second, its second wrongly; MLO's second is not linked.
    choice, certainty = torch.tensor([[[1, 0], [2, 2]]]), torch.tensor([[[1.0, -1.0], [0.0, 2.0]]])
    found = PartnerLoss(weight=0.5, certainty_weight=2.0)(
        partner, choice, certainty, torch.tensor([[0, 1], [1, 2]]), torch.tensor([0, 0])
    )
    expected = -0.5 * ((math.log(0.5) + math.log(0.6)) / 2 + math.log(0.8)) / 2
    assert found["link_partner"].item() == pytest.approx(expected, rel=1e-5)
    softplus = [math.log(1 + math.exp(x)) for x in (-1.0, -1.0, 0.0, 2.0)]
    assert found["link_certainty"].item() == pytest.approx(2.0 * sum(softplus) / 2, rel=1e-5)
    found["link_partner"].backward()
    assert partner.grad.nonzero()[:, 1:].tolist() == [[0, 0, 1], [0, 1, 2], [1, 1, 0]]


def test_a_right_link_counts_as_right_whatever_lesions_are_not_shown():
    """Lesion 0 is the last detection of both views, rightly linked; lesion 1 is in CC alone."""
    partner = torch.zeros(1, 2, 2, 3)
    choice, certainty = torch.tensor([[[2, 1], [2, 1]]]), torch.tensor([[[1.0, 2.0], [-4.0, 3.0]]])
    for lesions in ([[1, 1], [0, 2]], [[0, 2], [1, 1]]):
        found = PartnerLoss(weight=0.0, certainty_weight=1.0)(
            partner, choice, certainty, torch.tensor(lesions), torch.tensor([0, 0])
        )
        softplus = [math.log(1 + math.exp(x)) for x in (-1.0, -2.0, -4.0, -3.0)]
        assert found["link_certainty"].item() == pytest.approx(sum(softplus) / 2, rel=1e-5)


def test_partner_loss_of_no_lesions_is_0():
    partner = torch.zeros(1, 2, 2, 3, requires_grad=True)
    none = torch.zeros(0, 2, dtype=torch.long)
    choice, certainty = torch.zeros(1, 2, 2, dtype=torch.long), torch.zeros(1, 2, 2)
    found = PartnerLoss(1.0, 0.0)(partner, choice, certainty, none, none[:, 0])["link_partner"]
    found.backward()
    assert found.item() == 0 and partner.grad.eq(0).all()


def test_links_point_at_detections_of_the_last_decoder_layer():
    torch.manual_seed(0)
    outputs, targets = random_outputs(pairs=1), [target([1], [1])]
    with torch.no_grad():
        for layer, (cc, mlo) in enumerate([(0, 1), (2, 3), (4, 5)]):  # each layer finds the lesion elsewhere
            for view, query in enumerate((cc, mlo)):
                outputs["boxes"][layer, 0, view, query] = targets[0]["boxes"][view][0]
                outputs["logits"][layer, 0, view, query] = 9.0
    found = compare(outputs, targets, BOTH[:1])
    expected = link_loss()(
        outputs["link_similarity"], outputs["pair_logits"], torch.tensor([[4, 5]]), torch.tensor([0])
    )
    assert found["link_similarity"].item() == pytest.approx(expected["link_similarity"].item())


def test_a_missing_view_adds_nothing():
    """Whatever is said of it and whatever boxes it is given: as if the lesion were seen in CC alone."""
    torch.manual_seed(0)
    outputs, present = random_outputs(), torch.tensor([[True, False], [True, True]])
    with torch.no_grad():
        outputs["link_similarity"][:, 0, 1, :, :6] = torch.finfo(torch.float32).min
        outputs["match_logits"][0, :, :6] = torch.finfo(torch.float32).min
    seen = [target([1], [1, 2]), target([1], [1])]
    parts = compare(outputs, seen, present)
    parts["loss"].backward()
    assert outputs["logits"].grad[:, 0, 1].eq(0).all()
    assert outputs["boxes"].grad[:, 0, 1].eq(0).all()
    assert outputs["link_similarity"].grad[:, 0, 1].eq(0).all(), "the dustbin is certain"
    assert outputs["logits"].grad[:, 0, 0].ne(0).all()
    only_cc = [
        {**seen[0], "boxes": [seen[0]["boxes"][0], EMPTY_BOXES], "lesion_ids": [torch.tensor([1]), NO_IDS]}
    ]
    again = compare(outputs, [*only_cc, seen[1]], present)
    assert again["loss"].item() == parts["loss"].item()


@pytest.mark.parametrize("scale", [1.0, 65504.0])
@pytest.mark.parametrize(
    "targets",
    [
        [target([], []), target([], [])],
        [target([1], []), target([], [1, 2])],
        [target([1, 2], [2, 1]), target([], [])],
    ],
    ids=["no lesions", "single-view lesions", "one breast without"],
)
def test_losses_and_gradients_are_finite(targets, scale):
    torch.manual_seed(0)
    outputs = {name: output.detach() for name, output in random_outputs().items()}
    for name in ("logits", "pair_logits", "match_logits"):
        outputs[name] *= scale
    if scale > 1:
        outputs["boxes"] = outputs["boxes"].round()  # sizes of exactly 0, edges at exactly 0 and 1
        outputs["link_similarity"] = outputs["link_similarity"].sign()
    for output in outputs.values():
        output.requires_grad_()
    for assign in (assign_detections, assign_paired_queries):
        parts = compare(outputs, targets, BOTH, assign)
        assert all(part.isfinite() and part >= 0 for part in parts.values())
        parts["loss"].backward()
    for name, output in outputs.items():
        assert output.grad is not None and output.grad.isfinite().all(), name


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_outputs_are_compared_in_single_precision(dtype):
    torch.manual_seed(0)
    outputs = {name: output.detach().to(dtype) for name, output in random_outputs().items()}
    targets = [target([1, 2], [2]), target([], [3])]
    half = compare(outputs, targets, BOTH)
    single = compare({name: output.float() for name, output in outputs.items()}, targets, BOTH)
    assert half["loss"].dtype == torch.float32
    assert half["loss"].item() == single["loss"].item()


@pytest.mark.parametrize("missing", [None, 0, 1], ids=["both views", "CC missing", "MLO missing"])
@pytest.mark.parametrize(
    "configs", ["clnet", "clnet vild", "clnet pair_verification", "clnet paired_query", "", "film"]
)
def test_every_network_learns_from_every_kind_of_breast(configs, missing):
    torch.manual_seed(0)
    network, loss = build_with_loss(*configs.split(), width=32, ffn=32)
    present = torch.ones(3, 2, dtype=torch.bool)
    if missing is not None:
        present[:, missing] = False
    targets = [target([1, 2], [2]), target([], []), target([3], [])]
    outputs = network(torch.rand(3, 2, 64, 48), present)
    loss(outputs, {"lesions": targets, "present": present}).backward()
    assert all(part.isfinite() for part in loss.parts.values())
    for name, parameter in network.named_parameters():
        assert parameter.grad is not None and parameter.grad.isfinite().all(), name


@pytest.mark.parametrize(
    ("settings", "message"),
    [({"temperature": 0.0}, "temperature: 0.0"), ({"cost_method": "max"}, "'max' is not one of mul, add")],
)
def test_settings_without_meaning_are_refused(settings, message):
    with pytest.raises(LossSettingError, match=message):
        link_loss(**settings)
