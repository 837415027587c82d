"""The assembled networks: variants by settings, views that see one another, and missing views."""

import pytest
import torch

from clnet.networks import CLNet, PairedLesionQuery, SettingError
from clnet.networks.positions import BoxPosition, sine_positions

VARIANTS = {
    "deformable_detr": {"inter_attention": False, "match_learning": "none"},
    "vild": {"inter_attention": True, "match_learning": "none"},
    "linker_only": {"inter_attention": False, "match_learning": "lesion_linker"},
    "clnet": {"inter_attention": True, "match_learning": "lesion_linker"},
    "pair_verification": {"inter_attention": True, "match_learning": "pair_verification"},
    "box_refinement": {"box_refinement": True},
    "box_positions": {"box_refinement": True, "box_positions": True},
    "no_encoder_one_level": {"encoder_layers": 0, "feature_levels": 1},
    "four_levels": {"feature_levels": 4, "linker_layers": 2},
}


SMALL = {"width": 32, "heads": 2, "ffn": 32, "feature_levels": 2, "encoder_layers": 1}


def make(name: str, **changes: bool) -> CLNet | PairedLesionQuery:
    """A small network with weights that are not at their tame beginnings."""
    torch.manual_seed(0)
    if name == "paired_query":
        network = PairedLesionQuery(**SMALL, paired_queries=6)
    else:
        settings = {"box_refinement": False, **VARIANTS[name], **changes}
        network = CLNet(**{**SMALL, "object_queries": 6, "link_queries": 4, **settings})
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
    return network.eval()


ALL = [*VARIANTS, "paired_query"]
IMAGES = torch.rand(3, 2, 64, 48, generator=torch.Generator().manual_seed(0))


def close(found, expected):
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)


def test_outputs_are_named_tensors_of_every_layer():
    outputs = make("clnet")(IMAGES)
    assert {name: tuple(output.shape) for name, output in outputs.items()} == {
        "logits": (3, 3, 2, 6),
        "boxes": (3, 3, 2, 6, 4),
        "link_similarity": (1, 3, 2, 4, 7),
        "pair_logits": (1, 3, 4),
    }
    assert set(make("vild")(IMAGES)) == {"logits", "boxes"}
    assert make("pair_verification")(IMAGES)["match_logits"].shape == (3, 7, 7)
    assert outputs["boxes"].min() >= 0 and outputs["boxes"].max() <= 1
    assert outputs["link_similarity"].abs().max() <= 1 + 1e-6


@pytest.mark.parametrize("name", ALL)
@torch.no_grad()
def test_a_breast_is_read_alike_alone_and_in_a_batch(name):
    network = make(name)
    valid_size = torch.tensor([[[64, 48], [50, 48]], [[64, 20], [33, 31]], [[40, 40], [64, 48]]])
    for sizes in (None, valid_size):
        together = network(IMAGES, valid_size=sizes)
        for breast in range(3):
            one = slice(breast, breast + 1)
            alone = network(IMAGES[one], valid_size=None if sizes is None else sizes[one])
            for key, output in alone.items():
                dim = 0 if key in ("match_logits", "paired_logits") else 1
                close(together[key].narrow(dim, breast, 1), output)


@torch.no_grad()
def test_a_network_with_box_positions_begins_as_without_and_then_links_by_place():
    def outputs_of(weight, **changes):
        torch.manual_seed(0)
        network = CLNet(**SMALL, object_queries=6, link_queries=4, **changes).eval()
        if weight is not None:
            network.decoder.box_position.weight.add_(weight)
        return network(IMAGES)

    without, begins = outputs_of(None), outputs_of(0.0, box_positions=True)
    for key, output in without.items():
        close(begins[key], output)
    torch.manual_seed(1)
    learned = outputs_of(torch.randn(32, 64), box_positions=True)
    for key in ("logits", "link_similarity"):
        assert (learned[key][-1] - without[key][-1]).abs().max() > 1e-3, key


@torch.no_grad()
def test_a_box_position_tells_centre_and_size_and_is_zero_at_first():
    position, boxes = BoxPosition(8), torch.tensor([[0.2, 0.4, 0.1, 0.3], [0.2, 0.5, 0.1, 0.3]])
    assert position(boxes).abs().max() == 0
    torch.nn.init.eye_(position.weight)  # the first 8 numbers: those of the centre
    close(position(boxes), sine_positions(boxes[:, :2], 8))
    position.weight.copy_(torch.eye(16)[8:])
    close(position(boxes), sine_positions(boxes[:, 2:], 8))


@pytest.mark.parametrize("name", ["vild", "clnet", "pair_verification", "box_refinement", "paired_query"])
@torch.no_grad()
def test_views_of_a_breast_see_one_another(name):
    network, other = make(name), IMAGES.clone()
    other[:, 1] = 1 - other[:, 1]
    change = (network(IMAGES)["logits"] - network(other)["logits"]).abs()
    assert change[:, :, 0].max() > 1e-4, "CC does not notice MLO"


@pytest.mark.parametrize("name", ["deformable_detr", "linker_only"])
@torch.no_grad()
def test_without_inter_attention_views_do_not_see_one_another(name):
    network, other = make(name), IMAGES.clone()
    other[:, 1] = 1 - other[:, 1]
    close(network(IMAGES)["logits"][:, :, 0], network(other)["logits"][:, :, 0])


@pytest.mark.parametrize("view", [0, 1], ids=["only CC", "only MLO"])
@pytest.mark.parametrize("name", ["vild", "clnet", "pair_verification", "box_refinement", "four_levels"])
@torch.no_grad()
def test_with_one_view_a_network_is_the_one_without_inter_attention(name, view):
    network = make(name)
    without = make(name, inter_attention=False)
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
        if key in ("logits", "boxes"):
            close(garbage[key][:, :, view], output[:, :, view])
        else:
            close(garbage[key], output)


@torch.no_grad()
def test_with_one_view_a_paired_query_reads_that_view_alone():
    network = make("paired_query")
    features = network.encoder(IMAGES[:, 0, None])
    position, query = network.paired_queries.expand(3, -1, -1).chunk(2, dim=-1)
    reference = network.reference_points[0](position).sigmoid()
    expected = []
    for layer, heads in zip(network.layers, network.heads, strict=True):
        query, _ = layer.self_attention(query, query, position, position)
        places = reference[:, :, None].expand(-1, -1, len(features.shapes), -1)
        update = layer.view_attentions[0](query + position, places, features.tokens, features.shapes)
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
    kept = [output[output > -1e30].sum() for output in outputs.values()]
    sum(kept).backward()
    for parameter_name, parameter in network.named_parameters():
        assert parameter.grad is not None, parameter_name
        assert parameter.grad.isfinite().all(), parameter_name


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"width": 40}, "width: 40 must be a multiple of 32"),
        ({"feature_levels": 0}, "feature_levels and decoder_layers: 0 and 3 must be at least 1"),
        ({"width": 64, "heads": 5}, r"width: 64 .* heads \(5\)"),
        ({"match_learning": "hope"}, "'hope' is not one of lesion_linker, pair_verification, none"),
    ],
)
def test_settings_that_fit_nothing_are_refused(settings, message):
    with pytest.raises(SettingError, match=message):
        CLNet(**settings)
