"""Exported models say what the network says, and need nothing of this package."""

import json
import os
import subprocess
import sys

import numpy as np
import onnxruntime
import pytest
import torch
from bundle_readme import run_from_readme
from bundle_runs import ROOT
from in_process import SETTINGS
from monai.bundle import onnx_export
from network_configs import build

from clnet.networks.exported import ExportedNetwork

OUTPUTS = ["pred", "links", "link_scores"]
TOLERANCE = 1e-4
BATCHES = [1, 2, 5]

TORCHSCRIPT = """
import sys, numpy, torch
model = torch.jit.load(sys.argv[1])
@torch.no_grad()
def run(image): return [output.numpy() for output in model(torch.from_numpy(image))]
absent = "clnet", "monai"
"""
ONNX = """
import sys, numpy, onnxruntime
model = onnxruntime.InferenceSession(sys.argv[1])
def run(image): return model.run(["pred", "links", "link_scores"], {"image": image})
absent = "clnet", "monai", "torch"
"""
ALONE = """
answers = {}
for name, image in numpy.load(sys.argv[2]).items():
    for index, output in enumerate(run(image)):
        answers[f"{name}/{index}"] = output
numpy.savez(sys.argv[3], **answers)
sys.exit(f"{loaded} was imported" if (loaded := set(absent) & set(sys.modules)) else 0)
"""


def with_weights_that_matter(network):
    """As made, boxes and similarities hardly depend on the image; noise on all weights changes that."""
    generator = torch.Generator().manual_seed(7)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.add_(0.1 * torch.randn(parameter.shape, generator=generator))
    return network.eval()


def images(batch, rows, columns):
    """Breasts, of which the first has no MLO and the third, if there is one, no CC."""
    image = torch.rand(batch, 2, rows, columns, generator=torch.Generator().manual_seed(batch))
    image[0, 1] = 0.0
    image[2:3, 0] = 0.0
    present = torch.ones(batch, 2, dtype=torch.bool)
    present[0, 1] = False
    present[2:3, 0] = False
    return image, present


@pytest.fixture(scope="module")
def network():
    """The network of clnet.yaml."""
    torch.manual_seed(0)
    return with_weights_that_matter(build("clnet"))


@pytest.fixture(scope="module")
def folder(network, tmp_path_factory):
    """A folder with a checkpoint and inputs."""
    folder = tmp_path_factory.mktemp("export")
    torch.save(network.state_dict(), folder / "model.pt")
    inputs = {str(batch): images(batch, 160, 96)[0].numpy() for batch in BATCHES}
    np.savez(folder / "inputs.npz", **inputs)
    return folder


# The small network: what is tested is the export, and that of the film model takes longer.
PHANTOM = [
    *(
        "--config_file",
        "['bundle/configs/inference.yaml','bundle/configs/phantom.yaml','bundle/configs/clnet.yaml']",
    ),
    *("--input_shape", "[1, 2, 160, 96]"),
]


