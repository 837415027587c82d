"""Whatever a class takes can be set from the command line, and nothing else."""

import pytest

from clnet.runs.command_line import ConfigError, check_command_line

TRAIN = ["run", "training", "--config_file", "bundle/configs/train.yaml"]


@pytest.mark.parametrize(
    "words",
    [
        ["--train#trainer#amp", "True"],
        ["--train#trainer#epoch_length", "3"],  # of a class that MONAI finds by its name alone
        ["--optimizer#betas", "(0.9, 0.99)"],
        ["--train::dataloader::pin_memory", "True"],
        ["--validate#key_metric#mean_recall#count_duplicates", "True"],
        ["--train#handlers#1#step_transform", "None"],
        ["--loss#detection#l1_weight", "3"],
        ["--schedule#end_lr=1e-6"],
        ["--optimizer#_target_", "torch.optim.SGD", "--optimizer#momentum", "0.9"],
        ["--optimizer#momentum", "0.9", "--optimizer#_target_", "torch.optim.SGD"],
        ["--train#inferer#_disabled_", "True"],
    ],
    ids=" ".join,
)
def test_an_argument_need_not_be_in_the_config(words):
    check_command_line([*TRAIN, *words])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--train#trainer#epoch_lenght", "3"], r"did you mean train#trainer#epoch_length\?"),
        (["--optimizer#beta", "0.9"], r"did you mean optimizer#betas\?"),
        (["--optimizer#momentum", "0.9"], "nothing is called optimizer#momentum .* params, lr, weight_decay"),
        (["--train#handlers#0#folder", "x"], "nothing is called train#handlers#0#folder"),
        (["--train#handlers#99", "x"], "nothing is called train#handlers#99"),
        (["--train#dataloader#drop_last", "yes"], "'yes' is neither True nor False"),
        (
            ["--train#trainer#optim_set_to_none#x", "1"],
            "the config does not list train#trainer#optim_set_to_none, an argument of SupervisedTrainer",
        ),
    ],
)
def test_what_is_no_argument_is_refused(words, message):
    with pytest.raises(ConfigError, match=message):
        check_command_line([*TRAIN, *words])
