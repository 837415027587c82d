"""The bundle passes MONAI's own checks, and its metadata are true.

`meta_schema_20240725.json` stands in for MONAI's file of that name, which `verify_metadata` would download:
the same fields, types and requirements.
"""

import json
import math
import re
import shutil
import sys
from pathlib import Path

import pytest
import torch
import yaml
from bundle_readme import run_from_readme
from bundle_runs import ROOT, TINY
from ignite.engine import Events
from monai.bundle import ConfigParser, ConfigWorkflow, ckpt_export, verify_metadata, verify_net_in_out
from monai.bundle.properties import InferProperties, TrainProperties
from monai.fl.client import MonaiAlgo
from monai.fl.utils.constants import ExtraItems, ModelType
from monai.fl.utils.exchange_object import ExchangeObject

from clnet import __version__
from clnet.phantom import PhantomSettings, make_phantom
from clnet.runs.record import read_metrics

CONFIGS = ROOT / "bundle" / "configs"
METADATA = CONFIGS / "metadata.json"
SCHEMA = Path(__file__).parent / "meta_schema_20240725.json"
INFERENCE = str(CONFIGS / "inference.yaml")
TINY_VALUES = {key: yaml.safe_load(value) for key, value in TINY.items() if key != "phantom_pairs"}


@pytest.fixture(scope="module")
def metadata():
    return json.loads(METADATA.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def schema(tmp_path_factory):
    """A copy, since MONAI would download to where it finds none."""
    return shutil.copy(SCHEMA, tmp_path_factory.mktemp("schema"))


@pytest.mark.slow
def test_verify_metadata_finds_no_error(schema):
    done = run_from_readme("verify_metadata", "--filepath", schema)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "metadata is verified with no error" in done.stdout + done.stderr


@pytest.mark.parametrize(
    "broken", [["copyright"], ["network_data_format", "inputs", "image", "num_channels"]]
)
def test_verify_metadata_finds_what_is_missing(metadata, schema, tmp_path, broken):
    content = json.loads(json.dumps(metadata))
    *path, last = broken
    part = content
    for key in path:
        part = part[key]
    del part[last]
    (tmp_path / "metadata.json").write_text(json.dumps(content))
    with pytest.raises(ValueError, match="Failed validating"):
        verify_metadata(meta_file=str(tmp_path / "metadata.json"), filepath=schema)


@pytest.mark.slow
def test_verify_net_in_out_finds_no_error():
    done = run_from_readme("verify_net_in_out")
    assert done.returncode == 0, done.stderr[-2000:]
    assert "data shape of network is verified with no error" in done.stdout + done.stderr


def test_verify_net_in_out_would_find_another_number_of_channels():
    wrong = {"_meta_#network_data_format#outputs#pred#num_channels": 3}
    with pytest.raises(ValueError, match="output channel number `2` doesn't match: `3`"):
        verify_net_in_out("exported_network", str(METADATA), INFERENCE, device="cpu", **wrong)


def test_the_metadata_say_what_goes_in_and_out(metadata):
    parser = ConfigParser(ConfigParser.load_config_files(INFERENCE))
    parser["exported_network#links"] = True
    [image] = metadata["network_data_format"]["inputs"].values()
    assert image["spatial_shape"] == parser["size"]
    example = torch.rand(
        3, image["num_channels"], *image["spatial_shape"], dtype=getattr(torch, image["dtype"])
    )
    example[1, 0] = 0.0
    outputs = parser.get_parsed_content("exported_network").eval()(example)
    described = metadata["network_data_format"]["outputs"]
    for output, (name, spec) in zip(outputs, described.items(), strict=True):
        assert output.shape == (3, spec["num_channels"], *spec["spatial_shape"]), name
        assert output.dtype == getattr(torch, spec["dtype"]), name
        low, high = spec["value_range"]
        assert low <= output.min() <= output.max() <= high, name


@pytest.mark.parametrize(
    ("properties", "files"),
    [(TrainProperties, ["train.yaml"]), (InferProperties, ["inference.yaml"])],
    ids=["train", "infer"],
)
def test_what_monai_looks_for_stands_under_its_fixed_id(properties, files):
    parser = ConfigParser(ConfigParser.load_config_files([str(CONFIGS / name) for name in files]))
    parser.read_meta(str(METADATA))
    required = [found["id"] for found in properties.values() if found["required"]]
    assert [key for key in required if key not in parser] == []


def test_versions_are_those_that_were_seen_working_together(metadata):
    pins = re.findall(
        r'^([\w-]+)==([\w.]+)(?:; python_version >= "3.11")?$',
        (ROOT / "constraints.txt").read_text(),
        re.MULTILINE,
    )
    pinned = {name.lower(): version for name, version in pins} | {"clnet": __version__}
    needed = re.findall(
        r'^    "([\w-]+)>=', (ROOT / "pyproject.toml").read_text().split("[project.opt")[0], re.MULTILINE
    )
    stated = metadata["required_packages_version"] | {
        name: metadata[key]
        for name, key in (
            ("monai", "monai_version"),
            ("torch", "pytorch_version"),
            ("numpy", "numpy_version"),
        )
    }
    assert stated == {name: pinned[name] for name in [*needed, "clnet"]}
    assert metadata["version"] == __version__
    assert __version__ in metadata["changelog"]


def test_the_metadata_are_indented_as_the_model_zoo_wants_them(metadata):
    assert METADATA.read_text(encoding="utf-8") == json.dumps(metadata, indent=4) + "\n"


def test_the_bundle_carries_the_licence():
    assert (ROOT / "bundle" / "LICENSE").read_text() == (ROOT / "LICENSE").read_text()


def test_nobody_can_take_it_for_a_device(metadata):
    assert "not for patients" in metadata["intended_use"]
    assert "Not for patients" in (ROOT / "bundle" / "docs" / "README.md").read_text()


# ------------------------------------------------------------------------------------- workflows


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    make_phantom(folder, PhantomSettings(pairs=12, seed=2, rows=96, columns=64), workers=1)
    return folder


@pytest.fixture
def workflow(data, tmp_path, monkeypatch):
    """Makes a workflow of the bundle, with a tiny network on a tiny phantom."""
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "")
    monkeypatch.setattr(sys, "argv", ["python"])
    monkeypatch.setattr(sys, "excepthook", sys.__excepthook__)

    def make(kind, *files, **overrides):
        settings = {"dataset_dir": str(data), "output_dir": str(tmp_path), **TINY_VALUES, **overrides}
        made = ConfigWorkflow(
            [str(CONFIGS / name) for name in files], logging_file=False, workflow_type=kind, **settings
        )
        made.initialize()
        return made

    return make