@pytest.fixture(scope="module")
def torchscript(folder):
    done = run_from_readme(
        "ckpt_export", "--ckpt_file", folder / "model.pt", "--filepath", folder / "model.ts", *PHANTOM
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return folder / "model.ts"


@pytest.fixture(scope="module")
def onnx(folder):
    done = run_from_readme(
        "onnx_export", "--ckpt_file", folder / "model.pt", "--filepath", folder / "model.onnx", *PHANTOM
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return folder / "model.onnx"


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "script"), [("torchscript", TORCHSCRIPT), ("onnx", ONNX)])
def test_an_exported_model_alone_says_what_the_network_says(kind, script, folder, network, request):
    model, answers = request.getfixturevalue(kind), folder / f"{kind}.npz"
    done = subprocess.run(
        [sys.executable, "-c", script + ALONE, model, folder / "inputs.npz", answers],
        cwd=folder,
        env={**os.environ, **SETTINGS},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = np.load(answers)
    for batch in BATCHES:
        with torch.no_grad():
            raw = network(*images(batch, 160, 96))
        compare([found[f"{batch}/{index}"] for index in range(len(OUTPUTS))], raw, images(batch, 160, 96)[1])


def test_breasts_do_not_look_the_same_to_the_network_of_these_tests(network):
    with torch.no_grad():
        raw = network(torch.rand(4, 2, 160, 96, generator=torch.Generator().manual_seed(0)))
    for name in ("logits", "boxes", "pair_logits"):
        outputs = raw[name][-1].sigmoid()
        assert (outputs.amax(0) - outputs.amin(0)).max() > 10 * TOLERANCE, name


def compare(outputs, raw, present):
    """Outputs of an exported model with the last layer's outputs of the network itself."""
    pred, links, link_scores = map(np.asarray, outputs)
    there = present.numpy()
    scores, boxes = raw["logits"][-1].sigmoid().numpy(), raw["boxes"][-1].numpy()
    np.testing.assert_allclose(pred[..., 0][there], scores[there], atol=TOLERANCE, rtol=0)
    np.testing.assert_allclose(pred[..., 1:][there], boxes[there], atol=TOLERANCE, rtol=0)
    assert (pred[..., 0][~there] == 0).all()
    similarity = raw["link_similarity"][-1].numpy()  # [B, 2, M, N + 1]
    chosen = np.take_along_axis(similarity, links.transpose(0, 2, 1)[..., None], -1)[..., 0]
    np.testing.assert_allclose(chosen, similarity.max(-1), atol=TOLERANCE, rtol=0)
    assert (links.transpose(0, 2, 1)[~there] == similarity.shape[-1] - 1).all()
    np.testing.assert_allclose(link_scores, raw["pair_logits"][-1].sigmoid().numpy(), atol=TOLERANCE, rtol=0)


@pytest.mark.slow
def test_another_size_than_that_of_the_export_is_refused(torchscript, onnx):
    turned = torch.rand(1, 2, 96, 160)  # as many pixels, so that nothing else would notice
    with pytest.raises(torch.jit.Error, match="image: 96 rows, 160 columns; this model takes 160, 96"):
        torch.jit.load(torchscript)(turned)
    with pytest.raises(Exception, match="Got: 96 Expected: 160"):
        onnxruntime.InferenceSession(onnx).run(None, {"image": turned.numpy()})


@pytest.mark.slow
def test_the_torchscript_file_carries_metadata_and_configs(torchscript):
    files = {"metadata.json": "", "inference.json": ""}
    torch.jit.load(torchscript, _extra_files=files)
    assert json.loads(files["metadata.json"])["network_data_format"]["inputs"]["image"]["num_channels"] == 2
    assert {"network_def", "exported_network"} <= set(json.loads(files["inference.json"]))


TRACED = [
    "pair_verification",
    "deformable_detr",
    "paired_query",
    pytest.param("film", marks=pytest.mark.slow),
]


@pytest.mark.parametrize("name", TRACED)
@pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning")
def test_every_variant_can_be_traced(name):
    configs = [name] if name == "film" else ["clnet", name]
    variant = build(*configs, width=32, detector__layers=2, object_queries=6)
    exported = ExportedNetwork(with_weights_that_matter(variant)).eval()
    traced = torch.jit.trace(exported, torch.rand(1, 2, 64, 48))
    image, present = images(3, 64, 48)
    expected, found = exported(image), traced(image)
    torch.testing.assert_close(found, expected, atol=TOLERANCE, rtol=0)
    links_are_expected = name != "deformable_detr"
    assert isinstance(found, tuple) == links_are_expected
    pred = found[0] if links_are_expected else found
    boxes = variant(image, present)["boxes"][-1]
    torch.testing.assert_close(pred[..., 1:][present], boxes[present], atol=TOLERANCE, rtol=0)


@pytest.mark.filterwarnings("ignore")
def test_a_variant_without_links_becomes_onnx_with_one_output(tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    small = {
        "width": 32,
        "network_def#detector#layers": 1,
        "network_def#matcher": {"_target_": "clnet.networks.NoMatcher"},
        "network_def#detector#box_refinement": False,  # decides on the exporter, see to_onnx.yaml
    }
    torch.save(
        build("clnet", "vild", width=32, detector__layers=1, detector__box_refinement=False).state_dict(),
        tmp_path / "model.pt",
    )
    onnx_export(
        args_file="bundle/configs/to_onnx.yaml",
        config_file=[f"bundle/configs/{name}.yaml" for name in ("inference", "phantom", "clnet")],
        ckpt_file=str(tmp_path / "model.pt"),
        filepath=str(tmp_path / "model.onnx"),
        input_shape=[1, 2, 64, 48],
        converter_kwargs={"output_names": ["pred"]},
        **small,
    )
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx")
    assert [output.name for output in session.get_outputs()] == ["pred"]
    assert session.run(None, {"image": images(3, 64, 48)[0].numpy()})[0].shape == (3, 2, 20, 5)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@torch.no_grad()
def test_geometric_cl_net_becomes_onnx_with_links(tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    torch.manual_seed(0)
    network = build("film", width=32, ffn=32, detector__layers=2, object_queries=6)
    torch.save(with_weights_that_matter(network).state_dict(), tmp_path / "model.pt")
    onnx_export(
        args_file="bundle/configs/to_onnx.yaml",
        config_file=["bundle/configs/inference.yaml", "bundle/configs/film.yaml"],
        ckpt_file=str(tmp_path / "model.pt"),
        filepath=str(tmp_path / "model.onnx"),
        input_shape=[1, 2, 64, 48],
        **{
            "width": 32,
            "ffn": 32,
            "network_def#detector#layers": 2,
            "object_queries": 6,
        },
    )
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx")
    for batch in BATCHES:
        image, _ = images(batch, 64, 48)
        expected = ExportedNetwork(network)(image)
        pred, links, link_scores = (
            torch.from_numpy(out) for out in session.run(OUTPUTS, {"image": image.numpy()})
        )
        torch.testing.assert_close(pred, expected[0], atol=TOLERANCE, rtol=0)
        assert torch.equal(links, expected[1])
        torch.testing.assert_close(link_scores, expected[2], atol=TOLERANCE, rtol=0)


def test_a_checkpoint_of_the_network_is_a_checkpoint_of_what_is_exported(network):
    other = ExportedNetwork(build("clnet"))
    other.load_state_dict(network.state_dict())
    image, _ = images(2, 160, 96)
    torch.testing.assert_close(other.eval()(image), ExportedNetwork(network).eval()(image))
