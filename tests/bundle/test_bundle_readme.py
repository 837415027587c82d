"""The bundle's README says what the configs say."""

import re
from pathlib import Path

import yaml
from bundle_readme import README, readme_commands, readme_options
from bundle_runs import ROOT
from monai.bundle import ConfigParser

from clnet.runs.command_line import check_command_line

CONFIGS = ROOT / "bundle" / "configs"
TRAIN = CONFIGS / "train.yaml"
# What belongs to how the engines are wired: nobody has a reason to change it.
WIRING = {"_target_", "decollate", "drop_last", "epoch_level", "print_lr"}


def values(part, path=()):
    """Every value in a config by its id; a list of numbers, or of rows of numbers, is one value."""
    if isinstance(part, dict):
        for key, below in part.items():
            yield from values(below, (*path, key))
    elif isinstance(part, list) and not all(isinstance(item, int | float | list) for item in part):
        for index, below in enumerate(part):
            yield from values(below, (*path, str(index)))
    elif path[-1] not in WIRING:
        yield "#".join(path), part


def is_expression(value):
    return isinstance(value, str) and value[:1] in ("$", "@")


def as_shown(value):
    """As it is written on a command line, which MONAI reads as Python."""
    return f"`{value}`"


def test_every_value_of_train_yaml_is_in_the_tables_with_its_default():
    literals = {
        key: as_shown(value)
        for key, value in values(yaml.safe_load(TRAIN.read_text()))
        if not is_expression(value)
    }
    shown = {key: default for key, default in readme_options().items() if key in literals}
    assert shown == literals


def test_every_value_of_clnet_yaml_is_in_the_tables_with_its_default():
    own = yaml.safe_load((CONFIGS / "clnet.yaml").read_text())
    loss = own["network_def#matcher"].pop("loss")
    parts = {f"network_def#matcher#loss#{key}": value for key, value in loss.items()}
    for part in ("detector", "matcher"):
        parts |= {f"network_def#{part}#{key}": value for key, value in own[f"network_def#{part}"].items()}
    shared = set(dict(values(yaml.safe_load(TRAIN.read_text()))))
    literals = {
        key: as_shown(value)
        for key, value in parts.items()
        if key not in shared and not is_expression(value) and not key.endswith("_target_")
    }
    assert {key: readme_options()[key] for key in literals} == literals


def test_what_train_yaml_names_as_worth_changing_is_in_the_tables():
    worth = re.search(r"-- what to change\n(.*?)# ----", TRAIN.read_text(), re.DOTALL)[1]
    assert set(yaml.safe_load(worth)) <= set(readme_options())


def test_every_option_in_the_tables_exists():
    evaluating, inferring = (
        ConfigParser(ConfigParser.load_config_files([str(TRAIN), str(CONFIGS / name)]))
        for name in ("evaluate.yaml", "inference.yaml")
    )
    paper = ConfigParser(ConfigParser.load_config_files([str(TRAIN), str(CONFIGS / "clnet.yaml")]))
    configs = (evaluating, inferring, paper)
    assert [key for key in readme_options() if not any(key in config for config in configs)] == []
    assert readme_options()["section"] == as_shown(inferring["section"])
    assert readme_options()["report"] == as_shown(evaluating["report"])
    assert (evaluating["attention"], inferring["attention"]) == (True, False), "on in evaluating"


def test_every_config_is_spoken_of():
    spoken_of = set(re.findall(r"`(\w+\.yaml)`", README.read_text(encoding="utf-8")))
    assert spoken_of == {path.name for path in CONFIGS.glob("*.yaml")}


def test_commands_name_files_and_options_that_exist(monkeypatch):
    monkeypatch.chdir(ROOT)
    for words in readme_commands():
        for file in re.findall(r"bundle/configs/[\w.]+", " ".join(words)):
            assert Path(file).exists(), words
        if "run" in words:
            check_command_line(words[words.index("run") :])


def test_links_lead_somewhere():
    for target in re.findall(r"\]\(((?!http)[^)#]+)", README.read_text(encoding="utf-8")):
        assert (README.parent / Path(target)).exists(), target
