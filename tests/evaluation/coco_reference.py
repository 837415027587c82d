"""R@t by pycocotools, which counts duplicates as false positives."""

import contextlib
import io

import numpy as np
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval


def coco_files(results, file_names=None):
    """From `ImageResult`s to the content of a COCO annotation file and of a COCO results file."""

    def boxes(of):
        flat = [(n, box) for n, result in enumerate(results) for box in of(result).tolist()]
        return [
            {
                "image_id": n + 1,
                "category_id": 1,
                "bbox": [box[0], box[1], box[2] - box[0], box[3] - box[1]],
            }
            for n, box in flat
        ]

    lesions, found = boxes(lambda result: result.lesions), boxes(lambda result: result.boxes)
    for number, entry in enumerate(lesions, start=1):
        entry |= {"id": number, "area": entry["bbox"][2] * entry["bbox"][3], "iscrowd": 0}
    for entry, score in zip(found, np.concatenate([result.scores for result in results]), strict=True):
        entry["score"] = float(score)
    names = file_names or [f"{n}.png" for n in range(len(results))]
    truth = {
        "info": {},
        "images": [{"id": n, "file_name": name} for n, name in enumerate(names, start=1)],
        "annotations": lesions,
        "categories": [{"id": 1, "name": "mass"}],
    }
    return truth, found


def coco_recalls(truth, found, rates, iou):
    """For each rate the best recall among the scores with at most so many false positives per image."""
    with contextlib.redirect_stdout(io.StringIO()):
        coco = COCO()
        coco.dataset = truth
        coco.createIndex()
        evaluation = COCOeval(coco, coco.loadRes(found), "bbox")
        evaluation.params.iouThrs = np.array([iou])
        evaluation.params.areaRng, evaluation.params.areaRngLbl = [[0, 1e10]], ["all"]
        evaluation.params.maxDets = [1000]
        evaluation.evaluate()
    outcomes = sorted(
        (
            outcome
            for one in evaluation.evalImgs
            if one
            for outcome in zip(one["dtScores"], np.array(one["dtMatches"][0]) > 0, strict=True)
        ),
        reverse=True,
    )
    recalls = []
    for rate in rates:
        hits = wrong = best = 0
        for _, hit in outcomes:
            hits, wrong = hits + hit, wrong + (not hit)
            if wrong / len(truth["images"]) <= rate:
                best = hits / len(truth["annotations"])
        recalls.append(best)
    return recalls
