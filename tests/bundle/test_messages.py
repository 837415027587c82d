"""What goes wrong in a bundle run is said in one sentence."""

import pytest
from bundle_runs import run

from clnet.training.command_line import ConfigError, check_command_line, run_config

TRAIN = ["run", "training", "--config_file", "bundle/configs/train.yaml"]


def test_known_keys_pass(monkeypatch):
    check_command_line([*TRAIN, "--max_epochs", "3", "--network#width=32", "--tracking", "mlflow"])


def test_a_process_without_a_command_line_has_nothing_to_check():
    check_command_line([])
    assert run_config([]) == {}


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("--max_epoch", "--max_epoch: nothing is called max_epoch in the config; did you mean max_epochs?"),
        ("--network#objectqueries", "did you mean network#object_queries?"),
        ("--network::widht=64", "did you mean network#width?"),
        ("--zzz", "there are imports, bundle_root, output_dir"),
    ],
)
def test_a_misspelt_key_is_refused_with_what_was_meant(word, message):
    with pytest.raises(ConfigError, match=message.replace("?", r"\?")):
        check_command_line([*TRAIN, word, "3"])


def test_the_config_of_a_command_line_has_its_overrides():
    config = run_config([*TRAIN, "--network#width=32", "--max_epochs", "3"])
    assert (config["network"]["width"], config["max_epochs"]) == (32, 3)
    assert config["network"]["heads"] == 4


@pytest.mark.slow
@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"dataset_dir": "/nowhere"}, "clnet: dataset_dir: /nowhere has no datalist.json"),
        ({"max_epoch": "3"}, "clnet: --max_epoch: nothing is called max_epoch"),
        ({"network#width": "33"}, "clnet: "),
    ],
)
def test_a_wrong_path_key_or_value_ends_with_one_sentence(overrides, message, tmp_path):
    done = run("training", output_dir=tmp_path, check=False, **overrides)
    assert done.returncode != 0
    assert "Traceback" not in done.stderr
    assert done.stderr.strip().splitlines()[-1].startswith(message)
