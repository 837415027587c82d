"""The moving average of the weights: its recursion, buffers, and that it survives an interruption."""

from types import SimpleNamespace

import pytest
import torch
from ignite.engine import Engine
from monai.engines import SupervisedTrainer
from small_training import small_evaluator

from clnet.runs.averaging import MovingAverage, averaged_network
from clnet.runs.checkpoints import Checkpoints


def at(iteration):
    """An engine after this iteration."""
    return SimpleNamespace(state=SimpleNamespace(iteration=iteration))


def averaging_of(network, momentum):
    return MovingAverage(network, averaged_network(network, momentum), momentum)


def test_the_average_follows_the_recursion():
    network = torch.nn.Linear(1, 1, bias=False)
    network.weight.data.fill_(2.0)
    averaging = averaging_of(network, momentum=0.25)
    expected = 2.0
    for iteration in range(1, 60):
        weight = float(iteration % 7)
        network.weight.data.fill_(weight)
        averaging(at(iteration))
        share = 9 / (iteration + 9) if iteration < 27 else 0.25  # 9 / (27 + 9) is ¼
        expected += share * (weight - expected)
        assert averaging.average.weight.item() == pytest.approx(expected, abs=1e-5)
        assert network.weight.item() == weight, "the weights that learn are left alone"
    assert not averaging.average.weight.requires_grad


def test_buffers_are_those_of_the_network():
    network = torch.nn.BatchNorm1d(3)
    averaging = averaging_of(network, momentum=0.1)
    for iteration in range(1, 4):
        network(torch.randn(5, 3))
        averaging(at(iteration))
    assert torch.equal(averaging.average.running_var, network.running_var)
    assert averaging.average.num_batches_tracked == 3


def test_a_wrapped_network_is_averaged_without_its_wrapping():
    class Wrapped(torch.nn.Module):  # as DistributedDataParallel does
        def __init__(self):
            super().__init__()
            self.module = torch.nn.Linear(2, 1)

    wrapped = Wrapped()
    averaging = averaging_of(wrapped, momentum=0.1)
    assert set(averaging.average.state_dict()) == {"weight", "bias"}
    assert averaging.network is wrapped.module is averaged_network(wrapped, momentum=1.0)


def test_with_a_momentum_of_1_there_is_no_average():
    network = torch.nn.Linear(2, 1)
    averaging, engine = averaging_of(network, momentum=1.0), Engine(lambda *_: None)
    averaging.attach(engine)
    assert averaging.average is network
    assert network.weight.requires_grad
    assert not engine.has_event_handler(averaging)


class Sampler:
    """Tells the epoch by which the batches are drawn, as that of the training data."""

    epoch = 0


class Batches:
    """Five batches per epoch, drawn by the number of the epoch."""

    def __init__(self, sampler):
        self.sampler = sampler

    def __len__(self):
        return 5

    def __iter__(self):
        generator = torch.Generator().manual_seed(self.sampler.epoch)
        self.sampler.epoch += 1
        for _ in range(5):
            yield {"image": torch.randn(4, 3, generator=generator), "label": torch.ones(4, 1)}


def train(folder, max_epochs, resume=False):
    """Train a small network with batch norm; the network and its average."""
    torch.manual_seed(0)
    network = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 1))
    optimizer = torch.optim.AdamW(network.parameters(), lr=0.1)
    schedule = torch.optim.lr_scheduler.ConstantLR(optimizer)
    averaging, sampler = averaging_of(network, momentum=0.05), Sampler()
    checkpoints = Checkpoints(
        folder, network, averaging.average, optimizer, schedule, sampler, small_evaluator(), resume=resume
    )
    SupervisedTrainer(
        device="cpu",
        max_epochs=max_epochs,
        train_data_loader=Batches(sampler),
        network=network,
        optimizer=optimizer,
        loss_function=torch.nn.functional.mse_loss,
        train_handlers=[averaging, checkpoints],
        decollate=False,
    ).run()
    return network.state_dict(), averaging.average.state_dict()


def test_a_resumed_average_is_that_of_an_uninterrupted_run_to_the_bit(tmp_path):
    (tmp_path / "whole").mkdir()
    (tmp_path / "cut").mkdir()
    whole = train(tmp_path / "whole", max_epochs=6)
    half = train(tmp_path / "cut", max_epochs=3)
    resumed = train(tmp_path / "cut", max_epochs=6, resume=True)
    for uninterrupted, after in zip(whole, resumed, strict=True):
        assert all(torch.equal(after[name], tensor) for name, tensor in uninterrupted.items())
    assert not torch.equal(half[1]["0.weight"], resumed[1]["0.weight"])
    assert not torch.equal(whole[0]["0.weight"], whole[1]["0.weight"])
