"""Numbers, tables and generated passages as the pages show them."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from clnet.evaluation.tables import percent

__all__ = ["between_marks", "by_seed", "percent", "points", "table", "write_between_marks"]


def points(difference: Mapping[str, Any]) -> str:
    """A difference of shares, in points, with its interval and p."""
    p = difference["p"]
    return percent(difference, signed=True) + ("" if p is None else f", p {p:.3f}")


def by_seed(number: Mapping[str, Any], signed: bool = False) -> str:
    """A share in % or a difference in points with each seed of the training."""
    sign = "+" if signed else ""
    return ", ".join(f"{100 * value:{sign}.1f}" for value in number["by_seed"].values())


def table(heads: Sequence[str], rows: Sequence[Sequence[str]], numbers_right: bool = False) -> str:
    """A table in Markdown; the columns after the first may be aligned to the right."""
    rule = ["---", *["---:" if numbers_right else "---"] * (len(heads) - 1)]
    return "\n".join(f"| {' | '.join(line)} |" for line in [heads, rule, *rows])


def between_marks(page: Path, mark: str) -> str:
    """The generated passage of a page: what is between ``<!-- mark -->`` and ``<!-- end of mark -->``."""
    return _passage(page, mark)[1].strip()


def write_between_marks(page: Path, mark: str, words: str) -> None:
    """Replace the generated passage of a page."""
    before, _, after = _passage(page, mark)
    page.write_text(f"{before}{words}\n{after}", encoding="utf-8")


def _passage(page: Path, mark: str) -> tuple[str, str, str]:
    """The text before the passage, the passage, and the text after it; the marks are outside."""
    pattern = rf"(.*<!-- {mark} -->\n)(.*?)(<!-- end of {mark} -->.*)"
    found = re.fullmatch(pattern, page.read_text(encoding="utf-8"), re.DOTALL)
    if not found:
        raise ValueError(f"{page}: <!-- {mark} --> and <!-- end of {mark} --> are not there")
    return found[1], found[2], found[3]
