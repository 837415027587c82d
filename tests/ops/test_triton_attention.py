"""The kernels for GPUs give what the reference gives: on a GPU, or in Triton's interpreter on a CPU.

`./scripts/test_gpu_kernels` runs this file, and installs Triton where PyTorch has not brought it along.
"""

import os
import subprocess
import sys

import pytest
import torch

ON_GPU = torch.cuda.is_available()
if not ON_GPU:
    os.environ["TRITON_INTERPRET"] = "1"  # read when Triton is imported
pytest.importorskip("triton", reason="run ./scripts/test_gpu_kernels")

from attention_inputs import by_reference, gradients, random_inputs  # noqa: E402
from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

from clnet.ops import cpu_attention, triton_attention  # noqa: E402
from clnet.ops.attention_operator import fused_attention, fused_attention_backward  # noqa: E402

DEVICE = torch.device("cuda" if ON_GPU else "cpu")


@pytest.fixture(autouse=True)
def triton_kernels():
    """The operators take Triton's kernels on the device of the tests."""
    fused_attention.register_kernel(DEVICE.type)(triton_attention.forward)
    fused_attention_backward.register_kernel(DEVICE.type)(triton_attention.backward)
    yield
    fused_attention.register_kernel("cpu")(cpu_attention.forward)
    fused_attention_backward.register_kernel("cpu")(cpu_attention.backward)


def inputs_here(**sizes):
    inputs = random_inputs(**sizes)
    return [x.to(DEVICE) if isinstance(x, torch.Tensor) else x for x in inputs]


def to_double(inputs):
    return [x.double() if isinstance(x, torch.Tensor) else x for x in inputs]


@given(
    seed=st.integers(0, 2**16),
    batch=st.integers(1, 2),
    queries=st.sampled_from([1, 2, 5, 70]),
    heads=st.integers(1, 2),
    channels=st.sampled_from([1, 3, 8, 16]),
    points=st.integers(1, 2),
    shapes=st.lists(st.tuples(st.integers(1, 7), st.integers(1, 7)), min_size=1, max_size=2),
    shared=st.booleans(),
)
@settings(max_examples=200)
def test_single_precision_is_1e_5_from_the_reference_in_double_precision(shapes, **sizes):
    inputs = inputs_here(shapes=[size for shape in shapes for size in shape], dtype=torch.float32, **sizes)
    found = fused_attention(*inputs)
    torch.testing.assert_close(found.double(), by_reference(*to_double(inputs)), atol=1e-5, rtol=0)
    for grad, expected in zip(
        gradients(fused_attention, inputs), gradients(by_reference, to_double(inputs)), strict=True
    ):
        torch.testing.assert_close(grad.double(), expected, atol=1e-5, rtol=0)


@pytest.mark.parametrize("nothing", ["batch", "queries"])
def test_of_nothing_there_is_an_output_and_a_gradient(nothing):
    inputs = inputs_here(dtype=torch.float32, **{nothing: 0})
    assert fused_attention(*inputs).shape == by_reference(*inputs).shape
    assert all(grad.eq(0).all() for grad in gradients(fused_attention, inputs))


@pytest.mark.parametrize("half", [torch.float16, torch.bfloat16])
def test_half_precision_is_summed_in_single_precision(half):
    """As under autocast: linear layers give half precision, centres are float32."""
    value, shapes, centres, offsets, weights = inputs_here(queries=40, dtype=torch.float32)
    inputs = (value.to(half), shapes, centres, offsets.to(half), weights.to(half))
    single = [x.float() if isinstance(x, torch.Tensor) else x for x in inputs]
    torch.testing.assert_close(
        fused_attention(*inputs), by_reference(*single).to(half), atol=1e-5, rtol=torch.finfo(half).eps
    )
    found, expected = gradients(fused_attention, inputs), gradients(fused_attention, single)
    assert [grad.dtype for grad in found] == [half, torch.float32, half, half]
    for grad, exact in zip(found, expected, strict=True):
        torch.testing.assert_close(grad.float(), exact, atol=0.05, rtol=0.02)


@pytest.mark.parametrize("shared", [True, False], ids=["shared centres", "centres of each image"])
def test_gradients_are_right(shared):
    value, shapes, *others = inputs_here(shared=shared, queries=2, channels=3, dtype=torch.float64)
    leaves = [tensor.requires_grad_() for tensor in (value, *others)]
    nondeterministic = 1e-12 if ON_GPU else 0.0  # atomic sums
    assert torch.autograd.gradcheck(
        lambda v, *rest: fused_attention(v, shapes, *rest),
        leaves,
        nondet_tol=nondeterministic,
        fast_mode=True,
    )


