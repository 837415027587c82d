"""Dropout without a mask drops what dropout should, and the same in both passes."""

import pytest
import torch

from clnet.ops import dropout as module
from clnet.ops.dropout import AddDropout, add_dropout, fused_dropout, relu_dropout

P = 0.1


def dropped(seed, numbers=200_000, p=P):
    return fused_dropout(torch.ones(numbers), p, torch.tensor(seed)) == 0


@pytest.mark.parametrize("p", [0.01, 0.1, 0.5, 0.9])
def test_the_share_p_is_dropped_and_the_rest_scaled(p):
    out = fused_dropout(torch.full((1000, 500), 3.0), p, torch.tensor(2**62 + 7))
    share = (out == 0).double().mean().item()
    assert abs(share - p) < 5 * (p * (1 - p) / out.numel()) ** 0.5  # five standard deviations
    torch.testing.assert_close(out[out != 0], torch.full_like(out[out != 0], 3 / (1 - p)))


@pytest.mark.parametrize("apart", [1, 2, 8, 256, 1024])
def test_places_are_dropped_independently(apart):
    both = (dropped(3)[apart:] & dropped(3)[:-apart]).double().mean().item()
    assert abs(both - P**2) < 5 * (P**2 / 200_000) ** 0.5


@pytest.mark.parametrize("other", [2, 1 + 2**32, 2**62])
def test_seeds_are_independent_of_each_other(other):
    both = (dropped(1) & dropped(other)).double().mean().item()
    assert abs(both - P**2) < 5 * (P**2 / 200_000) ** 0.5


def test_the_gradient_is_dropped_where_the_number_was():
    x = (torch.rand(300, 70) + 1).requires_grad_()
    out = fused_dropout(x, P, torch.tensor(1))
    (grad,) = torch.autograd.grad(out.sum(), x)
    torch.testing.assert_close(grad, (out / x).detach())
    assert 0 < (grad == 0).float().mean() < 0.2


def test_torch_s_seed_repeats_a_run_and_calls_differ():
    x, update = torch.rand(2, 64, 64)
    torch.manual_seed(5)
    first, second = AddDropout(P)(x, update), AddDropout(P)(x, update)
    torch.manual_seed(5)
    assert torch.equal(AddDropout(P)(x, update), first)
    assert not torch.equal(first, second)


def test_neither_threads_nor_strides_matter():
    x, seed = torch.rand(600, 500), torch.tensor(11)
    expected = fused_dropout(x, P, seed)
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    assert torch.equal(fused_dropout(x, P, seed), expected)
    torch.set_num_threads(before)
    assert torch.equal(fused_dropout(x.t().contiguous().t(), P, seed), expected)


def test_the_sum_is_that_of_x_and_what_dropout_leaves_with_both_gradients():
    x, update = torch.randn(2, 300, 70)
    seed, weight = torch.tensor(2**40 + 3), torch.randn(300, 70)
    ours, plain = [(x.clone().requires_grad_(), update.clone().requires_grad_()) for _ in range(2)]
    found, expected = add_dropout(*ours, P, seed), plain[0] + fused_dropout(plain[1], P, seed)
    torch.testing.assert_close(found, expected)
    (found * weight).sum().backward()
    (expected * weight).sum().backward()
    for one, other in zip(ours, plain, strict=True):
        assert torch.equal(one.grad, other.grad)


def test_relu_and_dropout_in_one_are_dropout_of_the_relu():
    x, out = torch.randn(2, 300, 70)
    relu_dropout(x, out, P, 2**40 + 3)
    assert torch.equal(out, fused_dropout(torch.relu(x), P, torch.tensor(2**40 + 3)))


def test_not_a_number_stays_what_it_is():
    x, out = torch.full((2, 1000), torch.nan)
    assert fused_dropout(x, P, torch.tensor(1)).isnan().all()
    assert add_dropout(torch.ones(1000), x, P, torch.tensor(1)).isnan().all()
    out.zero_()
    relu_dropout(x, out, P, 1)
    assert out.isnan().all()


@pytest.mark.parametrize(("p", "training"), [(P, False), (0.0, True), (1.0, True)])
def test_all_or_nothing_is_what_torch_makes_of_it(p, training):
    x, update = torch.randn(2, 5, 4)
    expected = torch.nn.Dropout(p).train(training)
    assert torch.equal(AddDropout(p).train(training)(x, update), x + expected(update))


@pytest.mark.parametrize("reason", ["no numba", "double precision"])
def test_where_the_kernel_cannot_be_taken_torch_s_own_is(reason, monkeypatch):
    x = torch.rand(100, 100, dtype=torch.float64 if reason == "double precision" else torch.float32)
    if reason == "no numba":
        monkeypatch.setattr(module, "compiled_kernels", lambda: None)
    torch.manual_seed(0)
    found = AddDropout(P)(x, x)
    torch.manual_seed(0)
    assert torch.equal(found, x + torch.nn.functional.dropout(x, P))


def test_an_update_of_another_shape_or_precision_is_added_as_torch_does():
    x, update = torch.rand(3, 4), torch.ones(4)
    torch.manual_seed(0)
    found = AddDropout(P)(x, update), AddDropout(P)(x.double(), torch.ones(3, 4))
    torch.manual_seed(0)
    expected = (
        x + torch.nn.functional.dropout(update, P),
        x + torch.nn.functional.dropout(torch.ones(3, 4), P),
    )
    torch.testing.assert_close(found[0], expected[0])
    torch.testing.assert_close(found[1], expected[1].double())


def test_the_operator_keeps_the_rules_of_pytorch():
    x, update = (torch.rand(3, 4, requires_grad=True) for _ in range(2))
    torch.library.opcheck(fused_dropout, (x, P, torch.tensor(1)))
    torch.library.opcheck(add_dropout, (x, update, P, torch.tensor(1)))
