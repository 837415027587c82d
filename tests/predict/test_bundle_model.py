"""A bundle is opened with the network that its weights are of."""

import shutil
from pathlib import Path

import pytest
import torch
from monai.bundle import ConfigParser

from clnet.predict.bundle import config_files, open_bundle

BUNDLE = Path(__file__).parents[2] / "bundle"


@pytest.fixture
def bundle(tmp_path):
    """A copy of the bundle's configs, to change."""
    shutil.copytree(BUNDLE / "configs", tmp_path / "configs")
    (tmp_path / "models").mkdir()
    return tmp_path


@pytest.mark.parametrize("variant", ["vild", "pair_verification", "paper"])
def test_a_variant_is_what_model_yaml_says(bundle, variant):
    shutil.copy(bundle / "configs" / f"{variant}.yaml", bundle / "configs" / "model.yaml")
    if variant == "paper":  # its network, small enough for a test
        with (bundle / "configs" / "model.yaml").open("a") as file:
            file.write(
                "network_def#backbone: light\nnetwork_def#feature_levels: 3\nnetwork_def#encoder_layers: 1\n"
            )
    parser = ConfigParser(ConfigParser.load_config_files(config_files(bundle, "inference")))
    torch.save(parser.get_parsed_content("network_def").state_dict(), bundle / "models" / "model.pt")
    model = open_bundle(bundle)
    logits = model.network(torch.zeros(1, 2, 64, 64), torch.ones(1, 2, dtype=torch.bool))["logits"]
    assert logits.shape[-1] == (125 if variant == "paper" else 20)
    assert (model.network.linker is not None) == (variant == "paper")
    assert model.postprocessing.max_detections == (125 if variant == "paper" else 100)


def test_without_model_yaml_it_is_the_network_of_train_yaml(bundle):
    assert [Path(file).name for file in config_files(bundle, "inference")] == ["train.yaml", "inference.yaml"]
    shutil.copy(BUNDLE / "models" / "model.pt", bundle / "models")
    assert open_bundle(bundle).name == open_bundle(BUNDLE).name
