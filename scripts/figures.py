"""Draws the figures of docs/method.md: the method, and the paper's linker at work on the phantom.

python scripts/figures.py --weights output/clnet-seed0/model.pt [--data DIR] [--output DIR] [--images DIR]
"""

import argparse
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch, Rectangle

from clnet.boxes import box_iou
from clnet.data.datalist import read_datalist
from clnet.data.pair import VIEW_NAMES, Pair
from clnet.data.pictures import COLOURS
from clnet.data.reader import read_image
from clnet.findings.types import Link, PairFindings, read_findings
from clnet.phantom import PhantomSettings, make_phantom

ROOT = Path(__file__).parent.parent
PHANTOM = PhantomSettings(pairs=3000)  # that of train.yaml, whose test section no training sees
IOU, LINK_SCORE = 0.5, 0.5
HEAT = colormaps["plasma"]


class Example(NamedTuple):
    """A pair, its findings, and the correct link with the highest score of each lesion that has one."""

    pair: Pair
    found: PairFindings
    links: dict[str, Link]

    @property
    def all_lesions_linked(self) -> bool:
        """Whether there are lesions, and each has a correct link."""
        lesions = {lesion for view in self.pair.views.values() for lesion in view.lesion_ids}
        return bool(lesions) and set(self.links) == lesions


# ---------------------------------------------------------------------------------------------- the method


def draw_method(pair: Pair, path: Path) -> None:
    """The architecture: two views through one detector with inter-attention, then the lesion linker."""
    figure = Figure(figsize=(13, 5.6), dpi=120)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.axis("off")
    shared, red = "#e9e9ee", "#8a2b2b"
    _frame(axes, (29, 3), (40, 48), "View-Interactive Lesion Detector")
    _frame(axes, (76, 3), (51, 48), "Lesion Linker")
    for name, y, outward, colour in (("CC", 40, 1, "#dcebf7"), ("MLO", 14, -1, "#fde8d3")):
        letter = name[0].lower()
        pixels = read_image(pair.views[name.lower()].image).pixels
        axes.imshow(pixels, cmap="gray", extent=(2, 11, y - 6.5, y + 6.5), aspect="auto")
        axes.text(6.5, y + outward * 8, name, ha="center", va="center", fontweight="bold")
        _box(
            axes,
            (31, y - 5),
            (13, 10),
            f"object queries\nof {name}\nread each other,\nthen the image",
            colour,
        )
        _box(axes, (53, y - 5), (14, 10), f"embeddings $E^{letter}$:\nscores and boxes", colour)
        _box(axes, (79, y - 4), (13, 8), f"$E^{letter}$ and the\ndustbin $e^d$", colour)
        _box(axes, (113, y - 4), (12, 8), f"link embedding\n$v^{letter}$ of {name}", colour)
        near = 27 + outward * 1.5
        _arrow(axes, (11, y), (14, near))
        _arrow(axes, (26, near), (31, y))
        _arrow(axes, (37.5, 27 + outward * 4.5), (37.5, y - outward * 5), red, "<->")
        _arrow(axes, (44, y), (53, y))
        _arrow(axes, (67, y), (79, y))
        _arrow(axes, (92, y), (97, near))
        _arrow(axes, (109, near), (113, y))
        _arrow(axes, (119, y + outward * 5.5), (85.5, y + outward * 5.5), red)
        words = f"the most similar one is the lesion in {name}"
        axes.text(102, y + outward * 7.5, words, ha="center", va="center", fontsize=8.5, color=red)
    _box(axes, (14, 21), (12, 12), "one backbone\nand encoder\nfor both", shared)
    _box(axes, (31, 22.5), (13, 9), "inter-attention\nCC ↔ MLO\nin every layer", "#f7dede", bold=True)
    _box(axes, (97, 19), (12, 16), "link queries\nread each other,\nthen CC,\nthen MLO", "#e4f1e4", bold=True)
    _box(axes, (113, 23.5), (12, 7), "pair score $s$", shared)
    _arrow(axes, (109, 27), (113, 27))
    axes.set(xlim=(0, 130), ylim=(0, 56))
    figure.savefig(path)


def _frame(axes: Axes, corner: tuple[float, float], size: tuple[float, float], title: str) -> None:
    axes.add_patch(
        FancyBboxPatch(
            corner, *size, boxstyle="round,pad=0,rounding_size=1.5", fill=False, edgecolor="#888888"
        )
    )
    axes.text(
        corner[0] + size[0] / 2, corner[1] + size[1] + 1, title, ha="center", fontsize=12, fontweight="bold"
    )


