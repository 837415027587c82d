"""The tables of docs/federated.md are those of the numbers beside it."""

import json

import federated
import pytest
from page_commands import ROOT
from page_text import between_marks

DOCS = ROOT / "docs"


@pytest.mark.parametrize("kind", ["phantom", "film"])
def test_the_page_tells_the_numbers_beside_it(kind):
    result = json.loads((DOCS / "federated.json").read_text(encoding="utf-8"))[kind]
    assert between_marks(DOCS / "federated.md", kind) == federated.passage_of(result).strip()
    rows = {row["trained"]: row["pairs"] for row in result["rows"]}
    alone = sum(pairs for name, pairs in rows.items() if name.endswith("alone"))
    assert alone == rows["all data together"]
