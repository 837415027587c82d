"""A bundle is opened with the network that its weights are of."""

import shutil
from pathlib import Path

import pytest
import torch

from clnet.data.datalist import read_datalist
from clnet.networks import LesionLinker
from clnet.phantom import PhantomSettings, make_phantom
from clnet.predict.bundle import bundle_config, load
from clnet.predict.shipped import BundleError
from clnet.preprocessing.batch import collate_pairs

BUNDLE = Path(__file__).parents[2] / "bundle"
# Of paper.yaml, to make its network small enough for a test.
SMALL = {
    "levels: 4": "levels: 3",
    "network_def#encoder#layers: 6": "network_def#encoder#layers: 1",
    """  _target_: clnet.networks.resnet.ResNetBackbone
  name: resnet50
  weights: "@backbone_weights"
  checkpointing: "@checkpointing"
""": "  _target_: clnet.networks.LightBackbone\n",
}


@pytest.fixture
def bundle(tmp_path):
    """A copy of the bundle's configs, to change."""
    shutil.copytree(BUNDLE / "configs", tmp_path / "configs")
    (tmp_path / "models").mkdir()
    return tmp_path


def change_inference(bundle, old, new):
    config = bundle / "configs" / "inference.yaml"
    assert old in config.read_text()
    config.write_text(config.read_text().replace(old, new))


@pytest.mark.parametrize("variant", ["vild", "pair_verification", "paper"])
def test_a_bundle_says_what_its_weights_were_trained_by(bundle, variant):
    config = (bundle / "configs" / f"{variant}.yaml").read_text()
    for large, small in SMALL.items() if variant == "paper" else ():
        assert large in config
        config = config.replace(large, small)
    (bundle / "configs" / f"{variant}.yaml").write_text(config)
    change_inference(bundle, "trained_by: [film] ", f"trained_by: [clnet, {variant}] ")
    network = bundle_config(bundle).get_parsed_content("network_def")
    torch.save(network.state_dict(), bundle / "models" / "model.pt")
    model = load(bundle)
    logits = model.network(torch.zeros(1, 2, 64, 64), torch.ones(1, 2, dtype=torch.bool))["logits"]
    assert logits.shape[-1] == (125 if variant == "paper" else 20)
    assert isinstance(model.network.matcher, LesionLinker) == (variant == "paper")
    assert model.postprocessing.max_detections == (125 if variant == "paper" else 100)


def test_without_it_the_network_is_that_of_train_yaml(bundle):
    change_inference(bundle, "trained_by: [film] ", "trained_by: null ")
    shutil.copy(BUNDLE / "models" / "phantom.pt", bundle / "models" / "model.pt")
    assert load(bundle).name == load("phantom").name


def test_a_config_that_is_not_there_is_named_and_where_to_change_it(bundle):
    change_inference(bundle, "trained_by: [film] ", "trained_by: [nothing] ")
    with pytest.raises(BundleError, match=r"nothing\.yaml: no such file; trained_by in .*inference\.yaml"):
        load(bundle)


def test_each_model_has_its_own_threshold_of_reports(bundle):
    shutil.copy(BUNDLE / "models" / "phantom.pt", bundle / "models" / "model.pt")
    change_inference(bundle, "trained_by: [film] ", "trained_by: null ")
    config = bundle / "configs" / "train.yaml"
    config.write_text(config.read_text().replace("min_score: 0.3 ", "min_score: 0.7 "))
    assert (load(bundle).min_score, load("phantom").min_score) == (0.7, 0.3)


def test_mixed_precision_is_a_setting_of_the_bundle(bundle):
    shutil.copy(BUNDLE / "models" / "phantom.pt", bundle / "models" / "model.pt")
    change_inference(bundle, "trained_by: [film] ", "trained_by: null ")
    plain = load(bundle, "cpu")
    change_inference(bundle, "amp: false ", "amp: true ")
    mixed = load(bundle, "cpu")
    assert (plain.inferer.amp, mixed.inferer.amp) == (False, True)
    seen = []
    mixed.network.register_forward_hook(lambda module, inputs, outputs: seen.append(outputs))
    make_phantom(bundle / "data", PhantomSettings(pairs=3, rows=96, columns=64), workers=1)
    pair = next(pair for section in read_datalist(bundle / "data").sections.values() for pair in section)
    batch = collate_pairs([plain.loader.transform(pair.to_item())])
    (there,), (found,) = plain.find(batch), mixed.find(batch)
    assert seen[0]["logits"].dtype == torch.bfloat16
    assert seen[0]["boxes"].dtype == torch.float32
    # bfloat16 has 8 bits of precision.
    assert found.views["cc"].scores[0] == pytest.approx(there.views["cc"].scores[0], abs=0.1)