@pytest.fixture
def tiny_weights(tmp_path):
    """Makes weights of the tiny network of some configs."""

    def make(*files):
        parser = ConfigParser(ConfigParser.load_config_files([str(CONFIGS / name) for name in files]))
        parser.update(TINY_VALUES)
        torch.save(parser.get_parsed_content("network_def").state_dict(), tmp_path / "tiny.pt")
        return tmp_path / "tiny.pt"

    return make


@pytest.mark.parametrize(
    ("kind", "files"),
    [
        ("train", ["train.yaml"]),
        ("train", ["train.yaml", "fine_tune.yaml"]),
        ("train", ["train.yaml", "evaluate.yaml"]),
        ("train", ["train.yaml", "federated.yaml"]),
        ("infer", ["inference.yaml"]),
        ("infer", ["inference.yaml", "phantom.yaml"]),
    ],
    ids=lambda value: "+".join(value) if isinstance(value, list) else value,
)
def test_check_properties_finds_nothing_missing_and_nothing_under_a_wrong_id(
    workflow, tiny_weights, kind, files
):
    given = (
        {"weights": str(tiny_weights(*files))} if files[-1] not in ("train.yaml", "federated.yaml") else {}
    )
    assert workflow(kind, *files, **given).check_properties() == []


def test_the_network_is_on_its_device_under_network_and_defined_under_network_def(workflow):
    train = workflow("train", "train.yaml")
    assert train.parser["network"] == "$@network_def.to(@device)"
    assert train.network_def is train.trainer.network