@pytest.mark.parametrize("place", [-1.0, 0.0, 1.0, 3.0, 4.0 - 2.0**-22, 4.0, -(2.0**-24)])
def test_places_on_the_very_edge_of_cells_are_those_of_the_reference(place):
    value = torch.rand(1, 16, 1, 2, device=DEVICE) + 1
    centres = torch.tensor([[place, 1.25], [1.25, place], [place, place]], device=DEVICE).view(1, 3, 1, 2)
    offsets, weights = value.new_zeros(1, 3, 1, 1, 1, 2), value.new_ones(1, 3, 1, 1, 1)
    inputs = (value, [4, 4], centres, offsets, weights)
    found = fused_attention(*inputs).double()
    torch.testing.assert_close(found, by_reference(*to_double(inputs)), atol=1e-5, rtol=0)


@pytest.mark.parametrize("far", [1e4, 1e20, -1e38, float("inf"), -float("inf")])
def test_places_however_far_outside_read_and_change_nothing(far):
    value, shapes, centres, offsets, weights = inputs_here(dtype=torch.float32)
    offsets[0, 0, 0] = far
    inputs = (value, shapes, centres, offsets, weights)
    assert (fused_attention(*inputs)[0, 0, :4] == 0).all()
    for grad in gradients(fused_attention, inputs):
        assert grad.isfinite().all()


@pytest.mark.parametrize("lost", ["place", "weight"])
def test_not_a_number_spreads_to_its_own_query_and_head_alone(lost):
    value, shapes, centres, offsets, weights = inputs_here(dtype=torch.float32)
    expected = fused_attention(value, shapes, centres, offsets, weights)
    (offsets if lost == "place" else weights)[1, 2, 0, 0, 0] = float("nan")
    inputs = (value, shapes, centres, offsets, weights)
    found = fused_attention(*inputs)
    assert found[1, 2, :4].isnan().all()
    found[1, 2, :4] = expected[1, 2, :4]
    assert torch.equal(found, expected)
    _, _, of_offsets, of_weights = gradients(fused_attention, inputs)
    assert of_offsets[1, 2, 0, 0, 0].isnan().all() and of_weights[1, 2, 0, 0, 0].isnan()


def test_tensors_need_not_be_contiguous():
    inputs = inputs_here()
    strange = [
        x.transpose(0, -1).contiguous().transpose(0, -1) if isinstance(x, torch.Tensor) else x for x in inputs
    ]
    assert not strange[0].is_contiguous()
    assert torch.equal(fused_attention(*strange), fused_attention(*inputs))


def test_shapes_that_do_not_fit_are_refused():
    value, shapes, centres, offsets, weights = inputs_here()
    with pytest.raises(ValueError, match="do not fit levels"):
        fused_attention(value[:, :-1], shapes, centres, offsets, weights)


def test_the_operators_keep_the_rules_of_pytorch():
    value, shapes, *others = inputs_here(batch=1, queries=2)
    leaves = [tensor.requires_grad_() for tensor in (value, *others)]
    torch.library.opcheck(fused_attention, (leaves[0], shapes, *leaves[1:]))


COMPILE = """
import sys
import triton.language as tl
from triton import compile
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from clnet.ops import triton_kernels

kind, architecture, warp, value, places = sys.argv[1:]
pointers = dict.fromkeys(["value", "out", "grad"], "*" + value)
pointers |= dict.fromkeys(["centres", "offsets", "weights", "grad_offsets", "grad_weights"], "*" + places)
pointers |= {"shapes": "*i32", "grad_value": "*fp32"}
constants = {"levels": 4, "points": 4, "channels": 32, "number": tl.float32}
constants |= {"queries_block": 16, "channels_block": 32}
for kernel in (triton_kernels.forward, triton_kernels.backward):
    signature = {
        name: pointers.get(name, "constexpr" if name in constants else "i32") for name in kernel.arg_names
    }
    target = GPUTarget(kind, int(architecture) if kind == "cuda" else architecture, int(warp))
    compiled = compile(ASTSource(kernel, signature, constants), target=target)
    print(len(compiled.asm["cubin" if kind == "cuda" else "hsaco"]))
"""


@pytest.mark.parametrize(
    "target",
    [
        ("cuda", "75", "32", "fp16", "fp32"),
        ("cuda", "80", "32", "bf16", "bf16"),
        ("cuda", "90", "32", "fp32", "fp32"),
        ("hip", "gfx942", "64", "bf16", "fp32"),
    ],
    ids="-".join,
)
def test_kernels_compile_for_gpus_that_are_not_here(target, tmp_path):
    """To machine code, of NVIDIA's Turing, Ampere and Hopper and AMD's MI300."""
    environment = {name: text for name, text in os.environ.items() if name != "TRITON_INTERPRET"}
    done = subprocess.run(
        [sys.executable, "-c", COMPILE, *target],
        capture_output=True,
        text=True,
        env=environment | {"TRITON_CACHE_DIR": str(tmp_path)},
    )
    assert done.returncode == 0, done.stderr
    assert all(int(size) > 1000 for size in done.stdout.split())
