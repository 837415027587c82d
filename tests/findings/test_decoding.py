"""Findings in the pixels of the files, from outputs made by hand."""

import numpy as np
import pytest
import torch
from network_configs import build

from clnet.findings.decoding import DecodeFindingsd, decode_findings
from clnet.findings.types import Attention, Link
from clnet.predict.inferer import NetworkInferer
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
        "links": torch.zeros(1, 0, 2, dtype=torch.long),
        "link_scores": torch.zeros(1, 0),
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
    (found,) = decode_findings(outputs(), batch(), max_detections=10)
    # On the canvas the surer box is x 5 to 15, y 15 to 25; MLO is mirrored: x 5 to 15 was 25 to 35, doubled.
    np.testing.assert_allclose(found.cc.boxes[0], [10, 30, 30, 50], atol=1e-4)
    np.testing.assert_allclose(found.mlo.boxes[0], [50, 30, 70, 50], atol=1e-4)
    np.testing.assert_allclose(found.cc.scores, [1 / (1 + np.exp(-SURE)), 1 / (1 + np.exp(-UNSURE))])


def test_the_two_views_of_a_pair_get_a_score_for_how_well_they_fit_together_and_one_view_gets_none():
    asked = []

    def consistency(cc, mlo):
        asked.append((cc.shape, float(cc.max()), float(mlo.max())))
        return 0.75

    both = batch()
    both["image"][0, 1] = 0.5
    decode = DecodeFindingsd(max_detections=1, consistency=consistency)
    (found,) = decode({"pred": outputs(), **both})["findings"]
    (alone,) = decode({"pred": outputs(), **batch(mlo=False)})["findings"]
    assert (found.consistency, alone.consistency) == (0.75, None)
    assert asked == [((100, 40), 0.0, 0.5)], "the images on their canvases, CC first"


def test_boxes_end_at_the_edge_of_the_image():
    wide = outputs()
    wide["boxes"] = torch.tensor([0.0, 0.5, 1.0, 2.0]).expand(1, 1, 2, 2, 4)
    (found,) = decode_findings(wide, batch(), max_detections=1)
    np.testing.assert_allclose(found.cc.boxes, [[0, 0, 40, 200]], atol=1e-4)


def test_links_point_at_the_findings_and_the_dustbin_is_none():
    # Detection 1 to 0; the same again, less certain; detection 0 to the dustbin; dustbin to dustbin.
    linked = outputs(
        links=torch.tensor([[[1, 0], [1, 0], [0, 2], [2, 2]]]),
        link_scores=torch.tensor([[0.88, 0.7, 0.5, 0.99]]),
    )
    (found,) = decode_findings(linked, batch(), max_detections=10)
    # Findings are ordered by score, so detection 1 is finding 0.
    assert [(link.cc, link.mlo) for link in found.links] == [(0, 1), (1, None)]
    np.testing.assert_allclose([link.score for link in found.links], [0.88, 0.5], atol=1e-6)


def test_a_link_to_a_detection_that_was_left_out_is_one_to_the_dustbin():
    linked = outputs(links=torch.tensor([[[1, 0]]]), link_scores=torch.tensor([[0.5]]))
    (found,) = decode_findings(linked, batch(), max_detections=1)
    assert found.links == (Link(0, None, 0.5),)


def test_no_link_leads_to_a_missing_view():
    paired = outputs(links=torch.tensor([[[0, 0], [1, 1]]]), link_scores=torch.tensor([[0.1, 0.9]]))
    (found,) = decode_findings(paired, batch(mlo=False), 10)
    assert [(link.cc, link.mlo) for link in found.links] == [(0, None), (1, None)]


def test_a_missing_view_has_no_findings():
    data = DecodeFindingsd(10)({**batch(mlo=False), "pred": outputs()})
    (found,) = data["findings"]
    assert found.mlo is None
    assert len(found.cc) == 2
    assert data["lesion_boxes"] == [["cc boxes", "mlo boxes"]]


def attended():
    """Detection 1 of CC to 0 of MLO, seen most by the one link query; the dustbin is the last candidate."""
    weights = torch.tensor([[[[0.2004, 0.7, 0.0996], [0.5, 0.4, 0.1]]]])
    links, scores = torch.tensor([[[1, 0]]]), torch.tensor([[0.5]])
    return outputs(links=links, link_scores=scores, link_attention=weights)


def overlapping():
    """The second detection of a view is the surer one, and the third overlaps it by an IoU of 1/3."""
    box = torch.tensor([[0.7, 0.7, 0.1, 0.1], [0.25, 0.2, 0.2, 0.1], [0.35, 0.2, 0.2, 0.1]])
    return outputs(
        logits=torch.tensor([-1.0, SURE, 1.0]).expand(1, 1, 2, 3),
        boxes=box.expand(1, 1, 2, 3, 4),
        links=torch.tensor([[[2, 1], [0, 2]]]),
        link_scores=torch.tensor([[0.9, 0.6]]),
    )


def test_of_detections_of_one_place_the_surest_is_kept_and_takes_over_their_links():
    (found,) = decode_findings(overlapping(), batch(), max_detections=10, duplicate_iou=0.3)
    assert (len(found.cc), len(found.mlo)) == (2, 2)
    # Place 0 is detection 1, which stands for detection 2 as well; place 1 is detection 0.
    assert [(link.cc, link.mlo) for link in found.links] == [(0, 0), (1, 0)]


@pytest.mark.parametrize("duplicate_iou", [None, 0.34])
def test_detections_that_overlap_less_or_are_not_compared_are_all_kept(duplicate_iou):
    (found,) = decode_findings(overlapping(), batch(), max_detections=10, duplicate_iou=duplicate_iou)
    assert len(found.cc) == 3
    assert [(link.cc, link.mlo) for link in found.links] == [(1, 0), (2, 1)]


def test_attention_follows_the_findings_with_the_dustbin_last():
    (found,) = decode_findings(attended(), batch(), max_detections=10)
    # Findings are ordered by score, so detection 1 is finding 0.
    assert found.links == (Link(0, 1, 0.5, Attention(cc=(0.7, 0.2, 0.1), mlo=(0.4, 0.5, 0.1))),)


def test_attention_on_what_is_not_written_is_left_out():
    (found,) = decode_findings(attended(), batch(), max_detections=1)
    assert found.links[0].attention == Attention(cc=(0.7, 0.1), mlo=(0.4, 0.1))
    (found,) = decode_findings(attended(), batch(mlo=False), max_detections=10)
    assert found.links[0].attention == Attention(cc=(0.7, 0.2, 0.1), mlo=(0.1,))


@pytest.mark.parametrize("attention", [True, False])
def test_the_inferer_asks_a_linker_for_its_attention_if_told_to(attention):
    network = build("clnet", width=32).eval()
    given = NetworkInferer(attention=attention)(torch.zeros(1, 2, 32, 32), network)
    assert ("link_attention" in given) is attention


def test_the_inferer_asks_no_network_for_what_it_has_not():
    network = build("clnet", "paired_query", width=32).eval()
    assert "paired_logits" in NetworkInferer(attention=True)(torch.zeros(1, 2, 32, 32), network)
