"""docs/network.md says what the code does."""

import re
from pathlib import Path

import torch
from describe_network import layer_table, page, settings
from network_configs import build

PAGE = Path(__file__).parents[2] / "docs" / "network.md"


def test_the_page_is_up_to_date():
    assert PAGE.read_text() == page(), "run python scripts/describe_network.py > docs/network.md"


def test_the_parts_of_the_table_add_up_to_the_network():
    with torch.device("meta"):
        total = sum(parameter.numel() for parameter in build("clnet", "paper").parameters())
    rows = [
        re.fullmatch(r"\| `([\w.]+)` \| .* \| ([\d,]+) \|", row)
        for row in layer_table((64, 64), "clnet", "paper")[2:]
    ]
    parameters = {row[1]: int(row[2].replace(",", "")) for row in rows}
    parents = {name.rpartition(".")[0] for name in parameters}
    parents |= {name.rpartition(".")[0] for name in parents}
    assert sum(number for name, number in parameters.items() if name not in parents) == total
    assert sum(parameters[name] for name in ("encoder", "detector", "matcher")) == total


def test_the_papers_settings_are_those_of_the_paper():
    """Section 4.1 and the appendix; Deformable DETR's own where the paper is silent."""
    stated = {
        "width": 256,
        "heads": 8,
        "levels": 4,
        "points": 4,
        "ffn": 1024,
        "dropout": 0.1,
        "encoder#backbone": "resnet50",
        "encoder#layers": 6,
        "detector#layers": 6,
        "object_queries": 125,
        "detector#inter_attention": True,
        "detector#box_refinement": False,
        "matcher#link_queries": 16,
        "matcher#layers": 3,
    }
    found = settings("clnet", "paper")
    assert {name: found[name] for name in stated} == stated
