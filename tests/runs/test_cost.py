"""What a training costs, against a training whose times are known."""

import subprocess
import sys

import pytest
from small_training import small_evaluator, small_trainer

from clnet.runs.cost import Cost, peak_memory


def test_speed_and_waiting_are_those_of_the_training_without_validation():
    evaluator = small_evaluator()
    evaluator.data_loader.seconds_to_load = 0.1  # would more than double the time, were it counted
    trainer = small_trainer([Cost()], evaluator, max_epochs=2, seconds_to_load=0.02, seconds_to_train=0.06)
    trainer.run()
    cost = trainer.state.cost
    # 8 iterations of 0.02 s and 0.06 s, 3 pairs each; sleeping may take longer on a busy machine.
    assert 0.64 <= cost["training_seconds"] < 1.4
    assert cost["pairs_per_second"] == pytest.approx(24 / cost["training_seconds"])
    assert 0.16 / 1.4 <= cost["data_loading_share"] < 0.5
    assert "peak_gpu_memory_gb" not in cost


def test_the_first_batch_of_an_epoch_is_waited_for_too():
    trainer = small_trainer([Cost()], max_epochs=2, seconds_to_load=0.05)
    trainer.run()
    assert trainer.state.cost["data_loading_share"] > 0.8


@pytest.mark.slow
def test_peak_memory_is_that_of_this_process_in_bytes():
    """Not that of a larger process that started it, with which the operating system's count begins."""
    larger = b"x" * 1_200_000_000
    code = (
        "from clnet.runs.cost import peak_memory; before = peak_memory(); x = b'x' * 400_000_000; del x; "
        "print(before, peak_memory())"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert peak_memory() > len(larger)
    before, after = map(int, said.stdout.split())
    assert before < 1_000_000_000
    assert 300_000_000 < after - before < 500_000_000