def _box(
    axes: Axes,
    corner: tuple[float, float],
    size: tuple[float, float],
    words: str,
    colour: str,
    bold: bool = False,
) -> None:
    axes.add_patch(
        FancyBboxPatch(
            corner, *size, boxstyle="round,pad=0,rounding_size=0.8", facecolor=colour, edgecolor="#555555"
        )
    )
    middle = corner[0] + size[0] / 2, corner[1] + size[1] / 2
    axes.text(*middle, words, ha="center", va="center", fontsize=9, fontweight="bold" if bold else "normal")


def _arrow(
    axes: Axes,
    start: tuple[float, float],
    end: tuple[float, float],
    colour: str = "#555555",
    style: str = "->",
) -> None:
    axes.add_patch(
        FancyArrowPatch(start, end, arrowstyle=style, mutation_scale=12, color=colour, shrinkA=0, shrinkB=0)
    )


# ---------------------------------------------------------------------------------------- the linker at work


def examples(data: Path, output: Path, weights: Path) -> Iterator[Example]:
    """The pairs of the phantom's test section with the findings of CL-Net with these weights."""
    make_phantom(data, PHANTOM)
    findings = output / "figures" / "findings.json"
    if not findings.exists():
        configs = [f"bundle/configs/{name}.yaml" for name in ("inference", "phantom", "clnet")]
        command = [sys.executable, "-W", "ignore", "-m", "monai.bundle", "run", "inferring"]
        words = ["--config_file", str(configs), "--attention", "True", "--dataset_dir", str(data)]
        words += ["--output_dir", str(output), "--run_name", "figures", "--phantom_dir", str(output / "none")]
        words += ["--weights", str(weights)]
        subprocess.run(command + words, cwd=ROOT, env={**os.environ, "OMP_NUM_THREADS": "1"}, check=True)
    found = {pair.pair_id: pair for pair in read_findings(findings)}
    for pair in read_datalist(data)["test"]:
        yield Example(pair, found[pair.pair_id], correct_links(pair, found[pair.pair_id]))


def correct_links(pair: Pair, found: PairFindings) -> dict[str, Link]:
    """The correct link with the highest score of each lesion that has one."""
    links: dict[str, Link] = {}
    for link in found.links:  # highest score first
        ends = {_lesion_at(pair, found, name, getattr(link, name)) for name in VIEW_NAMES}
        if len(ends) == 1 and None not in ends:
            links.setdefault(ends.pop() or "", link)
    return links


def dustbin_links(example: Example) -> list[Link]:
    """The correct links of lesions that only one view shows."""
    return [link for link in example.links.values() if None in (link.cc, link.mlo)]


def _lesion_at(pair: Pair, found: PairFindings, name: str, index: int | None) -> str | None:
    """The lesion that a detection hits; for the dustbin, the one lesion that this view does not show."""
    view = pair.views[name]
    if index is None:
        absent = {i for other in pair.views.values() for i in other.lesion_ids} - set(view.lesion_ids)
        return min(absent) if len(absent) == 1 else None
    overlaps = np.asarray(box_iou(found.views[name].boxes[index : index + 1], view.boxes))[0]
    return view.lesion_ids[overlaps.argmax()] if len(overlaps) and overlaps.max() >= IOU else None


def draw_attention(example: Example, path: Path) -> None:
    """As in the paper's appendix: the masses, the linked detections, and the attention of each link query."""
    pair, found, links = example
    lesions = sorted(links)
    columns = 2 + len(lesions)
    highest = max(max(*link.attention.cc, *link.attention.mlo) for link in links.values() if link.attention)
    figure = Figure(figsize=(2.6 * columns + 0.5, 7.4), layout="constrained", dpi=120)
    grid = figure.subplots(2, columns, squeeze=False)
    for row, name in enumerate(VIEW_NAMES):
        pixels = read_image(pair.views[name].image).pixels
        for axes in grid[row]:
            axes.imshow(pixels, cmap="gray")
            axes.set(xticks=[], yticks=[])
        grid[row, 0].set_ylabel(name.upper(), fontsize=12)
        view = pair.views[name]
        for box, lesion in zip(view.boxes, view.lesion_ids, strict=True):
            _mark(grid[row, 0], box, COLOURS[lesions.index(lesion)], f"mass {lesions.index(lesion) + 1}")
        for number, lesion in enumerate(lesions):
            index, attention = getattr(links[lesion], name), links[lesion].attention
            colour = COLOURS[number]
            if index is None:
                _note(grid[row, 1], f"mass {number + 1}: dustbin", colour, number)
            else:
                score = found.views[name].scores[index]
                _mark(grid[row, 1], found.views[name].boxes[index], colour, f"{score:.2f}")
            if attention is not None:
                weights = getattr(attention, name)
                _draw_weights(grid[row, 2 + number], found.views[name].boxes, weights, highest)
    grid[0, 0].set_title("masses in the phantom")
    grid[0, 1].set_title("found and linked")
    for number, lesion in enumerate(lesions):
        grid[0, 2 + number].set_title(
            f"link query of mass {number + 1}\npair score {links[lesion].score:.2f}", fontsize=10
        )
    scale = figure.colorbar(
        ScalarMappable(Normalize(0, highest), HEAT),
        ax=grid[:, 2:].ravel().tolist(),
        shrink=0.6,
        label="attention on a detection",
    )
    scale.outline.set_visible(False)
    figure.savefig(path)


