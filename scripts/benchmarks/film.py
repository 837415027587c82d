"""The film model: a training step, the network in inference, and files to findings, computed in each way.

ONNX is exported as `bundle/configs/to_onnx.yaml` does, with links.
"""

import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import onnxruntime
import openvino
import torch
from benchmarks.clocks import take_turns_apart
from benchmarks.full_size import full_size_film
from benchmarks.runtimes import to_onnx
from network_configs import build, parse
from torch import Tensor

from clnet.networks.exported import ExportedNetwork
from clnet.ops.deformable_attention import choose_attention
from clnet.predict.bundle import load
from clnet.predict.inferer import NetworkInferer
from clnet.runs.allocator import keep_freed_memory

ROUNDS = 5
GRID_SAMPLE, BFLOAT16, COMPILED = "attention by grid_sample", "bfloat16", "torch.compile"
RUNTIMES = ("onnxruntime", "openvino")
WAYS = {
    "training": ("float32", BFLOAT16, COMPILED, GRID_SAMPLE),
    "inference": ("float32", BFLOAT16, COMPILED, GRID_SAMPLE, *RUNTIMES),
    "files": ("float32", BFLOAT16, GRID_SAMPLE, *RUNTIMES),
}
"""What differs from float32. *files* is `clnet.load().predict` on two DICOM films of full size."""


def prepare(way: str) -> AbstractContextManager[Any]:
    """One thread, memory kept, the attention's path; returns the precision to compute in."""
    keep_freed_memory()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    choose_attention("reference" if way == GRID_SAMPLE else "auto")
    return torch.autocast("cpu", torch.bfloat16) if way == BFLOAT16 else nullcontext()


def make_training(way: str) -> Callable[[], object]:
    """A training step of `film.yaml`: forward, loss with its matching, backward, clipping, optimiser."""
    precision = prepare(way)
    settings = parse("film", compile=way == COMPILED, device="$torch.device('cpu')")
    network, loss, optimizer, size, batch, clip = (
        settings.get_parsed_content(name)
        for name in ("network", "loss", "optimizer", "size", "batch_size", "gradient_clip")
    )
    network.train()
    image = torch.rand(batch, 2, *size)
    mass = {"boxes": [torch.tensor([[0.4, 0.5, 0.1, 0.1]])] * 2, "lesion_ids": [torch.tensor([1])] * 2}
    target = {"lesions": [mass] * batch, "present": torch.ones(batch, 2, dtype=torch.bool)}

    def step() -> None:
        optimizer.zero_grad()
        with precision:
            outputs = network(image)
        loss(outputs, target).backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), clip)
        optimizer.step()

    return step


def make_inference(way: str) -> Callable[[], object]:
    """The network of `film.yaml` on one breast."""
    precision = prepare(way)
    network = build("film", compile=way == COMPILED).eval()
    image = torch.rand(1, 2, *parse("film").get_parsed_content("size"))
    if way in RUNTIMES:
        run = in_runtime(way, network, image)
        return lambda: run(image)

    def infer() -> dict[str, Tensor]:
        with torch.inference_mode(), precision:
            return network(image)

    return infer


def make_files(way: str) -> Callable[[], object]:
    """The shipped model from two films of 4464 × 2848 to findings."""
    prepare(way)
    model = load(device="cpu")
    if way == BFLOAT16:
        model = replace(model, inferer=NetworkInferer(amp=True))
    if way in RUNTIMES:
        example = torch.rand(1, 2, *parse("film").get_parsed_content("size"))
        run = in_runtime(way, model.network, example)

        def network(image: Tensor, present: Tensor, return_attention: bool) -> dict[str, Tensor]:
            pred, links, link_scores = map(torch.from_numpy, run(image))
            outputs = {"logits": pred[None, ..., 0].logit(), "boxes": pred[None, ..., 1:]}
            return {**outputs, "links": links, "link_scores": link_scores}

        model = replace(model, network=cast("torch.nn.Module", network))
    folder = tempfile.TemporaryDirectory()  # as long as this process
    for view in ("cc", "mlo"):
        full_size_film(view, Path(folder.name))
    return lambda: list(model.predict(folder.name, secondary_capture=True))


def in_runtime(name: str, network: torch.nn.Module, example: Tensor) -> Callable[[Tensor], Any]:
    """A function that runs the network in another runtime, in float32 on one thread."""
    with tempfile.TemporaryDirectory() as folder:
        file = to_onnx(ExportedNetwork(network, links=True).eval(), example, Path(folder) / "film.onnx")
        if name == "openvino":
            hints = {"INFERENCE_NUM_THREADS": 1, "INFERENCE_PRECISION_HINT": "f32"}
            compiled = openvino.Core().compile_model(str(file), "CPU", hints)
            return lambda image: list(compiled([image.numpy()]).values())
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        session = onnxruntime.InferenceSession(file, options)
        return lambda image: session.run(None, {"image": image.numpy()})


def in_turn(kind: str, make: Callable[[str], Callable[[], object]]) -> dict[str, Any]:
    """CPU seconds of each way, in turn, each in its own process."""
    return take_turns_apart({way: partial(make, way) for way in WAYS[kind]}, ROUNDS)


training = partial(in_turn, "training", make_training)
inference = partial(in_turn, "inference", make_inference)
files = partial(in_turn, "files", make_files)
