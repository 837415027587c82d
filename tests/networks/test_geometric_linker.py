"""The Geometric Linker: probabilities, a plain reference, missing views, and what it can learn."""

import numpy as np
import pytest
import torch

from clnet.losses import PartnerLoss
from clnet.networks import CommonFrame, DetectorOutputs, GeometricLinker
from clnet.networks.geometry import Content
from clnet.networks.settings import NetworkSettingError

WIDTH, N = 16, 4
STRAIGHT = [[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0]]
FRAME = CommonFrame(STRAIGHT, STRAIGHT, [0.09, 0.2, 0.4])
BOTH = torch.ones(2, 2, dtype=torch.bool)


def linker(link_threshold=0.5):
    torch.manual_seed(0)
    return GeometricLinker(WIDTH, FRAME, link_threshold, PartnerLoss(1.0, 1.0))


def detected(embeddings, boxes=None):
    """What the linker reads of a detector: embeddings, boxes of the last layer, and where content is."""
    breasts, _, n, _ = embeddings.shape
    if boxes is None:
        boxes = torch.full((breasts, 2, n, 4), 0.3)
    layers = torch.stack([torch.rand_like(boxes), boxes])
    content = Content(torch.tensor([[0.0, 0.1, 0.6, 0.9]]).expand(2 * breasts, 4), 2.0)
    logits = torch.linspace(-2, 2, n).expand(2, breasts, 2, n)
    return DetectorOutputs(logits, layers, embeddings, None, content, {})


def random_detections(breasts=2):
    torch.manual_seed(1)
    return detected(torch.randn(breasts, 2, N, WIDTH), torch.rand(breasts, 2, N, 4) * 0.5 + 0.1)


def without_geometry(made):
    """The same linker, judging by looks alone."""
    with torch.no_grad():
        made.geometry.strengths.fill_(-100.0)
    return made


@torch.no_grad()
def test_the_partners_of_a_detection_and_the_dustbin_share_its_probability():
    partner = linker()(random_detections(), BOTH)["partner"]
    assert partner.shape == (2, 2, N, N + 1)
    torch.testing.assert_close(partner.exp().sum(-1), torch.ones(2, 2, N))


@torch.no_grad()
def test_links_follow_the_equations():
    made, detections = linker(), random_detections()
    outputs = made(detections, BOTH)
    partner, (links, scores) = outputs["partner"].double().numpy(), made.pairs(detections, outputs)
    weight, bias = (value.double().numpy() for value in (made.project.weight, made.project.bias))
    for breast in range(2):
        cc, mlo = detections.embeddings[breast].double().numpy() @ weight.T + bias
        against = -made.geometry(detections.boxes[-1, breast], Content(detections.content.extents[:2], 2.0))
        similarity = cc @ mlo.T / np.sqrt(WIDTH) - against[0, 0].double().numpy()
        alone = made.alone(detections.embeddings[breast])[..., 0].double().numpy()
        probability = []
        for view, table in enumerate((similarity, similarity.T)):
            exponentials = np.exp(np.column_stack([table, alone[view]]))
            probability.append(exponentials / exponentials.sum(1, keepdims=True))
        np.testing.assert_allclose(np.exp(partner[breast]), probability, atol=1e-5)

        expected, logit = [], detections.logits[-1, breast].double().numpy()
        for view in range(2):
            for own in range(N):
                ways = [np.sqrt(probability[view][own, j] * probability[1 - view][j, own]) for j in range(N)]
                ways.append(probability[view][own, N])
                best = int(np.argmax(ways))
                # As they begin, both regressions weigh everything by a half.
                known = [logit[view, own], *([logit[1 - view, best]] if best < N else []), np.log(ways[best])]
                score = 1 / (1 + np.exp(-0.5 * sum(known)))
                expected.append(((own, best) if view == 0 else (best, own), score))
        assert [tuple(link) for link in links[breast].tolist()] == [link for link, _ in expected]
        np.testing.assert_allclose(scores[breast], [score for _, score in expected], atol=1e-5)


@torch.no_grad()
@pytest.mark.parametrize("threshold", [0.2, 0.4, 0.9])
def test_a_link_that_is_just_sure_enough_has_a_score_of_one_half(threshold):
    made, detections = linker(threshold), random_detections()
    outputs = made(detections, BOTH)
    sure = outputs["partner_certainty"].double().flatten(1).sigmoid().numpy()
    scores = made.pairs(detections, outputs).scores.double().numpy()
    assert ((scores >= 0.5) == (sure >= threshold)).all()
    np.testing.assert_allclose(
        scores / (1 - scores), sure / (1 - sure) * (1 - threshold) / threshold, rtol=1e-4
    )


@pytest.mark.parametrize("threshold", [0.0, 1.0])
def test_a_threshold_that_is_no_probability_is_refused(threshold):
    with pytest.raises(NetworkSettingError, match=f"link_threshold: {threshold} is not between 0 and 1"):
        linker(threshold)


@torch.no_grad()
def test_every_detection_of_either_view_has_a_candidate():
    made, detections = linker(), random_detections()
    links, scores = made.pairs(detections, made(detections, BOTH))
    assert links.shape == (2, 2 * N, 2) and scores.shape == (2, 2 * N)
    assert links[:, :N, 0].tolist() == [list(range(N))] * 2
    assert links[:, N:, 1].tolist() == [list(range(N))] * 2


