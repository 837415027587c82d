"""The paper's network as ONNX in other runtimes: differences and times."""

import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import openvino
import torch
from benchmarks.clocks import take_turns
from network_configs import build
from transformers_weights import randomise

from clnet.networks.exported import ExportedNetwork
from clnet.ops.deformable_attention import choose_attention

ROWS, COLUMNS = 512, 256


def to_onnx(network: torch.nn.Module, image: torch.Tensor, file: Path) -> Path:
    """By tracing, as `bundle/configs/to_onnx.yaml` does."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(network, (image,), file, input_names=["image"], opset_version=18, dynamo=False)
    return file


def runtimes() -> dict[str, Any]:
    """A pair, one thread: our fused and reference paths, onnxruntime and OpenVINO."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    network = ExportedNetwork(build("clnet", "paper"), links=False).eval()
    randomise(network)  # with initial weights, hardly anything reaches the boxes
    image = torch.rand(1, 2, ROWS, COLUMNS)

    def by(path: Any) -> np.ndarray:
        choose_attention(path)
        with torch.inference_mode():
            return network(image).numpy()

    with tempfile.TemporaryDirectory() as folder:
        file = to_onnx(network, image, Path(folder) / "model.onnx")
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        session = onnxruntime.InferenceSession(file, options)
        compiled = openvino.Core().compile_model(
            str(file), "CPU", {"INFERENCE_NUM_THREADS": 1, "INFERENCE_PRECISION_HINT": "f32"}
        )
        work: dict[str, Callable[[], Any]] = {
            "fused": lambda: by("fused"),
            "reference": lambda: by("reference"),
            "onnxruntime": lambda: session.run(None, {"image": image.numpy()})[0],
            "openvino": lambda: compiled([image.numpy()])[0],
        }
        expected = work["fused"]()
        apart = {name: float(np.abs(function() - expected).max()) for name, function in work.items()}
        times = take_turns(work, 2)
    choose_attention("auto")
    return {name: {**times[name], "greatest_difference": apart[name]} for name in work}
