"""The linker's equations, written out once more; similarity, dustbin and extraction of pairs by hand."""

import math

import pytest
import torch
from network_configs import build

from clnet.networks import DetectorOutputs, LesionLinker, PairedQueryMatcher, PairVerification
from clnet.networks.detector import DecoderLayer
from clnet.networks.dustbin import append_dustbin
from clnet.networks.feature_levels import ImageFeatures
from clnet.networks.layers import ResidualAttention, cosine_similarity

WIDTH, HEADS = 32, 4


def attend(layer: ResidualAttention, query, key, value):
    """M(Q, K, V) of Section 3.1, one head after the other."""
    of = layer.attention
    q, k, v = of.query(query), of.key(key), of.value(value)
    size = WIDTH // HEADS
    heads = []
    for head in range(HEADS):
        part = slice(head * size, (head + 1) * size)
        scores = q[..., part] @ k[..., part].transpose(-1, -2) / math.sqrt(size)
        heads.append(scores.softmax(-1) @ v[..., part])
    return of.output(torch.cat(heads, dim=-1))


def feed_forward(ffn, x):
    return ffn.residual.norm(x + ffn.contract(torch.relu(ffn.expand(x))))


def linker(layers=2):
    torch.manual_seed(0)
    return LesionLinker(WIDTH, HEADS, layers, ffn=48, dropout=0.1, link_queries=5, loss=None).eval()


def detected(embeddings, positions=None):
    """What a matcher reads of a detector; the linker reads neither scores nor boxes."""
    breasts, _, n, _ = embeddings.shape
    return DetectorOutputs(
        torch.zeros(1, breasts, 2, n), torch.zeros(1, breasts, 2, n, 4), embeddings, positions, None, {}
    )


@torch.no_grad()
@pytest.mark.parametrize("missing", [None, "cc", "mlo"])
def test_a_linker_follows_the_papers_equations_and_sees_a_missing_view_as_its_dustbin_alone(missing):
    network = linker()
    embeddings, positions = torch.randn(3, 2, 6, WIDTH), torch.randn(3, 2, 6, WIDTH)
    present = torch.tensor([[missing != "cc", missing != "mlo"]]).expand(3, 2)
    candidates, places = [], []
    for view, name in enumerate(("cc", "mlo")):
        detections = 0 if name == missing else 6
        dustbin, position = network.dustbin.expand(3, 1, -1), network.dustbin_position.expand(3, 1, -1)
        candidates.append(torch.cat([embeddings[:, view, :detections], dustbin], dim=1))
        places.append(torch.cat([positions[:, view, :detections], position], dim=1))

    outputs = network(detected(embeddings, positions), present)

    link = network.link_queries.expand(3, -1, -1)
    for index, layer in enumerate(network.layers):
        link = layer.self_attention.residual.norm(link + attend(layer.self_attention, link, link, link))
        for attention, seen, place in zip(
            (layer.cc_attention, layer.mlo_attention), candidates, places, strict=True
        ):
            link = attention.residual.norm(link + attend(attention, link, seen + place, seen))
        link = feed_forward(layer.ffn, link)
        for view, head in enumerate((network.cc_embedding, network.mlo_embedding)):
            expected = torch.cosine_similarity(head(link)[:, :, None], candidates[view][:, None], dim=-1)
            found = outputs["link_similarity"][index, :, view]
            torch.testing.assert_close(found[..., -expected.shape[-1] :], expected, atol=1e-5, rtol=0)
            if expected.shape[-1] == 1:
                assert (found.argmax(-1) == 6).all(), "a missing view can only be linked to the dustbin"
        torch.testing.assert_close(
            outputs["pair_logits"][index], network.pair_score(link).squeeze(-1), atol=1e-5, rtol=0
        )


@torch.no_grad()
def test_inter_attention_follows_the_papers_equation():
    torch.manual_seed(0)
    settings = {"width": WIDTH, "heads": HEADS, "levels": 1, "points": 2, "ffn": 48, "dropout": 0.1}
    with_it = DecoderLayer(**settings, inter_attention=True).eval()
    without = DecoderLayer(**settings, inter_attention=False).eval()
    without.load_state_dict(with_it.state_dict(), strict=False)
    features = ImageFeatures(torch.randn(2, 12, WIDTH), torch.empty(0), [(3, 4)], None)
    arguments = torch.randn(2, 5, WIDTH), torch.randn(2, 5, WIDTH), torch.rand(2, 5, 2), features
    both = torch.tensor([True, True])

    (cc, mlo), (p_cc, p_mlo) = without(*arguments, both), arguments[1]
    inter = with_it.inter_attention
    expected = torch.stack(
        [
            inter.residual.norm(cc + attend(inter, cc + p_cc, mlo + p_mlo, mlo)),
            inter.residual.norm(mlo + attend(inter, mlo + p_mlo, cc + p_cc, cc)),
        ]
    )
    torch.testing.assert_close(with_it(*arguments, both), expected, atol=1e-5, rtol=0)


@torch.no_grad()
def test_attention_on_detections_is_given_when_asked_for():
    network = linker(layers=3)
    embeddings, positions = torch.randn(2, 2, 6, WIDTH), torch.randn(2, 2, 6, WIDTH)
    present = torch.tensor([[True, True], [True, False]])
    plain, asked = (
        network(detected(embeddings, positions), present, return_attention=ask) for ask in (False, True)
    )
    assert "link_attention" not in plain
    attention = asked["link_attention"]
    assert attention.shape == (2, 5, 2, 7)
    torch.testing.assert_close(attention.sum(-1), torch.ones(2, 5, 2))
    assert (attention[1, :, 1, :6] == 0).all() and (attention[1, :, 1, 6] == 1).all()
    for name, output in plain.items():
        torch.testing.assert_close(asked[name], output)


