"""Clipped gradients, with and without accumulation."""

import pytest
import torch
from monai.engines import SupervisedTrainer

from clnet.runs.engine import GradientClip

EXAMPLES = torch.rand(10, 3, generator=torch.Generator().manual_seed(0))


def trained(batch_size, accumulation_steps, max_norm):
    """The weights after an epoch, and the norm of the last step's gradient."""
    torch.manual_seed(0)
    network = torch.nn.Linear(3, 1)
    SupervisedTrainer(
        device="cpu",
        max_epochs=1,
        train_data_loader=EXAMPLES.split(batch_size),
        network=network,
        optimizer=torch.optim.SGD(network.parameters(), lr=1.0),
        loss_function=lambda outputs, _: outputs.square().mean(),
        prepare_batch=lambda batch, device, non_blocking, **_: (batch, None),
        train_handlers=[GradientClip(network, max_norm)],
        decollate=False,
        accumulation_steps=accumulation_steps,
    ).run()
    return network.weight.detach(), torch.cat([w.grad.flatten() for w in network.parameters()]).norm()


def test_accumulated_batches_are_clipped_as_one_large_batch():
    large, norm = trained(batch_size=10, accumulation_steps=1, max_norm=0.1)
    small, same = trained(batch_size=2, accumulation_steps=5, max_norm=0.1)
    torch.testing.assert_close(small, large)
    assert norm == pytest.approx(0.1, rel=1e-4) == same
    free, _ = trained(batch_size=2, accumulation_steps=5, max_norm=1e9)
    assert not torch.allclose(free, large)


def test_the_last_step_of_an_epoch_is_clipped_with_fewer_batches():
    _, norm = trained(batch_size=2, accumulation_steps=3, max_norm=0.01)
    assert norm == pytest.approx(0.01, rel=1e-4)
