"""Compares the geometric linker with linking by geometry: the phantom model's detections on the phantom.

The detections are linked a second time by the rule that links data sets without annotated links
(`clnet.converters.links`): a lesion has nearly the same depth and size in both views. The parameters of the
rule are chosen on the validation section. The results go to docs/evidence/links.json; ./scripts/ablation puts
them on the page.
"""

import argparse
import json
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from ablations.geometry import links_table
from numpy.typing import NDArray
from shipped import ROOT, evaluate_shipped

from clnet.converters.annotated import Mass
from clnet.converters.breast_extent import measure_extent
from clnet.converters.links import DEPTH_MM, Extents, geometric_links
from clnet.data.pair import Pair
from clnet.evaluation.bootstrap import draw_patients, interval
from clnet.evaluation.metrics import evaluate
from clnet.evaluation.protocols import EvaluationSettings
from clnet.evaluation.resampled import difference, statistics
from clnet.findings.duplicates import kept_indices
from clnet.findings.lesions import SAME_PLACE
from clnet.findings.types import Detections, Findings, Link, PairFindings, read_findings
from clnet.phantom import PhantomSettings, make_phantom
from clnet.runs.provenance import data_fingerprint, git_commit

IOU = 0.5
LINKER = "geometric linker"
MIN_SCORES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6)  # candidates for Rule.min_score
PHANTOM_DEPTHS_MM = (4.0, 3.0, 2.0, 1.5, 1.0)  # candidates for Rule.depth_mm
Metrics = dict[str, NDArray[np.float64]]


@dataclass(frozen=True)
class Rule:
    """The parameters of linking by geometry.

    Attributes:
        depth_mm: standard deviation of the difference in depth of one lesion between the two views.
        min_score: detections with a lower score are not linked.
    """

    depth_mm: float
    min_score: float


def link_by_geometry(pair: PairFindings, extents: Extents | None, rule: Rule) -> PairFindings:
    """The same detections linked by the rule; one without a partner is linked to the dustbin.

    Args:
        pair: findings of a breast.
        extents: of the breast in CC and in MLO; None if a view is missing, and then there are no links.
        rule: parameters of the linking.
    """
    if extents is None or pair.cc is None or pair.mlo is None:
        return PairFindings(pair.pair_id, pair.cc, pair.mlo)
    chosen = [_linkable(view, rule.min_score) for view in (pair.cc, pair.mlo)]
    cc, mlo = (
        [Mass(tuple(view.boxes[index])) for index in indices]
        for view, indices in zip((pair.cc, pair.mlo), chosen, strict=True)
    )
    partner = {link.cc: link.mlo for link in geometric_links(cc, mlo, extents, depth_mm=rule.depth_mm)}
    links = [
        Link(index, chosen[1][partner[place]] if place in partner else None, 1.0)
        for place, index in enumerate(chosen[0])
    ]
    mlo_only = [
        Link(None, index, 1.0) for place, index in enumerate(chosen[1]) if place not in partner.values()
    ]
    return PairFindings(pair.pair_id, pair.cc, pair.mlo, (*links, *mlo_only))


def _linkable(view: Detections, min_score: float) -> list[int]:
    """Indices of detections that reach the score, have an area, and duplicate none with a higher score."""
    kept_index = kept_indices(view, SAME_PLACE)
    eligible = (view.scores >= min_score) & (view.boxes[:, 2:] > view.boxes[:, :2]).all(1)
    return [index for index in np.flatnonzero(eligible).tolist() if kept_index[index] == index]


def link_all(findings: Findings, extents: Mapping[str, Extents], rule: Rule) -> Findings:
    """The findings of all pairs, linked by geometry."""
    return Findings(
        findings.model,
        tuple(link_by_geometry(pair, extents.get(pair.pair_id), rule) for pair in findings.pairs),
    )


