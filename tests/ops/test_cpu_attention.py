"""The fused operator gives what the reference gives, whatever the shapes, places and threads."""

import multiprocessing
import os

import pytest
import torch
from attention_inputs import by_reference, gradients, random_inputs
from hypothesis import given, settings
from hypothesis import strategies as st

from clnet.ops.cpu_attention import fused_attention, fused_attention_backward


@given(
    seed=st.integers(0, 2**16),
    batch=st.integers(0, 3),
    queries=st.integers(0, 5),
    heads=st.integers(1, 3),
    channels=st.sampled_from([1, 3, 8, 16]),
    points=st.integers(1, 3),
    shapes=st.lists(st.tuples(st.integers(1, 7), st.integers(1, 7)), min_size=1, max_size=4),
    shared=st.booleans(),
)
@settings(max_examples=150)
def test_output_and_gradients_are_those_of_the_reference(shapes, **sizes):
    inputs = random_inputs(shapes=[size for shape in shapes for size in shape], **sizes)
    torch.testing.assert_close(fused_attention(*inputs), by_reference(*inputs))
    if sizes["batch"] * sizes["queries"] == 0:
        return  # grid_sample has no gradient of nothing
    for found, expected in zip(
        gradients(fused_attention, inputs), gradients(by_reference, inputs), strict=True
    ):
        torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("channels", [16, 32])
def test_single_precision_is_1e_5_from_the_reference_in_double_precision(channels):
    inputs = random_inputs(queries=50, heads=8, channels=channels, points=4, shapes=[32, 17, 16, 9])
    value, shapes, *others = inputs
    found = fused_attention(value.float(), shapes, *(tensor.float() for tensor in others))
    torch.testing.assert_close(found.double(), by_reference(*inputs), atol=1e-5, rtol=0)


@pytest.mark.parametrize("shared", [True, False], ids=["shared centres", "centres of each image"])
def test_gradients_are_right(shared):
    value, shapes, *others = random_inputs(shared=shared)
    leaves = [tensor.requires_grad_() for tensor in (value, *others)]
    assert torch.autograd.gradcheck(lambda v, *rest: fused_attention(v, shapes, *rest), leaves)


@pytest.mark.parametrize("given", [torch.bfloat16, torch.float16])
def test_half_precision_is_computed_in_single_precision_and_given_back_in_half(given):
    """As under autocast: linear layers give half precision, centres are float32."""
    value, shapes, centres, offsets, weights = random_inputs(dtype=torch.float32)
    half = (value.to(given), shapes, centres, offsets.to(given), weights.to(given))
    single = [tensor.float() if isinstance(tensor, torch.Tensor) else tensor for tensor in half]
    assert torch.equal(fused_attention(*half), fused_attention(*single).to(given))
    found, expected = gradients(fused_attention, half), gradients(fused_attention, single)
    assert [grad.dtype for grad in found] == [given, torch.float32, given, given]
    for grad, exact in zip(found, expected, strict=True):
        torch.testing.assert_close(grad.float(), exact, atol=0.02, rtol=0.02)


@pytest.mark.parametrize("place", [-1.0, 0.0, 1.0, 3.0, 4.0 - 2.0**-22, 4.0, -(2.0**-24)])
def test_places_on_the_very_edge_of_cells_are_those_of_the_reference(place):
    """In float32, where adding 1 to the last place before an edge rounds over it."""
    value = torch.rand(1, 16, 1, 2) + 1
    centres = torch.tensor([[place, 1.25], [1.25, place], [place, place]]).view(1, 3, 1, 2)
    inputs = (value, [4, 4], centres, torch.zeros(1, 3, 1, 1, 1, 2), torch.ones(1, 3, 1, 1, 1))
    double = [tensor.double() if isinstance(tensor, torch.Tensor) else tensor for tensor in inputs]
    torch.testing.assert_close(fused_attention(*inputs).double(), by_reference(*double), atol=1e-5, rtol=0)


def offset_gradients(function, inputs, shift=0.0):
    value, shapes, centres, offsets, weights = inputs
    asking = (offsets + shift).requires_grad_()
    return torch.autograd.grad(function(value, shapes, centres, asking, weights).sum(), asking)[0]


