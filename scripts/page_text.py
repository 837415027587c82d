"""Numbers and tables as the generated pages show them."""

from collections.abc import Mapping, Sequence
from typing import Any

from clnet.evaluation.tables import percent

__all__ = ["by_seed", "percent", "points", "table"]


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
