import pytest
import torch
from network_configs import build

from clnet.ops.precision import bfloat16_is_fast, half_precision, needs_scaling


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


@pytest.mark.parametrize(
    ("device", "bfloat16", "expected"),
    [
        ("cuda", True, torch.bfloat16),
        ("cuda", False, torch.float16),
        ("cpu", False, torch.bfloat16),
    ],
)
def test_a_gpu_without_bfloat16_takes_float16_and_scales_gradients(device, bfloat16, expected, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation: bfloat16)
    assert half_precision(torch.device(device)) is expected
    assert needs_scaling(True, torch.device(device)) is (expected is torch.float16)
    assert needs_scaling(False, torch.device(device)) is False


@pytest.mark.parametrize("half", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("config", ["phantom", "film"])
def test_a_network_in_half_precision_gives_finite_scores_and_boxes_in_float32(config, half):
    torch.manual_seed(0)
    network = build(*([] if config == "phantom" else [config])).eval()
    image = torch.rand(1, 2, 64, 64)
    with torch.inference_mode():
        expected = network(image)["boxes"]
        with torch.autocast("cpu", half):
            outputs = network(image)
    assert outputs["boxes"].dtype == torch.float32
    assert outputs["logits"].dtype == half
    assert outputs["logits"].isfinite().all()
    assert outputs["boxes"].shape == expected.shape
