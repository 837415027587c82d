"""How good are geometric links? Measured on the phantom, where the truth is known.

Run as ``python scripts/measure_links.py [--pairs N] [--seed S]``. The links of a phantom are forgotten, its
boxes are moved, and `clnet.converters.links` is asked again. Counted are breasts with masses in both
views, apart for those with one mass in each view (`single_pair`) and those with more (`geometric`).
"""

import argparse
import json
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from clnet.converters.annotated import Mass
from clnet.converters.breast_extent import measure_extent
from clnet.converters.links import certain_links, geometric_links
from clnet.data.pair import Pair, View
from clnet.phantom import PhantomSettings, make_phantom

EDGE = 0.1  # standard deviation of each edge, of the box's size: two readers' boxes differ by about that
DEPTH_MM = 6.8 / np.sqrt(2)  # of each view, so that depths differ by 4.6 mm in the median, as in patients
JITTERS = {"none": (0.0, 0.0), "edges": (EDGE, 0.0), "edges and depth": (EDGE, DEPTH_MM)}

extent_of = cache(measure_extent)


def moved(view: View, edge: float, depth_mm: float, mm: float, rng: np.random.Generator) -> list[Mass]:
    """The masses of a view with their boxes moved at random, and without their links."""
    masses = []
    for box in view.boxes.astype(float):
        size = np.tile(box[2:] - box[:2], 2)
        box = box + rng.normal(0, 1, 4) * edge * size
        box[[0, 2]] += rng.normal(0, depth_mm / mm)
        masses.append(Mass((min(box[0], box[2] - 1), min(box[1], box[3] - 1), box[2], box[3])))
    return masses


def measure(pairs: Sequence[Pair], jitter: tuple[float, float], with_mm: bool, seed: int) -> dict[str, Any]:
    """Precision and recall of the links of each source."""
    rng = np.random.default_rng(seed)
    counts = {source: np.zeros(5) for source in ("single_pair", "geometric")}
    for pair in pairs:
        if not (pair.cc and pair.mlo and len(pair.cc.boxes) and len(pair.mlo.boxes)):
            continue
        extents = [extent_of(view.image) for view in (pair.cc, pair.mlo)]
        mm = [extent.spacing_mm[1] if extent.spacing_mm else 1.0 for extent in extents]
        cc, mlo = [moved(view, *jitter, m, rng) for view, m in zip((pair.cc, pair.mlo), mm, strict=True)]
        if not with_mm:
            extents = [replace(extent, spacing_mm=None) for extent in extents]
        links = certain_links(cc, mlo, False) or geometric_links(cc, mlo, (extents[0], extents[1]))
        truth = {
            (i, pair.mlo.lesion_ids.index(lesion))
            for i, lesion in enumerate(pair.cc.lesion_ids)
            if lesion in pair.mlo.lesion_ids
        }
        source = "single_pair" if len(pair.cc.boxes) == len(pair.mlo.boxes) == 1 else "geometric"
        right = sum((link.cc, link.mlo) in truth for link in links)
        counts[source] += [1, len(truth), len(links), right, sum(link.confidence for link in links)]
    return {
        source: {
            "breasts": int(breasts),
            "true_links": int(true),
            "links": int(made),
            "precision": round(float(right / max(made, 1)), 3),
            "recall": round(float(right / max(true, 1)), 3),
            "confidence": round(float(confidence / max(made, 1)), 3),
        }
        for source, (breasts, true, made, right, confidence) in counts.items()
    }


def main(arguments: list[str] | None = None) -> None:
    """Make a phantom, measure, and print a table; the last line is JSON."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--pairs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        datalist = make_phantom(Path(folder), PhantomSettings(options.pairs, options.seed))
        pairs = [pair for section in datalist.sections.values() for pair in section]
        results = {
            f"{name}, {'mm known' if with_mm else 'film'}": measure(pairs, jitter, with_mm, options.seed)
            for with_mm in (True, False)
            for name, jitter in JITTERS.items()
        }
    for source in ("single_pair", "geometric"):
        head = ("breasts", "true links", "links", "precision", "recall", "confidence")
        print(f"{source:<28}" + "".join(f"{word:>12}" for word in head))
        for name, result in results.items():
            row = result[source]
            print(
                f"  {name:<26}{row['breasts']:>12}{row['true_links']:>12}{row['links']:>12}"
                f"{row['precision']:>12.3f}{row['recall']:>12.3f}{row['confidence']:>12.3f}"
            )
    print(json.dumps(results))


if __name__ == "__main__":
    main()
