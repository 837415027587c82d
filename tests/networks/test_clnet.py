"""The composed networks: variants by config, views that see one another, and missing views."""

import pytest
import torch
from network_configs import build, build_with_loss

from clnet.networks import CLNet, NetworkSettingError

VARIANTS = {
    "deformable_detr": (["clnet", "deformable_detr"], {}),
    "vild": (["clnet", "vild"], {}),
    "linker_only": (["clnet", "linker_only"], {}),
    "clnet": (["clnet"], {}),
    "pair_verification": (["clnet", "pair_verification"], {}),
    "box_refinement": (["clnet"], {"detector__box_refinement": True}),
    "no_encoder_one_level": (["clnet"], {"encoder__layers": 0, "levels": 1}),
    "four_levels": (["clnet"], {"levels": 4, "matcher__layers": 2}),
    "paired_query": (["clnet", "paired_query"], {"detector__box_refinement": True}),
    "geometric": ([], {}),
    "one_view": (["one_view"], {}),
    "film": (["film"], {}),
}
GEOMETRIC = ("geometric", "one_view", "film")
SMALL = {"width": 32, "heads": 2, "ffn": 32, "levels": 2, "encoder__layers": 1, "object_queries": 6}


def make(name: str, **changes: object) -> CLNet:
    """A small network with weights that are not at their tame beginnings."""
    torch.manual_seed(0)
    configs, settings = VARIANTS[name]
    if name not in ("paired_query", *GEOMETRIC):
        settings = {"detector__box_refinement": False, **settings}
    if name not in ("deformable_detr", "vild", "pair_verification", "paired_query", *GEOMETRIC):
        settings = {"matcher__link_queries": 4, **settings}
    network = build(*configs, **{**SMALL, **settings, **changes})
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
    return network.eval()


ALL = list(VARIANTS)
OF_VIEWS = {"logits": 2, "boxes": 2, "proposal_logits": 1, "proposal_boxes": 1}
"""Outputs that speak of one view at a time, and the dimension of the view."""
IMAGES = torch.rand(3, 2, 64, 48, generator=torch.Generator().manual_seed(0))


def close(found, expected):
    # Log probabilities go down to −40, and geometry divides distances of boxes by small spreads.
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)


def test_outputs_are_named_tensors_of_every_layer():
    outputs = make("clnet")(IMAGES)
    assert {name: tuple(output.shape) for name, output in outputs.items()} == {
        "logits": (3, 3, 2, 6),
        "boxes": (3, 3, 2, 6, 4),
        "links": (3, 4, 2),
        "link_scores": (3, 4),
        "link_similarity": (1, 3, 2, 4, 7),
        "pair_logits": (1, 3, 4),
    }
    assert make("vild")(IMAGES)["links"].shape == (3, 0, 2)
    assert make("pair_verification")(IMAGES)["match_logits"].shape == (3, 7, 7)
    film = make("film")(IMAGES)  # 60 cells in two levels
    assert {name: tuple(output.shape) for name, output in film.items()} == {
        "logits": (3, 3, 2, 6),
        "boxes": (3, 3, 2, 6, 4),
        "links": (3, 12, 2),
        "link_scores": (3, 12),
        "proposal_logits": (3, 2, 60),
        "proposal_boxes": (3, 2, 60, 4),
        "proposal_centres": (3, 60, 2),
        "partner": (3, 2, 6, 7),
        "partner_choice": (3, 2, 6),
        "partner_certainty": (3, 2, 6),
    }
    assert outputs["boxes"].min() >= 0 and outputs["boxes"].max() <= 1
    assert outputs["link_similarity"].abs().max() <= 1 + 1e-6


@pytest.mark.parametrize("name", ALL)
@torch.no_grad()
def test_a_breast_is_read_alike_alone_and_in_a_batch(name):
    network = make(name)
    together = network(IMAGES)
    for breast in range(3):
        for key, output in network(IMAGES[breast : breast + 1]).items():
            by_layer = key in ("logits", "boxes", "link_similarity", "pair_logits")
            close(together[key].narrow(1 if by_layer else 0, breast, 1), output)


@pytest.mark.parametrize(
    "name", ["vild", "clnet", "pair_verification", "box_refinement", "paired_query", "geometric", "film"]
)
@torch.no_grad()
def test_views_of_a_breast_see_one_another(name):
    network, other = make(name), IMAGES.clone()
    other[:, 1] = 1 - other[:, 1]
    change = (network(IMAGES)["logits"] - network(other)["logits"]).abs()
    assert change[:, :, 0].max() > 1e-4, "CC does not notice MLO"


