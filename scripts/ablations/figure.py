"""The figure of the evidence: R@0.25 of each row with its interval, its seeds, and the paper's number."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ablations.tables import RATES, TABLES
from matplotlib.figure import Figure

OURS, PAPER = "#1f4e79", "#b3541e"


def draw(tables: Mapping[str, Any], path: Path) -> None:
    """Draw the tables one below another."""
    heights = [len(table["rows"]) + 1.4 for table in tables.values()]
    figure = Figure(figsize=(9, 0.27 * sum(heights) + 0.9), layout="constrained", dpi=120)
    every_axes = figure.subplots(len(tables), 1, squeeze=False, sharex=True, height_ratios=heights)[:, 0]
    for axes, (name, table) in zip(every_axes, tables.items(), strict=True):
        for place, row in enumerate(table["rows"]):
            _draw_row(axes, place, row, f"iou={TABLES[name].iou:g}/recall/{RATES[0]}")
        axes.set_yticks(range(len(table["rows"])), [row["name"] for row in table["rows"]])
        axes.set_ylim(len(table["rows"]) - 0.5, -0.5)
        title = f"{TABLES[name].title}, IoU ≥ {TABLES[name].iou:g}"
        axes.set_title(title, loc="left", fontsize=10, fontweight="bold")
        axes.grid(axis="x", alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(labelsize=9)
    every_axes[-1].set_xlabel(f"R@{RATES[0]} in %, duplicates are false positives")
    every = [axes.get_legend_handles_labels() for axes in every_axes]
    unique = {
        label: handle for handles, labels in every for label, handle in zip(labels, handles, strict=True)
    }
    figure.legend(unique.values(), unique.keys(), loc="outside lower center", ncols=3, frameon=False)
    figure.savefig(path)


def _draw_row(axes: Any, place: int, row: Mapping[str, Any], measure: str) -> None:
    recall = row["numbers"][measure]
    value, low, high = (100 * recall[name] for name in ("value", "low", "high"))
    axes.plot([low, high], [place, place], color=OURS, linewidth=2, label="95% interval, patients and seeds")
    axes.plot(value, place, "o", color=OURS, markersize=6, label="mean")
    seeds = [100 * one for one in recall["by_seed"].values()]
    if len(seeds) > 1:
        axes.plot(seeds, [place] * len(seeds), "|", color="black", markersize=11, label="each seed")
    if row["paper"]:
        axes.plot(
            row["paper"][RATES[0]], place, "D", color=PAPER, fillstyle="none", label="the paper, on DDSM"
        )
