"""Training in bfloat16 learns what training in float32 learns, up to what another seed would change."""

import json

import pytest
from bundle_runs import run

from clnet.phantom import PhantomSettings, make_phantom


@pytest.mark.slow
def test_two_epochs_in_bfloat16_end_within_the_noise_of_seeds(tmp_path):
    make_phantom(tmp_path / "data", PhantomSettings(pairs=48, seed=3, rows=96, columns=64), workers=1)
    losses = {}
    for name, changes in {"float32": {}, "bfloat16": {"amp": True}, "another seed": {"seed": 1}}.items():
        folder = tmp_path / name
        run(
            "training",
            dataset_dir=tmp_path / "data",
            output_dir=folder,
            run_name="r",
            max_epochs=2,
            **changes,
        )
        lines = [json.loads(line) for line in (folder / "r" / "metrics.jsonl").read_text().splitlines()]
        losses[name] = [line["losses"]["loss"] for line in lines if "losses" in line][-1]
    noise = abs(losses["another seed"] - losses["float32"])
    assert abs(losses["bfloat16"] - losses["float32"]) < noise
    assert losses["bfloat16"] != losses["float32"]  # else nothing was mixed
