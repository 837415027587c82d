"""Finished runs of the ablation with random findings, for tests."""

from ablations.kept import KeptRun
from ablations.outcome import image_views, pack
from random_findings import random_datalist, random_findings

from clnet.evaluation.metrics import evaluate
from clnet.evaluation.protocols import EvaluationSettings

QUICK = EvaluationSettings(resamples=1)


def outcome_of(skill=1.0, seed=1, pairs=60, **findings):
    """The outcome of random findings as text, and the evaluation that it is of."""
    datalist = random_datalist(pairs)
    found = random_findings(datalist["test"], skill=skill, seed=seed, **findings)
    evaluation = evaluate(datalist["test"], found, QUICK)
    return pack(evaluation.record, image_views(datalist["test"])), evaluation


def kept_run(setting, seed, **findings):
    text, _ = outcome_of(seed=seed + 1, **findings)
    part = {"outcome": text, "seconds": 3.0, "metrics": {}}
    return KeptRun(
        {
            **{"setting": setting, "seed": seed, "epochs": 12, "git_commit": "c0de" * 10},
            **{"training_seconds": 60.0, "best": {"epoch": 8}, "data_fingerprint": "f00d", "settings": {}},
            "machine": {"processor": "one", "cores": 2},
            "pairs": {"training": 9, "validation": 9, "test": 60},
            "sections": {"test": part, "validation": part},
        }
    )
