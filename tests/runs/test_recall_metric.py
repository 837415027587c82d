"""R@t as a metric of an engine, in one process and in two."""

import json
import math
import sys

import ignite.distributed as idist
import numpy as np
import pytest
import torch
from ignite.engine import Engine
from random_findings import random_datalist, random_findings
from torch import multiprocessing

from clnet.evaluation.metrics import evaluate
from clnet.evaluation.protocols import EvaluationSettings
from clnet.runs.recall_metric import MeanRecall

START = "fork" if sys.platform == "linux" else "spawn"  # what is imported already need not be imported again


def outputs(count=24):
    """Pairs as the metric takes them, and the same as pairs and findings."""
    pairs = random_datalist(count)["test"]
    findings = random_findings(pairs)
    made = []
    for pair, found in zip(pairs, findings, strict=True):
        views = [(pair.views.get(name), found.views.get(name)) for name in ("cc", "mlo")]
        nothing = torch.zeros(0, 4)
        made.append(
            {
                "pair_id": pair.pair_id,
                "present": torch.tensor([view is not None for view, _ in views]),
                "detection_boxes": [torch.tensor(f.boxes) if f else nothing for _, f in views],
                "detection_scores": [torch.tensor(f.scores) if f else nothing[:, 0] for _, f in views],
                "lesion_boxes": [torch.tensor(view.boxes) if view else nothing for view, _ in views],
            }
        )
    return made, pairs, findings


def run(metric, batches):
    engine = Engine(lambda _, batch: batch)
    metric.attach(engine, "mean_recall")
    engine.run(batches)
    return engine.state.metrics


def test_it_is_what_the_evaluation_says():
    made, pairs, findings = outputs()
    got = run(MeanRecall(), [made[:10], made[10:]])
    expected = evaluate(pairs, findings, EvaluationSettings(resamples=1)).metrics["detection"]
    assert got["mean_recall"] == pytest.approx(expected["iou=0.5"]["mean_recall"]["value"])
    for iou in ("0.2", "0.5"):
        for rate, entry in expected[f"iou={iou}"]["recall"].items():
            assert got[f"recall_iou{iou}_fpi{rate}"] == pytest.approx(entry["value"])


def test_a_pair_that_comes_twice_counts_once_and_an_epoch_begins_anew():
    made, *_ = outputs()
    metric = MeanRecall()
    once = run(metric, [made])
    assert run(metric, [made, made[:5]]) == once


def test_the_unit_of_the_boxes_does_not_matter():
    made, *_ = outputs()
    scale = torch.tensor([1 / 1000, 1 / 700, 1 / 1000, 1 / 700])
    normalised = [
        {
            **pair,
            **{key: [boxes * scale for boxes in pair[key]] for key in ("detection_boxes", "lesion_boxes")},
        }
        for pair in made
    ]
    assert run(MeanRecall(), [normalised]) == run(MeanRecall(), [made])


def test_the_overlap_and_the_rates_of_the_mean_may_be_chosen():
    made, *_ = outputs()
    got = run(MeanRecall(iou=0.3, mean_rates=(0.1, 3)), [made])
    assert got["mean_recall"] == pytest.approx(
        np.mean([got["recall_iou0.3_fpi0.1"], got["recall_iou0.3_fpi3"]])
    )


def test_without_lesions_there_is_no_mean():
    made, *_ = outputs()
    negative = [pair for pair in made if not any(map(len, pair["lesion_boxes"]))]
    assert math.isnan(run(MeanRecall(), [negative])["mean_recall"])


def one_process(rank, folder):
    torch.set_num_threads(1)
    idist.initialize("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=2)
    made, *_ = outputs()
    # Unequal parts, and pair 0 in both, as a sampler pads the last batch.
    mine = made[:17] if rank == 0 else [*made[17:], made[0]]
    got = run(MeanRecall(), [mine])
    with open(f"{folder}/{rank}.json", "w") as file:  # noqa: PTH123
        json.dump(got, file)
    idist.finalize()


@pytest.mark.slow
def test_two_processes_give_the_result_of_one(tmp_path):
    multiprocessing.start_processes(one_process, (str(tmp_path),), nprocs=2, start_method=START)
    made, *_ = outputs()
    expected = run(MeanRecall(), [made])
    for rank in range(2):
        assert json.loads((tmp_path / f"{rank}.json").read_text()) == expected