@pytest.mark.parametrize("missing", [0, 1], ids=["CC missing", "MLO missing"])
def test_of_a_missing_view_only_the_dustbin_can_be_linked_for_certain_and_at_no_cost(missing):
    made, detections = linker(), random_detections()
    present = torch.tensor([[True, True], [missing == 1, missing == 0]])
    outputs = made(detections, present)
    links, scores = made.pairs(detections, outputs)
    there = slice(0, N) if missing == 1 else slice(N, 2 * N)
    gone = slice(N, 2 * N) if missing == 1 else slice(0, N)
    assert (links[1, there, missing] == N).all()
    assert outputs["partner"][1, 1 - missing, :, N].eq(0).all(), "the dustbin is certain"
    assert (scores[1, gone] == 0).all(), "nothing is said of detections in an image that is not there"
    assert (links[1, gone, 1 - missing] == N).all()
    assert outputs["partner"].isfinite().all()

    lesion = torch.tensor([[N, 2] if missing == 0 else [2, N]])
    loss = made.loss(outputs, lesion, torch.tensor([1]))["link_partner"]
    loss.backward()
    assert loss.item() == 0
    assert all(parameter.grad is None or parameter.grad.eq(0).all() for parameter in made.parameters())
    torch.testing.assert_close(outputs["partner"][0], made(detections, BOTH)["partner"][0])


@torch.no_grad()
def test_detections_that_look_alike_are_linked():
    made = without_geometry(linker())
    made.project.weight.copy_(torch.eye(WIDTH) * 10)
    made.project.bias.zero_()
    cc, order = torch.eye(N, WIDTH) * 2, torch.tensor([2, 0, 3, 1])
    detections = detected(torch.stack([cc, cc[order]])[None])
    outputs = made(detections, BOTH[:1])
    links = made.pairs(detections, outputs).links
    mlo_of = {cc: mlo for mlo, cc in enumerate(order.tolist())}
    assert {tuple(link) for link in links[0].tolist()} == set(mlo_of.items())
    assert outputs["partner"].exp().amax(-1).min() > 0.99


@torch.no_grad()
def test_detections_that_look_the_same_are_linked_by_depth():
    made = linker()
    boxes = torch.full((1, 2, N, 4), 0.2)
    boxes[0, 0, :, 0], boxes[0, 1, :, 0] = (
        torch.tensor([0.1, 0.2, 0.3, 0.4]),
        torch.tensor([0.3, 0.1, 0.4, 0.2]),
    )
    made.geometry.strengths.fill_(10.0)
    made.alone.last.weight.zero_()
    made.alone.last.bias.fill_(-20.0)
    detections = detected(torch.zeros(1, 2, N, WIDTH), boxes)
    links, _ = made.pairs(detections, made(detections, BOTH[:1]))
    assert links[0, :N].tolist() == [[0, 1], [1, 3], [2, 0], [3, 2]]


def test_it_learns_to_link_and_to_leave_alone_what_one_view_shows():
    """Detections of one lesion look alike; lesion 0 of each breast is not in MLO, where something else is."""
    made = without_geometry(linker())
    torch.manual_seed(2)
    present, breast = torch.ones(8, 2, dtype=torch.bool), torch.arange(8).repeat_interleave(N)
    truth = torch.tensor([[0, N], [1, 1], [2, 2], [3, 3]])

    def draw():
        looks = torch.randn(8, 1, N, WIDTH).expand(-1, 2, -1, -1).clone()
        looks[:, 1, 0] = torch.randn(8, WIDTH)
        return detected(looks)

    optimiser = torch.optim.Adam(made.parameters(), lr=0.01)
    for _ in range(100):
        optimiser.zero_grad()
        made.loss(made(draw(), present), truth.repeat(8, 1), breast)["link_partner"].backward()
        optimiser.step()
    with torch.no_grad():
        new = draw()
        links = made.pairs(new, made(new, present)).links[:, :N]
    assert (links == truth).all(-1).float().mean() > 0.95
    assert (links[:, 0, 1] == N).all()


def test_it_learns_how_sure_its_links_are():
    """Of four detections that find their partners by looks, those with a high score alone are lesions."""
    made = without_geometry(linker())
    with torch.no_grad():
        made.project.weight.copy_(torch.eye(WIDTH) * 10)
        made.project.bias.zero_()
    looks = (torch.eye(N, WIDTH) * 2).expand(1, 2, -1, -1)
    detections, lesions = detected(looks), torch.tensor([[2, 2], [3, 3]])
    optimiser = torch.optim.Adam([*made.link_certainty.parameters()], lr=0.1)
    for _ in range(100):
        optimiser.zero_grad()
        made.loss(made(detections, BOTH[:1]), lesions, torch.tensor([0, 0]))["link_certainty"].backward()
        optimiser.step()
    scores = made.pairs(detections, made(detections, BOTH[:1])).scores[0]
    assert scores[[2, 3, 6, 7]].min() > 0.5 > scores[[0, 1, 4, 5]].max()
