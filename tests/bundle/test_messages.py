"""What goes wrong in a bundle run is said in one sentence."""

import subprocess
import sys

import pytest
from bundle_runs import run, run_outside

from clnet.runs.command_line import ConfigError, check_command_line, run_config

TRAIN = ["run", "training", "--config_file", "bundle/configs/train.yaml"]


def test_known_keys_pass(monkeypatch):
    check_command_line(
        [*TRAIN, "--max_epochs", "3", "--network_def#detector#layers=2", "--tracking", "mlflow"]
    )


def test_a_run_that_cannot_write_ends_with_status_3_and_one_line():
    code = (
        "from clnet.files import WriteError; from clnet.runs.error_hook import install_error_hook\n"
        "install_error_hook()\n"
        "raise WriteError('last.pt: the disk is full')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (3, "clnet: last.pt: the disk is full\n")


def test_a_process_without_a_command_line_has_nothing_to_check():
    check_command_line([])
    assert run_config([]) == {}


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("--max_epoch", "--max_epoch: nothing is called max_epoch in the config; did you mean max_epochs?"),
        (
            "--network_def#detector#interattention",
            "did you mean network_def#detector#inter_attention?",
        ),
        ("--network_def::detector::layres=2", "did you mean network_def#detector#layers?"),
        ("--zzz", "there are imports, bundle_root, output_dir"),
    ],
)
def test_a_misspelt_key_is_refused_with_what_was_meant(word, message):
    with pytest.raises(ConfigError, match=message.replace("?", r"\?")):
        check_command_line([*TRAIN, word, "3"])


@pytest.mark.parametrize("word", ["false", "true", "no", "0"])
def test_a_switch_is_python_s_true_or_false_since_monai_takes_false_for_a_text_that_counts_as_true(word):
    key = "network_def#detector#inter_attention"
    with pytest.raises(ConfigError, match=f"--{key}: '{word}' is neither True nor False"):
        check_command_line([*TRAIN, f"--{key}", word])
    assert run_config([*TRAIN, "--run_name", "false"])["run_name"] == "false"


@pytest.mark.parametrize("words", [["--resume", "True"], ["--resume"], ["--resume", "--seed", "3"]])
def test_a_switch_may_be_named_alone(words):
    check_command_line([*TRAIN, *words])
    assert run_config([*TRAIN, *words])["resume"] is True


def test_a_switch_may_follow_from_other_settings():
    check_command_line([*TRAIN, "--resume", "$@max_epochs > 12"])


def test_values_are_read_as_monai_reads_them():
    config = run_config([*TRAIN, "--learning_rate", "1e-4", "--size", "[64, 32]", "--parent_run", "None"])
    assert (config["learning_rate"], config["size"], config["parent_run"]) == (1e-4, [64, 32], None)


def test_the_config_of_a_command_line_has_its_overrides():
    config = run_config([*TRAIN, "--network_def#detector#layers=2", "--max_epochs", "3"])
    detector = config["network_def"]["detector"]
    assert (detector["layers"], config["max_epochs"]) == (2, 3)
    assert detector["inter_attention"] is True


@pytest.mark.slow
@pytest.mark.parametrize(
    ("start", "overrides", "message"),
    [
        (run, {"dataset_dir": "/nowhere"}, "clnet: dataset_dir: /nowhere has no datalist.json"),
        (run_outside, {"max_epoch": "3"}, "clnet: --max_epoch: nothing is called max_epoch"),
        (run, {"width": "33"}, "clnet: "),
    ],
    ids=["path", "key", "value"],
)
def test_a_wrong_path_key_or_value_ends_with_one_sentence(start, overrides, message, tmp_path):
    done = start("training", output_dir=tmp_path, check=False, **overrides)
    assert done.returncode != 0
    assert "Traceback" not in done.stderr
    assert done.stderr.strip().splitlines()[-1].startswith(message)