@pytest.mark.parametrize("function", [fused_attention, by_reference])
def test_gradients_of_places_are_those_in_double_precision_on_one_side_of_the_edge(function):
    """The slope jumps at the edge of a cell; on which side of it a place lies is up to rounding.

    So the two paths may differ by the whole jump, but only there.
    """
    inputs = random_inputs(queries=500, heads=2, points=4, shapes=[128, 64, 64, 32], dtype=torch.float32)
    _, _, centres, offsets, _ = inputs
    places = centres[:, :, None, :, None] + offsets
    offsets[:, ::2] += (places.round() - places)[:, ::2]  # to an edge, or a rounding away from it
    double = [tensor.double() if isinstance(tensor, torch.Tensor) else tensor for tensor in inputs]

    found = offset_gradients(function, inputs).double()

    before, after = (offset_gradients(by_reference, double, shift) for shift in (-1e-4, 1e-4))
    assert torch.minimum((found - before).abs(), (found - after).abs()).max() < 1e-3
    jumps = (before - after).abs() > 0.1
    assert jumps[:, ::2].float().mean() > 0.3, "no edges were tried"
    assert jumps[:, 1::2].float().mean() < 0.01, "there are jumps elsewhere"


@pytest.mark.parametrize("far", [1e4, 1e20, -1e38, float("inf"), -float("inf")])
def test_places_however_far_outside_read_and_change_nothing(far):
    value, shapes, centres, offsets, weights = random_inputs(dtype=torch.float32)
    offsets[0, 0, 0] = far
    inputs = (value, shapes, centres, offsets, weights)
    out = fused_attention(*inputs)
    assert (out[0, 0, :4] == 0).all()
    for grad in gradients(fused_attention, inputs):
        assert grad.isfinite().all()
    offsets[0, 0, 0] = 100
    torch.testing.assert_close(out, fused_attention(*inputs), atol=0, rtol=0)


@pytest.mark.parametrize("lost", ["place", "weight"])
def test_not_a_number_spreads_to_its_own_query_and_head_alone(lost):
    value, shapes, centres, offsets, weights = random_inputs()
    expected = fused_attention(value, shapes, centres, offsets, weights)
    (offsets if lost == "place" else weights)[1, 2, 0, 0, 0] = float("nan")
    found = fused_attention(value, shapes, centres, offsets, weights)
    assert found[1, 2, :4].isnan().all()
    found[1, 2, :4] = expected[1, 2, :4]
    assert torch.equal(found, expected)


def test_tensors_need_not_be_contiguous():
    inputs = random_inputs()
    strange = [
        tensor.transpose(0, -1).contiguous().transpose(0, -1) if isinstance(tensor, torch.Tensor) else tensor
        for tensor in inputs
    ]
    assert not strange[0].is_contiguous()
    assert torch.equal(fused_attention(*strange), fused_attention(*inputs))
    for found, expected in zip(
        gradients(fused_attention, strange), gradients(fused_attention, inputs), strict=True
    ):
        assert torch.equal(found, expected)


@pytest.fixture
def threads():
    """Sets the number of threads, and puts it back."""
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


@pytest.mark.parametrize(("batch", "heads"), [(1, 8), (3, 5)])
def test_results_do_not_depend_on_the_number_of_threads(threads, batch, heads):
    inputs = random_inputs(
        batch=batch, queries=300, heads=heads, channels=8, points=4, shapes=[9, 9, 5, 5, 3, 3]
    )
    results = []
    for number in (1, 2, 5):
        threads(number)
        results.append([fused_attention(*inputs), *gradients(fused_attention, inputs)])
    for other in results[1:]:
        assert all(map(torch.equal, results[0], other))


def attend_in_child(inputs, expected, queue):
    queue.put(torch.equal(fused_attention(*inputs), expected))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_process_has_threads_of_its_own(threads):
    threads(2)
    inputs = random_inputs(queries=2000)
    expected = fused_attention(*inputs)
    context = multiprocessing.get_context("fork")
    queue = context.SimpleQueue()
    child = context.Process(target=attend_in_child, args=(inputs, expected, queue))
    child.start()
    child.join(60)
    assert child.exitcode == 0, "the child waits for its parent's threads"
    assert queue.get()


def test_shapes_that_do_not_fit_are_refused():
    value, shapes, centres, offsets, weights = random_inputs()
    for wrong in (
        (value[:, :-1], shapes, centres, offsets, weights),
        (value, [3, 4, 0, 2], centres, offsets, weights),
        (value, shapes, centres[:, :-1], offsets, weights),
        (value, shapes, centres, offsets[:, :, :1], weights),
        (value, shapes, centres, offsets, weights[:1]),
    ):
        with pytest.raises(ValueError, match="do not fit levels"):
            fused_attention(*wrong)


def test_the_operators_keep_the_rules_of_pytorch():
    value, shapes, *others = random_inputs(batch=1, queries=2)
    leaves = [tensor.requires_grad_() for tensor in (value, *others)]
    torch.library.opcheck(fused_attention, (leaves[0], shapes, *leaves[1:]))
    detached = [tensor.detach() for tensor in leaves]
    grad = torch.rand(1, 2, 8, dtype=torch.float64)
    torch.library.opcheck(fused_attention_backward, (grad, detached[0], shapes, *detached[1:]))
