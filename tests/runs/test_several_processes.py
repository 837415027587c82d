"""Two processes with half a batch each learn what one process with the whole batch learns."""

import subprocess
import sys
from pathlib import Path

import ignite.distributed as idist
import pytest
import torch
from torch import multiprocessing
from whole_loss import compare

from clnet.distributed import (
    ProcessesError,
    first_decides,
    gather,
    is_first_process,
    join_processes,
    leave_processes,
    mean_count,
)

PRESENT = torch.ones(2, 2, dtype=torch.bool)
START = "fork" if sys.platform == "linux" else "spawn"  # what is imported already need not be imported again


def batch() -> tuple[dict[str, torch.Tensor], list[dict]]:
    """Four breasts: the first half has 5 boxes of 3 lesions, the second half has none but one."""
    generator = torch.Generator().manual_seed(0)

    def rand(*shape: int) -> torch.Tensor:
        return torch.rand(*shape, generator=generator)

    outputs = {
        "logits": rand(2, 4, 2, 5) * 4 - 2,
        "boxes": rand(2, 4, 2, 5, 4) * 0.5 + 0.1,
        "link_similarity": rand(2, 4, 2, 3, 6) * 2 - 1,
        "pair_logits": rand(2, 4, 3) * 4 - 2,
        "match_logits": rand(4, 6, 6) * 4 - 2,
    }
    ids = [([1, 2], [1]), ([7], [7]), ([], []), ([], [3])]
    targets = [
        {
            "boxes": [rand(len(view), 4) * 0.5 + 0.1 for view in views],
            "lesion_ids": [torch.tensor(view, dtype=torch.long) for view in views],
        }
        for views in ids
    ]
    return outputs, targets


def half(outputs: dict[str, torch.Tensor], rank: int) -> dict[str, torch.Tensor]:
    part = slice(2 * rank, 2 * rank + 2)
    return {
        name: (output[part] if name == "match_logits" else output[:, part]).clone().requires_grad_()
        for name, output in outputs.items()
    }


def one_process(rank: int, folder: str) -> None:
    torch.set_num_threads(1)
    idist.initialize("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=2)
    outputs, targets = batch()
    mine = half(outputs, rank)
    parts = compare(mine, targets[2 * rank : 2 * rank + 2], PRESENT)
    parts["loss"].backward()
    result = {
        "parts": {name: part.item() for name, part in parts.items()},
        "gradients": {name: output.grad for name, output in mine.items()},
        "gathered": [gather({"rank": rank}), gather([rank] * rank), gather(rank), gather(None)],
        "decided": first_decides(lambda: f"by {rank}"),
    }
    torch.save(result, f"{folder}/{rank}.pt")
    idist.finalize()


@pytest.mark.slow
def test_two_processes_have_the_loss_of_one_and_agree(tmp_path):
    multiprocessing.start_processes(one_process, (str(tmp_path),), nprocs=2, start_method=START)
    halves = [torch.load(tmp_path / f"{rank}.pt", weights_only=True) for rank in range(2)]

    outputs, targets = batch()
    whole = {name: output.requires_grad_() for name, output in outputs.items()}
    parts = compare(whole, targets, torch.ones(4, 2, dtype=torch.bool))
    parts["loss"].backward()

    for name, part in parts.items():
        mean = (halves[0]["parts"][name] + halves[1]["parts"][name]) / 2
        assert mean == pytest.approx(part.item(), rel=1e-5), name
    for rank in range(2):
        for name, gradient in half({name: output.grad for name, output in whole.items()}, rank).items():
            # Gradients are averaged over processes, so each counts half.
            torch.testing.assert_close(halves[rank]["gradients"][name] / 2, gradient.detach())
        assert halves[rank]["gathered"] == [[{"rank": 0}, {"rank": 1}], [[], [1]], [0, 1], [None, None]]
        assert halves[rank]["decided"] == "by 0"


def test_a_process_by_itself_is_the_first_of_one():
    assert is_first_process()
    assert gather("alone") == ["alone"]
    assert gather(torch.ones(2))[0].tolist() == [1, 1]
    assert first_decides(lambda: 3) == 3
    leave_processes()  # there is nobody to wait for


def test_processes_are_started_by_torchrun(monkeypatch):
    monkeypatch.delenv("RANK", raising=False)
    with pytest.raises(ProcessesError, match="torchrun --nproc_per_node"):
        join_processes()


def test_a_count_is_at_least_one():
    assert [mean_count(count, torch.zeros(1)).item() for count in (0, 1, 5)] == [1.0, 1.0, 5.0]


LEAVES_AND_ENDS = """
import atexit, sys
from pathlib import Path

import torch

def tell_threads():
    names = [file.read_text().strip() for file in Path("/proc/self/task").glob("*/comm")]
    print("threads:", *names, flush=True)

atexit.register(tell_threads)  # the first to be registered is the last to be called

from clnet.distributed import join_processes, leave_processes

def work():
    join_processes()
    network = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 1))
    network.itself = [network]
    network(torch.ones(2, 4)).sum().backward()
    leave_processes()

work()
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="threads are listed by Linux alone")
def test_no_thread_of_gloo_outlives_the_work(tmp_path):
    # One that does can abort the process while Python ends.
    script = tmp_path / "script.py"
    script.write_text(LEAVES_AND_ENDS)
    start = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"]
    done = subprocess.run([*start, str(script)], capture_output=True, text=True, check=True, timeout=100)
    assert done.stdout.count("threads: python") == 2
    assert "gloo" not in done.stdout