def extents_of(pairs: Sequence[Pair]) -> dict[str, Extents]:
    """The extent of the breast in both images of each pair."""
    return {
        pair.pair_id: (measure_extent(pair.cc.image), measure_extent(pair.mlo.image))
        for pair in pairs
        if pair.cc and pair.mlo
    }


def link_metrics(pairs: Sequence[Pair], findings: Findings, resamples: int) -> Metrics:
    """The link metrics, each [1 + resamples]: of the sample, then of its bootstrap resamples."""
    record = evaluate(pairs, findings, EvaluationSettings(ious=(IOU,), resamples=1)).record
    found = statistics(record, draw_patients(record.patients, resamples, seed=0))[IOU]
    return {**found.links, "accuracy with several masses": found.links_of_several["accuracy"]}


def best_rule(
    pairs: Sequence[Pair], findings: Findings, extents: Mapping[str, Extents], depths_mm: Iterable[float]
) -> Rule:
    """The rule with the highest F1."""
    rules = [Rule(*both) for both in product(depths_mm, MIN_SCORES)]
    return max(rules, key=lambda rule: link_metrics(pairs, link_all(findings, extents, rule), 0)["f1"][0])


def compare(named: Mapping[str, Metrics]) -> dict[str, Any]:
    """The metrics of each way of linking, and the first minus each of the others on the same patients."""
    linker, *others = named
    return {
        "links": {
            name: {key: interval(value) for key, value in found.items()} for name, found in named.items()
        },
        "linker_minus": {
            name: {key: difference(named[linker][key], value) for key, value in named[name].items()}
            for name in others
        },
    }


def options_of(words: Sequence[str]) -> argparse.Namespace:
    """The options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.formatter_class = argparse.ArgumentDefaultsHelpFormatter
    parser.add_argument("--pairs", type=int, default=3000, help="pairs of the phantom")
    parser.add_argument("--resamples", type=int, default=2000, help="bootstrap resamples")
    parser.add_argument("--output", type=Path, default=ROOT / "output" / "links", help="phantom and findings")
    parser.add_argument("--docs", type=Path, default=ROOT / "docs", help="folder of evidence/links.json")
    options = parser.parse_args(words)
    options.output, options.docs = options.output.absolute(), options.docs.absolute()
    return options


def main(words: Sequence[str]) -> None:
    """Make the phantom, evaluate the phantom model, link its detections by geometry, write the results."""
    options, began = options_of(words), time.monotonic()
    data, phantom_pairs = options.output / "phantom", ("--phantom_pairs", str(options.pairs))
    phantom = make_phantom(data, PhantomSettings(options.pairs))
    found, extents = {}, {}
    for section in ("validation", "test"):
        run = evaluate_shipped(data, options.output, section, section, "clnet-links", *phantom_pairs)
        found[section] = read_findings(run / "findings.json")
        extents[section] = extents_of(phantom[section])
    rules, named = {}, {LINKER: link_metrics(phantom["test"], found["test"], options.resamples)}
    for where, depths_mm in {"as in patients": [DEPTH_MM], "as in the phantom": PHANTOM_DEPTHS_MM}.items():
        rule = best_rule(phantom["validation"], found["validation"], extents["validation"], depths_mm)
        name = f"depth ±{rule.depth_mm:g} mm, {where}"
        rules[name] = asdict(rule)
        linked = link_all(found["test"], extents["test"], rule)
        named[name] = link_metrics(phantom["test"], linked, options.resamples)
    content = {
        "git_commit": git_commit(),
        "data_fingerprint": data_fingerprint(data),
        "model": found["test"].model,
        "resamples": options.resamples,
        "seconds": round(time.monotonic() - began),
        "rules": rules,
        **compare(named),
    }
    file = options.docs / "evidence" / "links.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"{links_table(content)}\n\nwritten to {file}; the next ./scripts/ablation puts it on the page")


if __name__ == "__main__":
    main(sys.argv[1:])
