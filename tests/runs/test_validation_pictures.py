"""Pictures of a validation show what its metric counts, and nothing that names a patient."""

from types import SimpleNamespace

import pydicom
import pytest

from clnet.data.header import BURNED_IN
from clnet.data.reader import read_image
from clnet.evaluation.report import _picture
from clnet.phantom import PhantomSettings, make_phantom
from clnet.runs.recall_metric import MeanRecall
from clnet.runs.validation_pictures import ValidationPictures


@pytest.fixture
def burnt_and_clean(tmp_path):
    """Two images of a phantom, one of which says that text is burnt into it."""
    datalist = make_phantom(tmp_path, PhantomSettings(2, rows=160, columns=112), workers=1)
    views = [
        view for section in datalist.sections.values() for pair in section for view in pair.views.values()
    ]
    dataset = pydicom.dcmread(views[0].image)
    dataset.BurnedInAnnotation = "YES"
    dataset.save_as(views[0].image)
    return views[0], views[1]


def test_a_report_has_no_picture_of_an_image_with_text_burnt_into_it(burnt_and_clean):
    burnt, clean = burnt_and_clean
    assert _picture(burnt) is None
    assert _picture(clean).rows == 160


def test_examples_for_mlflow_leave_out_pairs_with_text_burnt_into_an_image(burnt_and_clean, tmp_path):
    metas = [{"warnings": list(read_image(view.image).header.warnings)} for view in burnt_and_clean]
    assert any(BURNED_IN in word for word in metas[0]["warnings"])
    state = SimpleNamespace(
        output={"findings": ["burnt in MLO", "clean", "one view"], "lesion_boxes": [[[1]]] * 3},
        batch={"meta": [[metas[1], metas[0]], [metas[1], metas[1]], [None, metas[1]]]},
    )
    pictures = ValidationPictures(tmp_path, metric=None)
    pictures._keep(SimpleNamespace(state=state))
    assert [found for found, _, _ in pictures._kept] == ["clean", "one view"]


@pytest.mark.parametrize(("count_duplicates", "recall"), [(True, 0.5), (False, 1.0)])
def test_the_curve_counts_duplicates_as_the_metric_does(tmp_path, monkeypatch, count_duplicates, recall):
    """In one view a mass with a duplicate, in the other one that is found with a lower score: R@0.25."""
    metric = MeanRecall(iou=0.5, count_duplicates=count_duplicates)
    mass = [0, 0, 10, 10]
    pair = {
        "pair_id": "p",
        "present": [True, True],
        "detection_boxes": [[mass, mass], [mass]],
        "detection_scores": [[0.9, 0.8], [0.7]],
        "lesion_boxes": [[mass], [mass]],
    }
    metric.update([pair])
    drawn = []
    monkeypatch.setattr("clnet.runs.validation_pictures.draw_froc", lambda panels, *_: drawn.append(panels))
    state = SimpleNamespace(epoch=1, best_metric_epoch=1)
    ValidationPictures(tmp_path, metric)._draw(SimpleNamespace(state=state))
    curve = drawn[0]["validation, epoch 1"]["IoU ≥ 0.5"]
    shown = dict(zip(curve["fpi"], curve["value"], strict=True))
    assert shown[0.25] == metric.table()[0.5][0.25] == recall
