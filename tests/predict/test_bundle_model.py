"""A bundle is opened with the network that its weights are of."""

import shutil
from pathlib import Path

import pytest
import torch
from monai.bundle import ConfigParser

from clnet.networks import LesionLinker
from clnet.predict.bundle import config_files, load

BUNDLE = Path(__file__).parents[2] / "bundle"
# Of paper.yaml, to make its network small enough for a test.
SMALL = {
    "levels: 4": "levels: 3",
    "network_def#encoder#layers: 6": "network_def#encoder#layers: 1",
    """  _target_: clnet.networks.resnet.ResNetBackbone
  name: resnet50
  weights: "@backbone_weights"
""": "  _target_: clnet.networks.LightBackbone\n",
}


@pytest.fixture
def bundle(tmp_path):
    """A copy of the bundle's configs, to change."""
    shutil.copytree(BUNDLE / "configs", tmp_path / "configs")
    (tmp_path / "models").mkdir()
    return tmp_path


@pytest.mark.parametrize("variant", ["vild", "pair_verification", "paper"])
def test_a_variant_is_what_model_yaml_says(bundle, variant):
    config = (bundle / "configs" / f"{variant}.yaml").read_text()
    for large, small in SMALL.items() if variant == "paper" else ():
        assert large in config
        config = config.replace(large, small)
    (bundle / "configs" / "model.yaml").write_text(config)
    parser = ConfigParser(ConfigParser.load_config_files(config_files(bundle, "inference")))
    torch.save(parser.get_parsed_content("network_def").state_dict(), bundle / "models" / "model.pt")
    model = load(bundle)
    logits = model.network(torch.zeros(1, 2, 64, 64), torch.ones(1, 2, dtype=torch.bool))["logits"]
    assert logits.shape[-1] == (125 if variant == "paper" else 20)
    assert isinstance(model.network.matcher, LesionLinker) == (variant == "paper")
    assert model.postprocessing.max_detections == (125 if variant == "paper" else 100)


def test_without_model_yaml_it_is_the_network_of_train_yaml(bundle):
    assert [Path(file).name for file in config_files(bundle, "inference")] == ["train.yaml", "inference.yaml"]
    shutil.copy(BUNDLE / "models" / "model.pt", bundle / "models")
    assert load(bundle).name == load(BUNDLE).name