def configs_of(*names):
    return ConfigParser.load_config_files([str(CONFIGS / f"{name}.yaml") for name in names])


@pytest.mark.parametrize(
    ("trained", "inferred"), [(["train", "film"], ["inference"]), (["train"], ["inference", "phantom"])]
)
def test_inference_repeats_what_training_says_of_network_and_data(trained, inferred):
    train, inference = configs_of(*trained), configs_of(*inferred)
    shared = set(train) & set(inference)
    differ = {key for key in shared if train[key] != inference[key]} - {"amp"}
    assert differ == {"imports", "initialize", "network", "preprocessing", "run", "run_dir", "run_name"}
    assert {"network_def", "width", "levels", "size", "variant", "max_detections", "min_score"} <= shared
    steps = inference["preprocessing"]["transforms"]
    assert steps == [*train["preprocessing"]["transforms"], train["finish"]]
    assert inference["postprocessing"] == train["validate"]["postprocessing"]


@pytest.mark.parametrize(
    "variant",
    ["vild", "linker_only", "deformable_detr", "pair_verification", "paired_query", "paper"],
)
def test_a_variant_is_the_same_network_on_top_of_inference(variant):
    names = ("clnet", variant)
    train, inference = configs_of("train", *names), configs_of("inference", "phantom", *names)
    for key in ("network_def", "variant", "size", "max_detections", "width", "levels", "dropout"):
        assert train[key] == inference[key], key


@pytest.mark.parametrize("amp", [False, True])
def test_every_engine_has_the_setting_amp(workflow, tiny_weights, amp):
    train = workflow("train", "train.yaml", amp=amp)
    files = "train.yaml", "evaluate.yaml"
    evaluate = workflow("train", *files, amp=amp, weights=str(tiny_weights(*files)))
    files = "inference.yaml", "phantom.yaml"
    infer = workflow("infer", *files, amp=amp, weights=str(tiny_weights(*files)))
    for engine in (train.trainer, train.evaluator, evaluate.evaluator, infer.evaluator):
        assert engine.inferer.amp is amp


@pytest.mark.filterwarnings("ignore")
def test_mixed_precision_trains_and_leaves_boxes_in_float32(workflow):
    train = workflow("train", "train.yaml", amp=True, max_epochs=1)
    outputs = []

    def keep(module, inputs, output):
        outputs.append(output)

    train.trainer.network.register_forward_hook(keep)
    train.run()
    assert train.trainer.state.epoch == 1
    assert all(torch.isfinite(parameter).all() for parameter in train.network_def.parameters())
    half = {output["logits"].dtype for output in outputs}
    assert half == {torch.bfloat16}  # else nothing was mixed
    assert {output["boxes"].dtype for output in outputs} == {torch.float32}
    recall = read_metrics(train.parser.get_parsed_content("run_dir"))[-1]["metrics"]["mean_recall"]
    assert 0 <= recall <= 1


# ------------------------------------------------------- checks of the model zoo, on inference.yaml alone

ZOO = {"net_id": "exported_network", "meta_file": str(METADATA), "config_file": INFERENCE}


