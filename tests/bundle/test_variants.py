"""Every config that goes on top of train.yaml works there: trained for an epoch, or built at its size."""

import sys

import pytest
import yaml
from bundle_runs import ROOT, TINY, configs
from monai.bundle import ConfigWorkflow

from clnet.networks.clnet import PAPER_SETTINGS
from clnet.phantom import PhantomSettings, make_phantom
from clnet.runs.checkpoints import load_checkpoint

VARIANTS = ["deformable_detr", "vild", "linker_only", "pair_verification", "paired_query"]
# What a variant's weights must have, and must not.
PARTS = {
    "deformable_detr": ((), ("inter_attention", "linker", "verification")),
    "vild": (("inter_attention",), ("linker", "verification")),
    "linker_only": (("linker",), ("inter_attention", "verification")),
    "pair_verification": (("inter_attention", "verification"), ("linker",)),
    "paired_query": (("paired_queries",), ("inter_attention", "linker", "verification")),
}


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    make_phantom(folder, PhantomSettings(pairs=16, seed=5, rows=96, columns=64), workers=1)
    return folder


@pytest.fixture
def workflow(dataset, tmp_path, monkeypatch):
    """Makes the workflow of a variant; what a bundle run changes in its process is put back."""
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)

    def make(*names, **overrides):
        settings = {
            "output_dir": str(tmp_path),
            "dataset_dir": str(dataset),
            "max_epochs": 1,
            **{key: yaml.safe_load(value) for key, value in TINY.items() if not key.startswith("network")},
            **overrides,
        }
        made = ConfigWorkflow(yaml.safe_load(configs(*names)), workflow_type="train", **settings)
        made.initialize()
        return made

    return make


@pytest.mark.slow
@pytest.mark.parametrize("variant", VARIANTS)
def test_a_variant_trains_and_is_the_network_that_its_name_says(variant, workflow, tmp_path):
    workflow(variant).run()
    names = " ".join(load_checkpoint(tmp_path / f"{variant}-seed0" / "model.pt"))
    wanted, unwanted = PARTS[variant]
    assert all(part in names for part in wanted)
    assert not any(part in names for part in unwanted)


@pytest.mark.slow
def test_the_config_of_the_paper_has_the_papers_network_and_schedule(workflow):
    parser = workflow("paper", size=[64, 48]).parser
    settings = {key: value for key, value in parser["network_def"].items() if key[0] != "_"}
    assert settings.pop("backbone_weights") == "@backbone_weights"
    assert settings == PAPER_SETTINGS
    groups = {
        group["name"]: group["initial_lr"]
        for group in parser.get_parsed_content("schedule").optimizer.param_groups
    }
    assert groups == pytest.approx({"backbone": 2e-5, "sampling": 2e-5, "linker": 5e-5, "other": 2e-4})
