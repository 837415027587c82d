"""The figures of the evidence: R@0.25 of each row with its interval, its seeds, and the paper's number."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

RATE, IOU = "0.25", "iou=0.5"
OURS, PAPER = "#1f4e79", "#b3541e"


def draw(tables: Mapping[str, Any], path: Path) -> bool:
    """Draw the tables that have rows to compare, one below another; returns whether there are any."""
    shown = {
        name: [row for row in table["rows"] if row["numbers"]]
        for name, table in tables.items()
        if sum(row["numbers"] is not None for row in table["rows"]) > 1
    }
    if not shown:
        return False
    heights = [len(rows) + 1.4 for rows in shown.values()]
    figure = Figure(figsize=(9, 0.27 * sum(heights) + 0.9), layout="constrained", dpi=120)
    every_axes = figure.subplots(len(shown), 1, squeeze=False, sharex=True, height_ratios=heights)[:, 0]
    for axes, (name, rows) in zip(every_axes, shown.items(), strict=True):
        for place, row in enumerate(rows):
            _draw_row(axes, place, row)
        axes.set_yticks(range(len(rows)), [row["words"] for row in rows])
        axes.set_ylim(len(rows) - 0.5, -0.5)
        section = " (validation)" if tables[name]["section"] == "validation" else ""
        axes.set_title(tables[name]["title"] + section, loc="left", fontsize=10, fontweight="bold")
        axes.grid(axis="x", alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(labelsize=9)
    every_axes[-1].set_xlabel(f"R@{RATE} in %, IoU ≥ 0.5")
    handles, labels = every_axes[0].get_legend_handles_labels()
    unique = dict(zip(labels, handles, strict=True))
    figure.legend(unique.values(), unique.keys(), loc="outside lower center", ncols=3, frameon=False)
    figure.savefig(path)
    return True


def _draw_row(axes: Any, place: int, row: Mapping[str, Any]) -> None:
    recall = row["numbers"][IOU]["recall"][RATE]
    value, low, high = (100 * recall[name] for name in ("value", "low", "high"))
    axes.plot([low, high], [place, place], color=OURS, linewidth=2, label="ours, 95% interval over patients")
    axes.plot(value, place, "o", color=OURS, markersize=6)
    seeds = [100 * one for one in recall["by_seed"].values()]
    if len(seeds) > 1:
        axes.plot(seeds, [place] * len(seeds), "|", color="black", markersize=11, label="ours, each seed")
    if row["paper"]:
        axes.plot(row["paper"][RATE], place, "D", color=PAPER, fillstyle="none", label="the paper, on DDSM")
