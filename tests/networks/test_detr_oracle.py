"""Our single-view path is Deformable DETR: it gives what Hugging Face's implementation gives."""

import pytest
import torch
from network_configs import build
from transformers_weights import deformable_detr, our_names

from clnet.networks import CLNet

ROWS, COLUMNS = 123, 90  # no multiples of 32, so that levels round


def our_network(levels: int, box_refinement: bool) -> CLNet:
    backbone = {"_target_": "clnet.networks.resnet.ResNetBackbone", "name": "resnet18"}
    return build(
        *("clnet", "deformable_detr"),
        **{"width": 64, "heads": 4, "levels": levels, "points": 3, "ffn": 96, "dropout": 0.1},
        **{"encoder__backbone": backbone, "encoder__layers": 2, "detector__layers": 3},
        **{"object_queries": 7, "detector__box_refinement": box_refinement},
    ).eval()


@pytest.mark.parametrize("box_refinement", [False, True], ids=["fixed references", "box refinement"])
@pytest.mark.parametrize("feature_levels", [3, 5])
@torch.no_grad()
def test_logits_and_boxes_of_every_layer_equal_those_of_transformers(feature_levels, box_refinement):
    torch.manual_seed(feature_levels)
    theirs, ours = (
        deformable_detr(feature_levels, box_refinement),
        our_network(feature_levels, box_refinement),
    )
    ours.load_state_dict(our_names(theirs))
    # In double precision: random networks make up to 2e-4 of what single precision rounds.
    theirs.double()
    ours.double()
    image = torch.rand(2, 2, ROWS, COLUMNS, dtype=torch.float64)
    expected = theirs(image.flatten(0, 1)[:, None])
    found = ours(image)

    def close(ours, theirs):  # some of transformers' numbers are of single precision all the same
        torch.testing.assert_close(ours.flatten(0, 1), theirs, atol=1e-5, rtol=0)

    close(found["logits"][-1], expected.logits.squeeze(-1))
    close(found["boxes"][-1], expected.pred_boxes)
    for layer in range(3):
        hidden = expected.intermediate_hidden_states[:, layer]
        close(found["logits"][layer], theirs.class_embed[layer](hidden).squeeze(-1))
    assert expected.pred_boxes.std(dim=1).min() > 0.01, "the queries do not differ"
    assert expected.pred_boxes.std(dim=0).max() > 0.01, "the images do not matter"
