"""Are the linker's links better than geometry's? Measured with the shipped model on the phantom.

The detections of the shipped model are linked once more, by the rule that links data sets without links
(`clnet.converters.links`): depth and size of a lesion are nearly the same in both views. Whatever the
rule leaves to be chosen is chosen on the validation section. docs/evidence/links.json keeps the numbers;
./scripts/ablation puts them on the page.
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
LINKER = "lesion linker"
LEAST_SCORES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6)  # of detections that are linked
SHARPER_MM = (4.0, 3.0, 2.0, 1.5, 1.0)
Values = dict[str, NDArray[np.float64]]


@dataclass(frozen=True)
class Rule:
    """How detections are linked by geometry.

    Attributes:
        depth_mm: the standard deviation between the depths of one lesion in the two views.
        least_score: of detections that are linked; others are left alone.
    """

    depth_mm: float
    least_score: float


def link_by_geometry(pair: PairFindings, extents: Extents | None, rule: Rule) -> PairFindings:
    """The same detections with other links; one without a partner is linked to the dustbin.

    Args:
        pair: findings of a breast.
        extents: of the breast in CC and in MLO; None if a view is missing, and then there are no links.
        rule: by which they are linked.
    """
    if extents is None or pair.cc is None or pair.mlo is None:
        return PairFindings(pair.pair_id, pair.cc, pair.mlo)
    chosen = [_sure(view, rule.least_score) for view in (pair.cc, pair.mlo)]
    cc, mlo = (
        [Mass(tuple(view.boxes[index])) for index in indices]
        for view, indices in zip((pair.cc, pair.mlo), chosen, strict=True)
    )
    partner = {link.cc: link.mlo for link in geometric_links(cc, mlo, extents, depth_mm=rule.depth_mm)}
    links = [
        Link(index, chosen[1][partner[place]] if place in partner else None, 1.0)
        for place, index in enumerate(chosen[0])
    ]
    alone = [Link(None, index, 1.0) for place, index in enumerate(chosen[1]) if place not in partner.values()]
    return PairFindings(pair.pair_id, pair.cc, pair.mlo, (*links, *alone))


def _sure(view: Detections, least_score: float) -> list[int]:
    """Detections that reach the score, have an area, and do not repeat a surer one."""
    kept_index = kept_indices(view, SAME_PLACE)
    can_be = (view.scores >= least_score) & (view.boxes[:, 2:] > view.boxes[:, :2]).all(1)
    return [index for index in np.flatnonzero(can_be).tolist() if kept_index[index] == index]


def link_all(findings: Findings, extents: Mapping[str, Extents], rule: Rule) -> Findings:
    """The findings of all pairs, linked by geometry."""
    return Findings(
        findings.model,
        tuple(link_by_geometry(pair, extents.get(pair.pair_id), rule) for pair in findings.pairs),
    )


def extents_of(pairs: Sequence[Pair]) -> dict[str, Extents]:
    """Where the breasts lie in both images of each pair."""
    return {
        pair.pair_id: (measure_extent(pair.cc.image), measure_extent(pair.mlo.image))
        for pair in pairs
        if pair.cc and pair.mlo
    }


def values(pairs: Sequence[Pair], findings: Findings, resamples: int) -> Values:
    """What the links are worth, each [1 + resamples]."""
    record = evaluate(pairs, findings, EvaluationSettings(ious=(IOU,), resamples=1)).record
    found = statistics(record, draw_patients(record.patients, resamples, seed=0))[IOU]
    return {**found.links, "accuracy with several masses": found.links_of_several["accuracy"]}


def best_rule(
    pairs: Sequence[Pair], findings: Findings, extents: Mapping[str, Extents], depths_mm: Iterable[float]
) -> Rule:
    """The rule of the highest F1."""
    rules = [Rule(*both) for both in product(depths_mm, LEAST_SCORES)]
    return max(rules, key=lambda rule: values(pairs, link_all(findings, extents, rule), 0)["f1"][0])


def compare(named: Mapping[str, Values]) -> dict[str, Any]:
    """The numbers of each way to link, and the first minus each of the others on the same patients."""
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
    """What the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--pairs", type=int, default=3000, help="of the phantom (3000)")
    parser.add_argument("--resamples", type=int, default=2000, help="of the bootstrap (2000)")
    parser.add_argument("--output", type=Path, default=ROOT / "output" / "links", help="output/links")
    parser.add_argument("--docs", type=Path, default=ROOT / "docs", help="where numbers are kept (docs)")
    options = parser.parse_args(words)
    options.output, options.docs = options.output.absolute(), options.docs.absolute()
    return options


def main(words: Sequence[str]) -> None:
    """Make the phantom, evaluate the shipped model, link its detections again, and keep the numbers."""
    options, began = options_of(words), time.monotonic()
    data, phantom_pairs = options.output / "phantom", ("--phantom_pairs", str(options.pairs))
    phantom = make_phantom(data, PhantomSettings(options.pairs))
    found, extents = {}, {}
    for section in ("validation", "test"):
        run = evaluate_shipped(data, options.output, section, section, "clnet-links", *phantom_pairs)
        found[section] = read_findings(run / "findings.json")
        extents[section] = extents_of(phantom[section])
    rules, named = {}, {LINKER: values(phantom["test"], found["test"], options.resamples)}
    for where, depths_mm in {"as in patients": [DEPTH_MM], "as in the phantom": SHARPER_MM}.items():
        rule = best_rule(phantom["validation"], found["validation"], extents["validation"], depths_mm)
        name = f"depth ±{rule.depth_mm:g} mm, {where}"
        rules[name] = asdict(rule)
        linked = link_all(found["test"], extents["test"], rule)
        named[name] = values(phantom["test"], linked, options.resamples)
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
