"""`clnet.ops.deformable_attention`: how attention is computed, and that both ways agree."""

import os
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch
import warm_processes
from network_configs import build

from clnet.networks.deformable_attention import DeformableAttention
from clnet.networks.exported import ExportedNetwork
from clnet.ops import deformable_attention as module
from clnet.ops.deformable_attention import AttentionPathError, choose_attention, deformable_attention
from clnet.ops.reference import reference_attention


@pytest.fixture(autouse=True)
def fused_path():
    """Whatever the environment of the test run says."""
    choose_attention("fused")
    yield
    choose_attention("auto")


def random_inputs(dtype):
    """One image, three queries, two heads of four channels, two levels, two points."""
    generator = torch.Generator().manual_seed(0)

    def random(*shape):
        return torch.rand(*shape, generator=generator).to(dtype)

    offsets, weights = random(1, 3, 2, 2, 2, 2) * 4 - 2, random(1, 3, 2, 2, 2)
    return random(1, 16, 2, 4), [(3, 4), (2, 2)], random(1, 3, 2, 2) * 3, offsets, weights


def attention_and_inputs():
    torch.manual_seed(0)
    attention = DeformableAttention(width=32, heads=4, levels=2, points=3)
    torch.nn.init.normal_(attention.sampling_offsets.weight)
    torch.nn.init.normal_(attention.attention_weights.weight)
    return attention, (torch.rand(2, 5, 32), torch.rand(2, 5, 4), torch.rand(2, 16, 32), [(3, 4), (2, 2)])


def test_a_layer_compiles_as_one_graph_with_its_gradient():
    attention, inputs = attention_and_inputs()
    compiled = torch.compile(attention, fullgraph=True, backend="aot_eager")
    for layer in (attention, compiled):
        layer.zero_grad()
        out = layer(*inputs)
        out.square().sum().backward()
        gradient = attention.sampling_offsets.weight.grad.clone()
        if layer is attention:
            expected, expected_gradient = out, gradient
    torch.testing.assert_close(out, expected)
    torch.testing.assert_close(gradient, expected_gradient)


@pytest.mark.parametrize("boxes", [False, True], ids=["points", "boxes"])
def test_a_layer_gives_the_same_on_both_paths(boxes):
    attention, (query, references, tokens, shapes) = attention_and_inputs()
    references = references if boxes else references[..., :2]
    results = []
    for path in ("fused", "reference"):
        choose_attention(path)
        asking = references.clone().requires_grad_()
        out = attention(query, asking, tokens, shapes)
        results.append([out, *torch.autograd.grad(out.square().sum(), [asking, *attention.parameters()])])
    for found, expected in zip(*results, strict=True):
        torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-4)


class BrokenKernel:
    """Takes the place of a device's kernels."""

    def prepare(self, dtype):
        """Does not work."""
        raise ImportError("broken")


def test_a_value_of_half_precision_is_read_at_places_of_single_precision():
    """As under autocast: linear layers give bfloat16, places are float32."""
    value, shapes, centres, offsets, weights = random_inputs(torch.float32)
    value = value.bfloat16()
    for path in ("fused", "reference"):
        choose_attention(path)
        found = deformable_attention(value, shapes, centres, offsets, weights)
        expected = reference_attention(value.float(), shapes, centres, offsets, weights).bfloat16()
        torch.testing.assert_close(found, expected)


def test_a_device_without_a_kernel_takes_the_reference():
    value, shapes, *others = random_inputs(torch.float32)
    out = deformable_attention(value.to("meta"), shapes, *(tensor.to("meta") for tensor in others))
    assert out.shape == (1, 3, 8)


def test_an_unknown_choice_is_answered_with_the_known_ones():
    with pytest.raises(AttentionPathError, match="'fast' is not one of auto, fused, reference"):
        choose_attention("fast")


@pytest.mark.filterwarnings("ignore")
def test_exports_take_the_reference():
    network = ExportedNetwork(build(width=32, encoder__layers=1)).eval()
    image = torch.rand(1, 2, 64, 48)
    traced = str(torch.jit.trace(network, image).inlined_graph)
    exported = str(torch.export.export(network, (image,), strict=False).graph)
    for graph in (traced, exported):
        assert "grid_sampler" in graph
        assert "clnet::" not in graph and "clnet.deformable" not in graph


ATTEND = """
import logging, sys
logging.basicConfig(level=logging.INFO)
{before}
import torch
from clnet.networks.deformable_attention import DeformableAttention
torch.manual_seed(0)
for attempt in range(2):
    attention = DeformableAttention(32, 4, 1, 2)
    out = attention(torch.rand(1, 3, 32), torch.rand(1, 3, 2), torch.rand(1, 4, 32), [(2, 2)])
    out.sum().backward()
print(out.sum().item())
"""


def run_attention(before="", **variables):
    environment = {name: text for name, text in os.environ.items() if name != "CLNET_ATTENTION"}
    words = ["-c", ATTEND.format(before=before)]
    return warm_processes.run(words, Path.cwd(), environment | variables)


FUSED = "deformable attention: the fused path on cpu"
REFERENCE = "deformable attention: the reference path"


def test_without_numba_the_reference_is_taken_and_one_message_says_why():
    done = run_attention("sys.modules['numba'] = None")
    assert done.returncode == 0, done.stderr
    assert done.stderr.count(REFERENCE) == 1
    assert "WARNING" in done.stderr
    assert "The fused kernel for cpu does not work here: ModuleNotFoundError" in done.stderr


def test_where_nothing_can_be_cached_the_fused_path_is_taken_nevertheless(tmp_path):
    """A file where numba would make its folder: not even root can write there."""
    (tmp_path / "file").touch()
    done = run_attention(NUMBA_CACHE_DIR=str(tmp_path / "file" / "cache"))
    assert done.returncode == 0, done.stderr
    assert done.stderr.count(FUSED) == 1
    assert REFERENCE not in done.stderr


def test_processes_that_compile_at_the_same_time_do_not_disturb_each_other(tmp_path):
    variables = {"NUMBA_CACHE_DIR": str(tmp_path), "CLNET_ATTENTION": "fused"}
    with ThreadPoolExecutor(2) as pool:
        both = [pool.submit(run_attention, **variables) for _ in range(2)]
    results = {done.result().stdout for done in both}
    assert len(results) == 1
    assert float(results.pop())
    assert list(tmp_path.rglob("*.nbc")), "nothing was cached"


@pytest.mark.parametrize(
    ("chosen", "error"), [("fused", "ImportError('broken')"), ("fast", "'fast' is not one")]
)
def test_a_choice_that_cannot_be_had_is_an_error(chosen, error, monkeypatch):
    monkeypatch.setitem(module.KERNELS, "cpu", BrokenKernel())
    monkeypatch.setattr(module, "_chosen", [])
    module._kernel_works.cache_clear()
    monkeypatch.setenv("CLNET_ATTENTION", chosen)
    inputs = random_inputs(torch.float32)
    with pytest.raises(AttentionPathError, match=re.escape(error)):
        deformable_attention(*inputs)
    monkeypatch.setenv("CLNET_ATTENTION", "reference")
    assert deformable_attention(*inputs).shape == (1, 3, 8)
