import pytest
import torch

from clnet.ops.precision import bfloat16_is_fast


def test_bfloat16_is_fast_on_cpus_with_its_instructions_but_without_tiles():
    capabilities = torch.cpu.get_capabilities()
    expected = capabilities.get("avx512_bf16", False) and not capabilities.get("amx_tile", False)
    assert bfloat16_is_fast(torch.device("cpu")) is expected


@pytest.mark.parametrize(
    ("capabilities", "expected"),
    [
        ({"avx512_bf16": True, "amx_tile": False}, True),
        ({"avx512_bf16": True, "amx_tile": True}, False),
        ({"avx512_bf16": False, "amx_tile": False}, False),
        ({"sve": True}, False),  # as on Arm
    ],
)
def test_what_a_cpu_can_do_decides(capabilities, expected, monkeypatch):
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: capabilities)
    assert bfloat16_is_fast(torch.device("cpu")) is expected


def test_a_version_of_pytorch_that_cannot_say_does_without(monkeypatch):
    monkeypatch.delattr(torch.cpu, "get_capabilities")
    assert bfloat16_is_fast(torch.device("cpu")) is False


@pytest.mark.parametrize("device", ["meta", "mps", "xpu"])
def test_nobody_gets_bfloat16_on_a_device_that_is_not_known(device):
    assert bfloat16_is_fast(torch.device(device)) is False
