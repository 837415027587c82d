"""Training in bfloat16 learns what training in float32 learns, up to what another seed would change."""

import json

import pytest
from bundle_runs import run

from clnet.phantom import PhantomSettings, make_phantom


def loss_of_two_epochs(folder, **changes):
    """The mean loss in the second epoch."""
    data = folder.parent / "data"
    run("training", dataset_dir=data, output_dir=folder, run_name="r", max_epochs=2, **changes)
    lines = [json.loads(line) for line in (folder / "r" / "metrics.jsonl").read_text().splitlines()]
    return [line["losses"]["loss"] for line in lines if "losses" in line][-1]


@pytest.mark.slow
def test_two_epochs_in_bfloat16_end_within_the_noise_of_seeds(tmp_path):
    make_phantom(tmp_path / "data", PhantomSettings(pairs=48, seed=3, rows=96, columns=64), workers=1)
    single, mixed = (
        [loss_of_two_epochs(tmp_path / f"{amp}-{seed}", seed=seed, amp=amp) for seed in (0, 1, 2)]
        for amp in (False, True)
    )
    noise = max(single) - min(single)
    for in_float32, in_bfloat16 in zip(single, mixed, strict=True):
        assert 0 < abs(in_bfloat16 - in_float32) < noise, (single, mixed)  # 0 if nothing was mixed
