"""Finished runs of the ablation with random findings, for tests."""

from ablations.kept import KeptRun
from ablations.runs import counted
from random_findings import random_datalist, random_findings

from clnet.evaluation.metrics import evaluate
from clnet.evaluation.protocols import settings_of

QUICK = settings_of("film", resamples=1)
GROUPS = ("density", "view")


def found_in(pairs=60, skill=1.0, seed=1, **findings):
    """Random pairs, and findings in them."""
    of_test = random_datalist(pairs)["test"]
    return of_test, random_findings(of_test, skill=skill, seed=seed, **findings)


def outcome_of(**findings):
    """The outcome of random findings as text, and the evaluation that it is of."""
    pairs, found = found_in(**findings)
    return counted(pairs, found, GROUPS)["outcome"], evaluate(pairs, found, QUICK)


def kept_run(setting, seed, **findings):
    part = {**counted(*found_in(seed=seed + 1, links=4, **findings), GROUPS), "seconds": 3.0}
    return KeptRun(
        {
            **{"setting": setting, "seed": seed, "epochs": 12, "git_commit": "c0de" * 10},
            **{"training_seconds": 60.0, "training_cpu_seconds": 1800.0, "data_fingerprint": "f00d"},
            **{"best": {"epoch": 8, "value": 0.75}, "validation": {"4": 0.5, "8": 0.75, "12": 0.71}},
            "settings": {},
            "machine": {"processor": "one", "cores": 2},
            "pairs": {"training": 9, "validation": 9, "test": 60},
            "sections": {"test": part, "validation": part},
        }
    )