def test_similarity_is_the_cosine():
    found = cosine_similarity(torch.tensor([[3.0, 4.0], [0.0, 2.0]]), torch.tensor([[6.0, 8.0], [-1.0, 0.0]]))
    torch.testing.assert_close(found, torch.tensor([[1.0, -0.6], [0.8, 0.0]]))


@pytest.mark.parametrize("scale", [0.0, 1e-20, 65504.0])
def test_similarity_of_extreme_vectors_and_its_gradient_are_finite(scale):
    x = torch.full((1, 4), scale, requires_grad=True)
    y = torch.ones(2, 4)
    found = cosine_similarity(x, y)
    found.sum().backward()
    assert found.isfinite().all() and x.grad.isfinite().all()
    assert found[0, 0].item() == pytest.approx(1.0 if scale > 1 else 0.0, abs=1e-6)


def test_the_dustbin_is_the_last_candidate():
    found = append_dustbin(torch.zeros(2, 2, 3, 4), torch.ones(4))
    assert found.shape == (2, 2, 4, 4)
    assert found[..., 3, :].eq(1).all() and found[..., :3, :].eq(0).all()


def test_a_pair_is_the_most_similar_detection_of_each_view():
    similarity = torch.tensor(
        [[[[0.1, 0.9, 0.2], [0.3, 0.2, 0.8]], [[0.5, -0.1, 0.4], [-0.2, 0.7, 0.6]]]]
    )  # [B = 1, 2 views, M = 2, N + 1 = 3]
    earlier = torch.rand(1, 1, 2, 2, 3)
    outputs = {
        "link_similarity": torch.cat([earlier, similarity[None]]),
        "pair_logits": torch.tensor([[[5.0, 5.0]], [[0.0, math.log(3)]]]),
    }
    pairs = linker().pairs(None, outputs)
    assert pairs.links[..., 0].tolist() == [[1, 2]], "the second link query finds nothing in CC"
    assert pairs.links[..., 1].tolist() == [[0, 1]]
    assert pairs.scores.tolist()[0] == pytest.approx([0.5, 0.75])


def test_a_verified_pair_is_the_likeliest_of_a_detections_row():
    logits = torch.tensor([[[0.0, 2.0, -1.0], [-1.0, -2.0, 3.0], [1.0, -3.0, 9.0]]])  # N = 2
    pairs = PairVerification(WIDTH, loss=None).pairs(None, {"match_logits": logits})
    assert pairs.links[..., 0].tolist() == [[0, 1, 2, 2]]
    assert pairs.links[..., 1].tolist() == [[1, 2, 0, 1]]
    assert pairs.scores.tolist()[0] == pytest.approx(torch.tensor([2.0, 3.0, 1.0, -3.0]).sigmoid().tolist())


def test_a_paired_query_is_a_pair_by_itself():
    pairs = PairedQueryMatcher().pairs(None, {"paired_logits": torch.tensor([[0.0, -4.0]])})
    assert pairs.links.tolist() == [[[0, 0], [1, 1]]]
    assert pairs.scores.tolist()[0] == pytest.approx([0.5, 1 / (1 + math.exp(4.0))])


@torch.no_grad()
def test_a_paired_query_is_as_sure_as_the_less_sure_of_the_views_that_exist():
    torch.manual_seed(0)
    network = build("clnet", "paired_query", width=32, heads=2, ffn=32, object_queries=6).eval()
    outputs = network(torch.rand(2, 2, 64, 48), torch.tensor([[True, True], [False, True]]))
    cc, mlo = outputs["logits"][-1].unbind(1)
    torch.testing.assert_close(outputs["paired_logits"][0], torch.minimum(cc[0], mlo[0]))
    torch.testing.assert_close(outputs["paired_logits"][1], mlo[1])


@pytest.mark.parametrize("box_refinement", [True, False])
@torch.no_grad()
def test_a_paired_query_s_boxes_are_refined_from_layer_to_layer_or_said_anew(box_refinement):
    torch.manual_seed(0)
    changes = {"detector__paired_queries": 6, "detector__box_refinement": box_refinement}
    network = build("clnet", "paired_query", width=32, **changes).eval()
    heads = [head for layer in network.detector.heads for head in layer]
    assert len(heads) == (6 if box_refinement else 2)
    for head in heads[:2]:
        head.regress.last.weight.normal_(std=0.1)  # a first guess that depends on the image
    first, second, third = network(torch.rand(1, 2, 64, 48))["boxes"]
    # Untrained heads keep the box that they are to refine; one head for all layers says another in each.
    assert torch.allclose(first, second, atol=1e-6) is box_refinement
    assert torch.allclose(second, third, atol=1e-6) is box_refinement


@torch.no_grad()
def test_pair_verification_is_the_inner_product_of_projected_embeddings():
    torch.manual_seed(0)
    network = PairVerification(WIDTH, loss=None)
    embeddings = torch.randn(2, 2, 3, WIDTH)
    found = network(detected(embeddings), torch.tensor([[True, True], [False, True]]))["match_logits"]
    cc, mlo = network.project(embeddings[0])
    for i in range(4):
        for j in range(4):
            left = cc[i] if i < 3 else network.dustbin
            right = mlo[j] if j < 3 else network.dustbin
            assert found[0, i, j].item() == pytest.approx((left @ right).item(), abs=1e-4)
    assert found[1, :3].sigmoid().eq(0).all(), "detections of the missing CC view match nothing"
    assert found[1, 3].sigmoid().gt(0).all()
