"""Measures the precision and recall of geometric links on the phantom, whose true links are known.

Run as ``python scripts/measure_links.py [--pairs N] [--seed S]``. The links of a phantom are removed, its
boxes are jittered, and `clnet.converters.links` links them again. Breasts with masses in both views are
counted, those with one mass in each view (`single_pair`) apart from those with more (`geometric`).
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

EDGE = 0.1  # standard deviation of each edge as a share of the box's size: about that between two readers
DEPTH_MM = 6.8 / np.sqrt(2)  # in each view: the median difference between views is 4.6 mm, as in patients
JITTERS = {"none": (0.0, 0.0), "edges": (EDGE, 0.0), "edges and depth": (EDGE, DEPTH_MM)}

extent_of = cache(measure_extent)


def jittered(view: View, edge: float, depth_mm: float, mm: float, rng: np.random.Generator) -> list[Mass]:
    """The masses of a view with random shifts of their boxes, and without their links.

    Args:
        view: with its true boxes.
        edge: standard deviation of each edge, as a share of the box's size.
        depth_mm: standard deviation of the depth of the whole box.
        mm: size of a pixel along x.
        rng: the source of randomness.
    """
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
        cc, mlo = [jittered(view, *jitter, m, rng) for view, m in zip((pair.cc, pair.mlo), mm, strict=True)]
        if not with_mm:
            extents = [replace(extent, spacing_mm=None) for extent in extents]
        links = certain_links(cc, mlo, False) or geometric_links(cc, mlo, (extents[0], extents[1]))
        truth = {
            (i, pair.mlo.lesion_ids.index(lesion))
            for i, lesion in enumerate(pair.cc.lesion_ids)
            if lesion in pair.mlo.lesion_ids
        }
        source = "single_pair" if len(pair.cc.boxes) == len(pair.mlo.boxes) == 1 else "geometric"
        correct = sum((link.cc, link.mlo) in truth for link in links)
        counts[source] += [1, len(truth), len(links), correct, sum(link.confidence for link in links)]
    return {
        source: {
            "breasts": int(breasts),
            "true_links": int(true),
            "links": int(made),
            "precision": round(float(correct / max(made, 1)), 3),
            "recall": round(float(correct / max(true, 1)), 3),
            "confidence": round(float(confidence / max(made, 1)), 3),
        }
        for source, (breasts, true, made, correct, confidence) in counts.items()
    }


def main(arguments: list[str] | None = None) -> None:
    """Make a phantom, measure its links, and print a table; the last line is JSON."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--pairs", type=int, default=1000, help="pairs of the phantom (1000)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the phantom and of the jitter (0)")
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