def test_the_model_zoo_finds_the_network_s_shapes_as_the_metadata_say(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    verify_net_in_out(**ZOO, bundle_root=str(ROOT / "bundle"), device="cpu")


@pytest.mark.filterwarnings("ignore")
def test_the_model_zoo_exports_the_shipped_weights(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    ckpt_export(
        **ZOO,
        bundle_root=str(ROOT / "bundle"),
        ckpt_file=str(ROOT / "bundle" / "models" / "model.pt"),
        filepath=str(tmp_path / "model.ts"),
        use_trace=True,
        input_shape=[1, 2, 160, 96],
    )
    image = torch.rand(2, 2, 160, 96, generator=torch.Generator().manual_seed(0))
    parser = ConfigParser(ConfigParser.load_config_file(CONFIGS / "inference.yaml"))
    parser["bundle_root"] = str(ROOT / "bundle")
    network = parser.get_parsed_content("network").eval()
    with torch.no_grad():
        pred, raw = torch.jit.load(tmp_path / "model.ts")(image), network(image)
    torch.testing.assert_close(pred[..., 0], raw["logits"][-1].sigmoid(), atol=1e-4, rtol=0)
    torch.testing.assert_close(pred[..., 1:], raw["boxes"][-1], atol=1e-4, rtol=0)


# --------------------------------------------------------------------------------- federated learning


@pytest.fixture
def client(data, tmp_path, tiny_weights, monkeypatch):
    """A client of a federation, with a copy of the bundle of its own."""
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "")
    monkeypatch.setattr(sys, "argv", ["python"])
    monkeypatch.setattr(sys, "excepthook", sys.__excepthook__)
    bundle = tmp_path / "app" / "bundle"
    shutil.copytree(CONFIGS, bundle / "configs")
    (bundle / "models").mkdir()
    for name in (
        "model",
        "phantom",
    ):  # the first is overwritten by training, the second is what it starts from
        shutil.copy(tiny_weights("train.yaml"), bundle / "models" / f"{name}.pt")
    settings = {**TINY_VALUES, "dataset_dir": str(data), "output_dir": str(tmp_path / "runs")}
    algo = MonaiAlgo(
        bundle_root="bundle",
        local_epochs=2,
        send_weight_diff=False,
        config_train_filename=["configs/train.yaml", "configs/federated.yaml"],
        train_kwargs={**settings, "rounds": 2, "local_epochs": 2, "run_name": "train"},
        config_evaluate_filename=["configs/train.yaml", "configs/evaluate.yaml"],
        eval_kwargs={**settings, "run_name": "evaluate", "section": "validation", "report": False},
        final_model_filepath="models/last.pt",
        save_dict_key="network",
    )
    algo.initialize({ExtraItems.CLIENT_NAME: "clinic", ExtraItems.APP_ROOT: str(tmp_path / "app")})
    return algo


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_federation_of_two_rounds_trains_one_network(client, tmp_path):
    shipped = torch.load(tmp_path / "tiny.pt", weights_only=True)
    rates, validations = [], {}
    client.trainer.add_event_handler(
        Events.ITERATION_STARTED, lambda engine: rates.append(engine.optimizer.param_groups[-1]["lr"])
    )
    validator = client.train_workflow.evaluator

    def keep(engine):
        validations[engine.state.epoch] = (
            engine.state.metrics["mean_recall"],
            {name: tensor.clone() for name, tensor in engine.network.state_dict().items()},
        )

    validator.add_event_handler(Events.COMPLETED, keep)
    weights = shipped
    for number in (1, 2):
        client.train(ExchangeObject(weights=weights))
        assert client.trainer.state.epoch == 2 * number
        sent = client.get_weights()
        assert sent.statistics["num_executed_iterations"] == client.trainer.state.iteration / number
        weights = sent.weights
        metrics = client.evaluate(ExchangeObject(weights=weights)).metrics
        assert metrics["mean_recall"] == validations[2 * number][0]

    best = client.get_weights({ExtraItems.MODEL_TYPE: ModelType.BEST_MODEL}).weights
    final = client.get_weights({ExtraItems.MODEL_TYPE: ModelType.FINAL_MODEL}).weights
    expected = max(sorted(validations), key=lambda epoch: validations[epoch][0])
    for name, tensor in best.items():
        assert torch.equal(tensor, validations[expected][1][name]), name
    for name, tensor in final.items():
        assert torch.equal(tensor, weights[name]), name
    assert any(not torch.equal(tensor, shipped[name]) for name, tensor in best.items())

    # One warm-up and one cosine over all rounds, by hand: base rate 0.001, 2 iterations of warm-up.
    total = len(rates)
    for step, rate in enumerate(rates):
        share = step / 2 if step < 2 else 0.5 * (1 + math.cos(math.pi * (step - 2) / (total - 2)))
        assert rate == pytest.approx(0.001 * share, abs=1e-9), step
    client.finalize()