@pytest.mark.parametrize("name", ["deformable_detr", "linker_only", "one_view"])
@torch.no_grad()
def test_without_inter_attention_views_do_not_see_one_another(name):
    network, other = make(name), IMAGES.clone()
    other[:, 1] = 1 - other[:, 1]
    close(network(IMAGES)["logits"][:, :, 0], network(other)["logits"][:, :, 0])


@pytest.mark.parametrize("view", [0, 1], ids=["only CC", "only MLO"])
@pytest.mark.parametrize(
    "name", ["vild", "clnet", "pair_verification", "box_refinement", "four_levels", "geometric", "film"]
)
@torch.no_grad()
def test_with_one_view_a_network_is_the_one_without_inter_attention(name, view):
    network = make(name)
    without = make(name, detector__inter_attention=False)
    without.load_state_dict(network.state_dict(), strict=False)
    present = torch.tensor([[view == 0, view == 1], [True, True], [view == 0, view == 1]])

    found, expected = network(IMAGES, present), without(IMAGES)

    for key in ("logits", "boxes"):
        close(found[key][:, ::2, view], expected[key][:, ::2, view])
        close(found[key][:, 1], network(IMAGES)[key][:, 1])
        assert not torch.allclose(found[key][:, 1], expected[key][:, 1], atol=1e-4)


@pytest.mark.parametrize("view", [0, 1], ids=["only CC", "only MLO"])
@pytest.mark.parametrize("name", ALL)
@torch.no_grad()
def test_what_stands_in_place_of_a_missing_view_does_not_matter(name, view):
    network, other = make(name), IMAGES.clone()
    other[:, 1 - view] = torch.rand(3, 64, 48) * 50
    present = torch.tensor([[view == 0, view == 1]]).expand(3, 2)
    blank, garbage = network(IMAGES, present), network(other, present)
    for key, output in blank.items():
        assert output.isfinite().all()
        if key in OF_VIEWS:
            close(garbage[key].select(OF_VIEWS[key], view), output.select(OF_VIEWS[key], view))
        else:
            close(garbage[key], output)


@torch.no_grad()
def test_with_one_view_a_paired_query_reads_that_view_alone():
    network = make("paired_query")
    features, detector = network.encoder(IMAGES[:, 0, None]), network.detector
    position, query = detector.paired_queries.expand(3, -1, -1).chunk(2, dim=-1)
    reference = detector.reference_points[0](position).sigmoid()
    expected = []
    for layer, heads in zip(detector.layers, detector.heads, strict=True):
        query, _ = layer.self_attention(query, query, position, position)
        update = layer.view_attentions[0](query + position, reference, features.tokens, features.shapes)
        query = layer.ffn(layer.view_residuals[0](query, update))
        reference = heads[0](query, reference)[1]
        expected.append(reference)
    found = network(IMAGES, torch.tensor([[True, False]]).expand(3, 2))
    close(found["boxes"][:, :, 0], torch.stack(expected))


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("one_view", [False, True], ids=["both views", "one view"])
def test_every_parameter_has_a_finite_gradient(name, one_view):
    """Also where a view is missing in the whole batch: distributed training waits for every gradient."""
    network = make(name).train()
    present = torch.tensor([[True, not one_view]]).expand(3, 2)
    outputs = network(IMAGES, present)
    kept = [output[output > -1e30].sum() for output in outputs.values() if output.is_floating_point()]
    sum(kept).backward()
    for parameter_name, parameter in network.named_parameters():
        assert parameter.grad is not None, parameter_name
        assert parameter.grad.isfinite().all(), parameter_name


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"width": 40}, "width: 40 must be a multiple of 32"),
        ({"levels": 0}, "levels: 0 must be at least 1"),
        ({"detector__layers": 0}, "layers: 0 of the detector must be at least 1"),
        ({"width": 64, "heads": 5}, r"width: 64 .* heads \(5\)"),
        (
            {"encoder__width": 32},
            r"'encoder': 32, 'detector': 64, 'matcher': 64\} must be equal; set --width",
        ),
    ],
)
def test_settings_that_fit_nothing_are_refused(settings, message):
    with pytest.raises(RuntimeError, match="instantiate") as caught:  # MONAI's, around ours
        build(**settings)
    with pytest.raises(NetworkSettingError, match=message):
        raise caught.value.__cause__


def test_the_loss_asks_the_very_parts_of_the_network():
    network, loss = build_with_loss()
    assert loss.parts_of_network == (network.detector, network.matcher)
    assert not list(loss.parameters()), "weights are the network's alone"


@pytest.mark.parametrize("name", ["clnet", "geometric"])
@torch.no_grad()
def test_boxes_are_computed_in_float32_under_autocast(name):
    network = make(name)
    with torch.autocast("cpu", torch.bfloat16):
        half = network(IMAGES)
    assert half["logits"].dtype == torch.bfloat16
    assert half["boxes"].dtype == torch.float32
