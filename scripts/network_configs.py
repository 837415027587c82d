"""Networks as the bundle's configs define them, with some settings changed."""

from pathlib import Path

from monai.bundle.config_parser import ConfigParser

from clnet.losses import CLNetLoss
from clnet.networks import CLNet

CONFIGS = Path(__file__).parents[1] / "bundle" / "configs"


def parse(*names: str, **changes: object) -> ConfigParser:
    """The configs of these names over train.yaml.

    ``detector__layers=1`` changes ``network_def#detector#layers``, ``width=32`` a setting at the top.
    """
    parser = ConfigParser(
        ConfigParser.load_config_files([str(CONFIGS / f"{name}.yaml") for name in ("train", *names)])
    )
    for name, value in changes.items():
        parser[f"network_def#{name.replace('__', '#')}" if "__" in name else name] = value
    return parser


def build(*names: str, **changes: object) -> CLNet:
    """The network of these configs, on the CPU, with random weights."""
    return parse(*names, **changes).get_parsed_content("network_def")


def build_with_loss(*names: str, **changes: object) -> tuple[CLNet, CLNetLoss]:
    """The network of these configs and the loss that trains it."""
    parser = parse(*names, **changes)
    return parser.get_parsed_content("network_def"), parser.get_parsed_content("loss")
