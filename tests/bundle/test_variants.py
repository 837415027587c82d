"""Every config that goes on top of train.yaml works there: trained for an epoch, or built at its size."""

import itertools

import in_process
import pytest
import yaml
from bundle_runs import ROOT, TINY_TRAINING, configs
from monai.bundle import ConfigParser, ConfigWorkflow

from clnet.phantom import PhantomSettings, make_phantom
from clnet.runs.checkpoints import load_checkpoint

VARIANTS = {
    "clnet": ["clnet"],
    **{
        name: ["clnet", name]
        for name in ("deformable_detr", "vild", "linker_only", "pair_verification", "paired_query")
    },
    "one_view": ["one_view"],
    "film": ["film"],
}
"""The configs on top of train.yaml, by the variant that they make."""
# What a variant's weights must have, and must not.
PARTS = {
    "clnet": (("inter_attention", "matcher.link_queries"), ("proposals", "geometry")),
    "deformable_detr": ((), ("inter_attention", "matcher")),
    "vild": (("inter_attention",), ("matcher",)),
    "linker_only": (("matcher.link_queries",), ("inter_attention",)),
    "pair_verification": (("inter_attention", "matcher"), ("link_queries",)),
    "paired_query": (("paired_queries",), ("inter_attention", "matcher")),
    "one_view": (("proposals",), ("geometry", "matcher", "object_queries")),
    "film": (("proposals", "inter_attentions.0.geometry", "matcher.geometry"), ("queries", "layer4")),
}
# Section 4.1, and Deformable DETR's where the paper is silent.
PAPER = {
    "width": 256,
    "heads": 8,
    "levels": 4,
    "points": 4,
    "ffn": 1024,
    "dropout": 0.1,
    "object_queries": 125,
    "network_def#encoder#backbone#name": "resnet50",
    "network_def#encoder#backbone#weights": "@backbone_weights",
    "network_def#encoder#layers": 6,
    "network_def#detector#layers": 6,
    "network_def#detector#inter_attention": True,
    "network_def#detector#box_refinement": False,
    "network_def#matcher#_target_": "clnet.networks.LesionLinker",
    "network_def#matcher#layers": 3,
    "network_def#matcher#link_queries": 16,
}


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    make_phantom(folder, PhantomSettings(pairs=16, seed=5, rows=96, columns=64), workers=1)
    return folder


@pytest.fixture
def workflow(dataset, tmp_path):
    """Makes the workflow of a variant."""

    def make(*names, **overrides):
        settings = {
            "output_dir": str(tmp_path),
            "dataset_dir": str(dataset),
            "max_epochs": 1,
            **{key: yaml.safe_load(value) for key, value in TINY_TRAINING.items()},
            **overrides,
        }
        made = ConfigWorkflow(yaml.safe_load(configs(*names)), workflow_type="train", **settings)
        made.initialize()
        return made

    with in_process.like_a_new_process(ROOT):
        yield make


@pytest.mark.slow
@pytest.mark.parametrize("variant", VARIANTS)
def test_a_variant_trains_and_is_the_network_that_its_name_says(variant, workflow, tmp_path):
    workflow(*VARIANTS[variant]).run()
    names = " ".join(load_checkpoint(tmp_path / f"{variant}-seed0" / "model.pt"))
    wanted, unwanted = PARTS[variant]
    assert all(part in names for part in wanted)
    assert not any(part in names for part in unwanted)


@pytest.mark.parametrize("names", [*VARIANTS.values(), ["clnet", "paper"], ["film", "clnet"]], ids="-".join)
def test_a_variant_goes_on_top_of_inference_and_phantom_yaml_as_on_top_of_train_yaml(names):
    training, inference = (
        ConfigParser(
            ConfigParser.load_config_files(
                [str(ROOT / "bundle" / "configs" / f"{name}.yaml") for name in names]
            )
        )
        for names in (("train", *names), ("inference", *([] if "film" in names else ["phantom"]), *names))
    )
    assert inference["network_def"] == training["network_def"]
    for key in (
        "width",
        "heads",
        "levels",
        "points",
        "ffn",
        "dropout",
        "object_queries",
        "frame",
        "size",
        "variant",
        "duplicate_iou",
    ):
        assert inference[key] == training[key], key
    inference.get_parsed_content("inferer")


@pytest.mark.slow
def test_the_config_of_the_paper_has_the_papers_network_and_schedule(workflow):
    parser = workflow("clnet", "paper", size=[64, 48]).parser
    assert {key: parser[key] for key in PAPER} == PAPER
    for part, name in itertools.product(("encoder", "detector", "matcher"), list(PAPER)[:6]):
        settings = parser["network_def"][part]
        assert settings.get(name, f"@{name}") == f"@{name}"
    groups = {
        group["name"]: group["initial_lr"]
        for group in parser.get_parsed_content("schedule").optimizer.param_groups
    }
    assert groups == pytest.approx({"backbone": 2e-5, "sampling": 2e-5, "matcher": 5e-5, "other": 2e-4})
