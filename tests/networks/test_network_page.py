"""docs/network.md says what the code does."""

import re
from pathlib import Path

import torch

from clnet.networks import PAPER_SETTINGS, CLNet
from clnet.networks.describe import layer_table, page

PAGE = Path(__file__).parents[2] / "docs" / "network.md"


def test_the_page_is_up_to_date():
    assert PAGE.read_text() == page(), "run python -m clnet.networks.describe > docs/network.md"


def test_the_parts_of_the_table_add_up_to_the_network():
    with torch.device("meta"):
        total = sum(parameter.numel() for parameter in CLNet(**PAPER_SETTINGS).parameters())
    rows = [
        re.fullmatch(r"\| `([\w.]+)` \| .* \| ([\d,]+) \|", row)
        for row in layer_table(PAPER_SETTINGS, (64, 64))[2:]
    ]
    parameters = {row[1]: int(row[2].replace(",", "")) for row in rows}
    parents = {name.rpartition(".")[0] for name in parameters}
    parents |= {name.rpartition(".")[0] for name in parents}
    assert sum(number for name, number in parameters.items() if name not in parents) == total
    assert sum(parameters[name] for name in ("encoder", "decoder", "linker")) == total


def test_the_papers_settings_are_those_of_the_paper():
    stated = {"backbone": "resnet50", "object_queries": 125, "link_queries": 16, "linker_layers": 3}
    assert stated.items() <= PAPER_SETTINGS.items()
