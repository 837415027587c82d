"""Numbers and tables as the generated pages show them."""

from collections.abc import Mapping, Sequence
from typing import Any


def percent(number: Mapping[str, Any], brief: bool = False, signed: bool = False) -> str:
    """A share in % with its interval, or without: briefly, or where it has none."""
    value, low, high = (number[name] for name in ("value", "low", "high"))
    if value is None:
        return "–"
    sign = "+" if signed else ""
    if brief or low is None:
        return f"{100 * value:{sign}.1f}"
    return f"{100 * value:{sign}.1f} ({100 * low:{sign}.1f} to {100 * high:{sign}.1f})"


def points(difference: Mapping[str, Any]) -> str:
    """A difference of shares, in points, with its interval and p."""
    p = difference["p"]
    return percent(difference, signed=True) + ("" if p is None else f", p {p:.3f}")


def table(heads: Sequence[str], rows: Sequence[Sequence[str]], numbers_right: bool = False) -> str:
    """A table in Markdown; the first column is of words, the others may stand to the right."""
    rule = ["---", *["---:" if numbers_right else "---"] * (len(heads) - 1)]
    return "\n".join(f"| {' | '.join(line)} |" for line in [heads, rule, *rows])
