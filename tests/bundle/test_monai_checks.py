"""The bundle passes MONAI's own checks, and its metadata are true.

`meta_schema_20240725.json` stands in for MONAI's file of that name, which `verify_metadata` would download:
the same fields, types and requirements.
"""

import json
import re
import shutil
from pathlib import Path

import pytest
import torch
from bundle_readme import run_from_readme
from bundle_runs import ROOT
from monai.bundle import ConfigParser, verify_metadata, verify_net_in_out
from monai.bundle.properties import InferProperties, TrainProperties

from clnet import __version__

CONFIGS = ROOT / "bundle" / "configs"
METADATA = CONFIGS / "metadata.json"
SCHEMA = Path(__file__).parent / "meta_schema_20240725.json"
INFERENCE = [str(CONFIGS / "train.yaml"), str(CONFIGS / "inference.yaml")]


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
    wrong = {"_meta_#network_data_format#outputs#pred#num_channels": 3, "exported_network#links": False}
    with pytest.raises(ValueError, match="output channel number `2` doesn't match: `3`"):
        verify_net_in_out("exported_network", str(METADATA), INFERENCE, device="cpu", **wrong)


def test_the_metadata_say_what_goes_in_and_out(metadata):
    parser = ConfigParser(ConfigParser.load_config_files(INFERENCE))
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
    [(TrainProperties, ["train.yaml"]), (InferProperties, ["train.yaml", "inference.yaml"])],
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