def _mark(axes: Axes, box: Any, colour: str, words: str) -> None:
    x_min, y_min, x_max, y_max = map(float, box)
    axes.add_patch(
        Rectangle((x_min, y_min), x_max - x_min, y_max - y_min, fill=False, edgecolor=colour, linewidth=2)
    )
    axes.text(x_max, y_min - 4, words, color=colour, fontsize=9, fontweight="bold", ha="right")


def _note(axes: Axes, words: str, colour: str, line: int) -> None:
    axes.text(
        0.5, 0.04 + 0.07 * line, words, color=colour, ha="center", transform=axes.transAxes, fontweight="bold"
    )


def _draw_weights(axes: Axes, boxes: Any, weights: tuple[float, ...], highest: float) -> None:
    """Every detection in the colour of its weight, the highest on top; the dustbin is a label below."""
    for index in np.argsort(weights[:-1]).tolist():
        x_min, y_min, x_max, y_max = map(float, boxes[index])
        share = weights[index] / highest
        axes.add_patch(
            Rectangle(
                (x_min, y_min),
                x_max - x_min,
                y_max - y_min,
                facecolor="none",
                edgecolor=HEAT(share),
                linewidth=0.6 + 2.4 * share,
            )
        )
    share = weights[-1] / highest
    axes.text(
        0.5,
        0.04,
        f"dustbin {weights[-1]:.2f}",
        ha="center",
        transform=axes.transAxes,
        color="white" if share < 0.6 else "black",
        bbox={"facecolor": HEAT(share), "edgecolor": "white", "boxstyle": "round"},
    )


def main() -> None:
    """Draw the three figures, and print how many masses are linked to the dustbin."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.formatter_class = argparse.ArgumentDefaultsHelpFormatter
    parser.add_argument("--weights", type=Path, required=True, help="model.pt of a training by clnet.yaml")
    parser.add_argument("--output", type=Path, default=ROOT / "output" / "figures", help="findings folder")
    parser.add_argument("--data", type=Path, default=ROOT / "output" / "phantom", help="phantom folder")
    parser.add_argument("--images", type=Path, default=ROOT / "docs" / "images", help="figures folder")
    options = parser.parse_args()
    all_examples = list(
        examples(options.data.absolute(), options.output.absolute(), options.weights.absolute())
    )
    linked = [example for example in all_examples if example.all_lesions_linked]
    two_masses = next(
        example
        for example in linked
        if len(example.links) == 2
        and not dustbin_links(example)
        and min(link.score for link in example.links.values()) >= LINK_SCORE
    )
    in_one_view = max(
        (e for e in linked if dustbin_links(e)), key=lambda e: max(link.score for link in dustbin_links(e))
    )
    draw_method(two_masses.pair, options.images / "method.png")
    draw_attention(two_masses, options.images / "attention.png")
    draw_attention(in_one_view, options.images / "dustbin.png")
    print(f"method.png, attention.png and dustbin.png written to {options.images}")
    single = sum(
        len(set(e.pair.views["cc"].lesion_ids) ^ set(e.pair.views["mlo"].lesion_ids)) for e in all_examples
    )
    scores = [link.score for example in all_examples for link in dustbin_links(example)]
    print(
        f"{single} masses are visible in one view only; {len(scores)} of them are linked to the dustbin, "
        f"{sum(score >= LINK_SCORE for score in scores)} with a score of at least {LINK_SCORE}; the "
        f"highest score is {max(scores):.2f}"
    )


if __name__ == "__main__":
    main()
