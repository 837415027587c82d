"""The tables of docs/federated.md are those of the numbers beside it."""

import json

import federated
from page_commands import ROOT
from page_text import between_marks

PAGE = ROOT / "docs" / "federated.md"


def test_the_page_tells_the_numbers_beside_it():
    results = json.loads(PAGE.with_suffix(".json").read_text(encoding="utf-8"))
    assert "phantom" in results
    for kind, result in results.items():
        assert between_marks(PAGE, kind) == federated.passage_of(result).strip()
        rows = {row["trained"]: row["pairs"] for row in result["rows"]}
        alone = sum(pairs for name, pairs in rows.items() if name.endswith("alone"))
        assert alone == rows["all data together"]
