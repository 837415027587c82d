"""Our single-view path is Deformable DETR: it gives what Hugging Face's implementation gives."""

import pytest
import torch
from transformers_weights import deformable_detr, our_names

from clnet.networks import CLNet

ROWS, COLUMNS = 123, 90  # no multiples of 32, so that levels round


def our_network(feature_levels: int, box_refinement: bool) -> CLNet:
    return CLNet(
        backbone="resnet18",
        feature_levels=feature_levels,
        width=64,
        heads=4,
        points=3,
        encoder_layers=2,
        decoder_layers=3,
        ffn=96,
        object_queries=7,
        inter_attention=False,
        box_refinement=box_refinement,
        match_learning="none",
    ).eval()


@pytest.mark.parametrize("box_refinement", [False, True], ids=["fixed references", "box refinement"])
@pytest.mark.parametrize("padded", [False, True], ids=["whole canvas", "padded"])
@pytest.mark.parametrize("feature_levels", [3, 5])
@torch.no_grad()
def test_logits_and_boxes_of_every_layer_equal_those_of_transformers(feature_levels, padded, box_refinement):
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
    valid_size = torch.tensor([[[101, 90], [123, 47]], [[64, 33], [123, 90]]]) if padded else None
    mask = torch.ones(4, ROWS, COLUMNS, dtype=torch.long)
    if valid_size is not None:
        for single_mask, single_image, (rows, columns) in zip(
            mask, image.flatten(0, 1), valid_size.flatten(0, 1).tolist(), strict=True
        ):
            single_mask[rows:], single_mask[:, columns:] = 0, 0
            single_image[rows:], single_image[:, columns:] = 0, 0

    expected = theirs(image.flatten(0, 1)[:, None], pixel_mask=mask)
    found = ours(image, valid_size=valid_size)

    def close(ours, theirs):  # some of transformers' numbers are of single precision all the same
        torch.testing.assert_close(ours.flatten(0, 1), theirs, atol=1e-5, rtol=0)

    close(found["logits"][-1], expected.logits.squeeze(-1))
    close(found["boxes"][-1], expected.pred_boxes)
    for layer in range(3):
        hidden = expected.intermediate_hidden_states[:, layer]
        close(found["logits"][layer], theirs.class_embed[layer](hidden).squeeze(-1))
    assert expected.pred_boxes.std(dim=1).min() > 0.01, "the queries do not differ"
    assert expected.pred_boxes.std(dim=0).max() > 0.01, "the images do not matter"


@torch.no_grad()
def test_padding_changes_what_is_seen():
    """Guards the oracle test: were padding ignored on both sides, it could not fail."""
    torch.manual_seed(0)
    ours = our_network(3, False)
    ours.load_state_dict(our_names(deformable_detr(3, False)))
    image = torch.zeros(1, 2, ROWS, COLUMNS)
    image[:, :, :64, :64] = torch.rand(64, 64)
    whole, padded = ours(image), ours(image, valid_size=torch.full((1, 2, 2), 64))
    assert (whole["boxes"] - padded["boxes"]).abs().max() > 1e-3
