"""FROC curves as a figure: steps or lines with their bands, readable without colour."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import matplotlib.ticker
from matplotlib.figure import Figure

_LINES = ("-", "--", ":", "-.")
_MARKERS = ("o", "s", "^", "D", "v", "P")


def draw_froc(
    panels: Mapping[str, Mapping[str, Mapping[str, Any]]],
    path: Path,
    rates: tuple[float, ...],
    interpolate: bool = False,
) -> None:
    """Draw panels side by side, each with its curves; the suffix of the path sets the format.

    Args:
        panels: by title, then by the name of the curve; a curve is ``{"fpi", "value", "low", "high"}``, as in
            ``metrics.json``.
        path: the file to write.
        rates: the FPI at which the axis has ticks and the curves have markers.
        interpolate: whether recall is interpolated between points; if not, curves are steps.
    """
    figure = Figure(figsize=(1.2 + 4.6 * len(panels), 4.4), layout="constrained", dpi=150)
    every_axes = figure.subplots(1, len(panels), squeeze=False, sharey=True)[0]
    has_band = False
    for axes, (title, curves) in zip(every_axes, panels.items(), strict=True):
        for number, (name, curve) in enumerate(curves.items()):
            if None in curve["value"]:
                continue  # without lesions there is no recall
            marked = [curve["fpi"].index(rate) for rate in rates if rate in curve["fpi"]]
            (line,) = axes.plot(
                curve["fpi"],
                curve["value"],
                _LINES[number % len(_LINES)],
                drawstyle="default" if interpolate else "steps-post",
                marker=_MARKERS[number % len(_MARKERS)],
                markevery=marked,
                label=name,
            )
            if None not in curve["low"]:
                has_band = True
                axes.fill_between(
                    curve["fpi"],
                    curve["low"],
                    curve["high"],
                    step=None if interpolate else "post",
                    alpha=0.18,
                    color=line.get_color(),
                )
        axes.set_title(title)
        axes.set_xscale("log", base=2)
        axes.set_xticks(rates)
        axes.xaxis.set_major_formatter(matplotlib.ticker.FormatStrFormatter("%g"))
        axes.set_xlabel("false positives per image")
        axes.set_ylim(0, 1.02)
        axes.grid(alpha=0.3)
        if axes.lines:
            axes.legend(loc="lower right")
    every_axes[0].set_ylabel("recall of lesion boxes" + ", band: 95% interval" * has_band)
    figure.savefig(path)
