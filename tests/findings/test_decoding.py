"""Findings in the pixels of the files, from outputs made by hand."""

import numpy as np
import pytest
import torch

from clnet.findings.decoding import DecodeFindingsd, find_lesions
from clnet.findings.types import Attention, Link
from clnet.networks import CLNet, PairedLesionQuery
from clnet.predict.inferer import LinkInferer
from clnet.preprocessing.placement import Placement

# CC is halved; MLO is mirrored about a width of 40 and halved.
CC = Placement(x_scale=0.5, y_scale=0.5)
MLO = Placement(x_scale=-0.5, x_shift=40.0, y_scale=0.5)
SURE, UNSURE = 3.0, -3.0


def outputs(**more):
    """Two detections a view on a canvas of 100 rows and 40 columns; the second is the surer one."""
    box = torch.tensor([[0.5, 0.5, 0.5, 0.1], [0.25, 0.2, 0.25, 0.1]])
    return {
        "logits": torch.tensor([[[[UNSURE, SURE], [UNSURE, SURE]]]]),
        "boxes": box.expand(1, 1, 2, 2, 4),
        **more,
    }


def batch(mlo=True):
    meta = {"rows": 200, "columns": 80}
    return {
        "pair_id": ["p"],
        "image": torch.zeros(1, 2, 100, 40),
        "placements": [[CC.to_dict(), MLO.to_dict() if mlo else None]],
        "meta": [[meta, meta if mlo else None]],
        "original_boxes": [["cc boxes", "mlo boxes"]],
    }


def test_boxes_are_in_pixels_of_the_files_the_surest_first():
    (found,) = find_lesions(outputs(), batch(), max_detections=10)
    # On the canvas the surer box is x 5 to 15, y 15 to 25; MLO is mirrored: x 5 to 15 was 25 to 35, doubled.
    np.testing.assert_allclose(found.cc.boxes[0], [10, 30, 30, 50], atol=1e-4)
    np.testing.assert_allclose(found.mlo.boxes[0], [50, 30, 70, 50], atol=1e-4)
    np.testing.assert_allclose(found.cc.scores, [1 / (1 + np.exp(-SURE)), 1 / (1 + np.exp(-UNSURE))])


def test_boxes_end_at_the_edge_of_the_image():
    wide = outputs()
    wide["boxes"] = torch.tensor([0.0, 0.5, 1.0, 2.0]).expand(1, 1, 2, 2, 4)
    (found,) = find_lesions(wide, batch(), max_detections=1)
    np.testing.assert_allclose(found.cc.boxes, [[0, 0, 40, 200]], atol=1e-4)


def test_links_point_at_the_findings_and_the_dustbin_is_none():
    similarity = torch.full((1, 1, 2, 4, 3), -1.0)
    # Detection 1 to 0; the same again, less sure; detection 0 to the dustbin; dustbin to dustbin.
    for query, (cc, mlo) in enumerate([(1, 0), (1, 0), (0, 2), (2, 2)]):
        similarity[0, 0, 0, query, cc] = similarity[0, 0, 1, query, mlo] = 1.0
    linked = outputs(link_similarity=similarity, pair_logits=torch.tensor([[[2.0, 1.0, 0.0, 5.0]]]))
    (found,) = find_lesions(linked, batch(), max_detections=10)
    # Findings are ordered by score, so detection 1 is finding 0.
    assert [(link.cc, link.mlo) for link in found.links] == [(0, 1), (1, None)]
    np.testing.assert_allclose([link.score for link in found.links], [0.880797, 0.5], atol=1e-6)


