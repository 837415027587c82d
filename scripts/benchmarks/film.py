"""The network of the film model: a training step and inference of a breast, in each way to compute them.

ONNX is exported as `bundle/configs/to_onnx.yaml` does, with links.
"""

import tempfile
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import onnxruntime
import openvino
import torch
from benchmarks.clocks import take_turns_apart, times_as_fast
from benchmarks.runtimes import to_onnx
from network_configs import build, parse

from clnet.networks.exported import ExportedNetwork
from clnet.ops.deformable_attention import choose_attention
from clnet.runs.allocator import keep_freed_memory

ROUNDS = 5
WAYS = ("as shipped", "float32", "bfloat16", "compiled", "attention by grid_sample")
"""What differs from float32: nothing, mixed precision, torch.compile, the attention's path. *As shipped* is
what film.yaml chooses: bfloat16 in training where the CPU has it, float32 in inference."""
RUNTIMES = ("onnxruntime", "openvino")


def make_run(kind: str, way: str) -> Callable[[], object]:
    """A training step on a batch of `film.yaml`, or inference of one breast; one thread."""
    keep_freed_memory()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    settings = parse("film")
    batch = settings.get_parsed_content("batch_size") if kind == "training" else 1
    image = torch.rand(batch, 2, *settings.get_parsed_content("size"))
    network = build("film", compile=way == "compiled")
    if way in RUNTIMES:
        return in_runtime(way, network, image)
    choose_attention("reference" if way.startswith("attention") else "auto")
    mixed = way == "bfloat16" or (
        way == "as shipped" and kind == "training" and settings.get_parsed_content("amp")
    )

    def run() -> dict[str, Any]:
        with torch.autocast("cpu", torch.bfloat16) if mixed else nullcontext():
            return network(image)

    if kind == "inference":
        network.eval()
        return torch.inference_mode()(run)

    def step() -> None:
        network.zero_grad()
        outputs = run()
        torch.stack([outputs[name].float().square().mean() for name in ("logits", "boxes")]).sum().backward()

    return step


def in_runtime(name: str, network: torch.nn.Module, image: torch.Tensor) -> Callable[[], object]:
    """Inference by another runtime."""
    with tempfile.TemporaryDirectory() as folder:
        file = to_onnx(ExportedNetwork(network, links=True).eval(), image, Path(folder) / "film.onnx")
        if name == "openvino":
            hints = {"INFERENCE_NUM_THREADS": 1, "INFERENCE_PRECISION_HINT": "f32"}
            compiled = openvino.Core().compile_model(str(file), "CPU", hints)
            return lambda: compiled([image.numpy()])
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        session = onnxruntime.InferenceSession(file, options)
        return lambda: session.run(None, {"image": image.numpy()})


def make_two_images() -> Callable[[], object]:
    """Inference of two images in the same network without the second view."""
    keep_freed_memory()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    network = build("film", "one_view").eval()
    image = torch.rand(1, 2, *parse("film").get_parsed_content("size"))
    return torch.inference_mode()(lambda: network(image))


def film() -> dict[str, Any]:
    """CPU seconds of each way, in turn, each in its own process."""
    result: dict[str, Any] = {}
    for kind, ways in (("training", WAYS), ("inference", WAYS + RUNTIMES)):
        result[kind] = take_turns_apart({way: partial(make_run, kind, way) for way in ways}, ROUNDS)
    turns = {"pair": partial(make_run, "inference", "float32"), "two_images": make_two_images}
    pair = take_turns_apart(turns, ROUNDS)
    result["pair"] = {**pair, "pair_over_two_images": times_as_fast(pair, "two_images", "pair")}
    return result