def test_pair_scores_may_refine_detections_and_do_not_unless_asked():
    similarity = torch.full((1, 1, 2, 2, 3), -1.0)
    # The unsure detections are linked with 0.9, and less surely again; nothing points at the sure ones.
    similarity[0, 0, :, :, 0] = 1.0
    linked = outputs(link_similarity=similarity, pair_logits=torch.tensor([0.9, 0.2]).logit()[None, None])
    (plain,) = find_lesions(linked, batch(), max_detections=10)
    (refined,) = find_lesions(linked, batch(), max_detections=10, pair_score_weight=0.75)
    np.testing.assert_allclose(plain.cc.scores, [0.9526, 0.0474], atol=1e-4)
    # By hand: 0.0474^0.25 · 0.9^0.75 passes 0.9526^0.25 · 0.01^0.75.
    for view in (refined.cc, refined.mlo):
        np.testing.assert_allclose(view.scores, [0.4312, 0.0312], atol=1e-4)
    np.testing.assert_array_equal(refined.cc.boxes, plain.cc.boxes[::-1])
    assert refined.links[0] == Link(0, 0, pytest.approx(0.9))


def test_a_link_to_a_detection_that_was_left_out_is_one_to_the_dustbin():
    similarity = torch.full((1, 1, 2, 1, 3), -1.0)
    similarity[0, 0, 0, 0, 1] = similarity[0, 0, 1, 0, 0] = 1.0
    linked = outputs(link_similarity=similarity, pair_logits=torch.zeros(1, 1, 1))
    (found,) = find_lesions(linked, batch(), max_detections=1)
    assert found.links == (Link(0, None, 0.5),)


def test_a_paired_query_is_a_link_by_itself():
    (found,) = find_lesions(outputs(paired_logits=torch.tensor([[UNSURE, SURE]])), batch(), 10)
    assert [(link.cc, link.mlo) for link in found.links] == [(0, 0), (1, 1)]


def test_no_link_leads_to_a_missing_view():
    paired = outputs(paired_logits=torch.tensor([[UNSURE, SURE]]))
    (found,) = find_lesions(paired, batch(mlo=False), 10)
    assert [(link.cc, link.mlo) for link in found.links] == [(0, None), (1, None)]


def test_a_missing_view_has_no_findings():
    data = DecodeFindingsd()({**batch(mlo=False), "pred": outputs()})
    (found,) = data["findings"]
    assert found.mlo is None
    assert len(found.cc) == 2
    assert data["lesion_boxes"] == [["cc boxes", "mlo boxes"]]


def attended():
    """Detection 1 of CC to 0 of MLO, seen most by the one link query; the dustbin is the last candidate."""
    similarity = torch.full((1, 1, 2, 1, 3), -1.0)
    similarity[0, 0, 0, 0, 1] = similarity[0, 0, 1, 0, 0] = 1.0
    weights = torch.tensor([[0.2004, 0.7, 0.0996], [0.5, 0.4, 0.1]]).reshape(1, 1, 2, 1, 3)
    return outputs(link_similarity=similarity, pair_logits=torch.zeros(1, 1, 1), link_attention=weights)


def test_attention_follows_the_findings_with_the_dustbin_last():
    (found,) = find_lesions(attended(), batch(), max_detections=10)
    # Findings are ordered by score, so detection 1 is finding 0.
    assert found.links == (Link(0, 1, 0.5, Attention(cc=(0.7, 0.2, 0.1), mlo=(0.4, 0.5, 0.1))),)


def test_attention_on_what_is_not_written_is_left_out():
    (found,) = find_lesions(attended(), batch(), max_detections=1)
    assert found.links[0].attention == Attention(cc=(0.7, 0.1), mlo=(0.4, 0.1))
    (found,) = find_lesions(attended(), batch(mlo=False), max_detections=10)
    assert found.links[0].attention == Attention(cc=(0.7, 0.2, 0.1), mlo=(0.1,))


@pytest.mark.parametrize("attention", [True, False])
def test_the_inferer_asks_a_linker_for_its_attention_if_told_to(attention):
    network = CLNet(width=32, object_queries=4, link_queries=2, decoder_layers=1).eval()
    given = LinkInferer(attention)(torch.zeros(1, 2, 32, 32), network)
    assert ("link_attention" in given) is attention


def test_the_inferer_asks_no_network_for_what_it_has_not():
    network = PairedLesionQuery(width=32, paired_queries=4, decoder_layers=1).eval()
    assert "paired_logits" in LinkInferer(attention=True)(torch.zeros(1, 2, 32, 32), network)
