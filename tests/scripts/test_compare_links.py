"""The linker's links beside those of geometry."""

import json
import re
from types import SimpleNamespace

import ablation
import compare_links
import in_process
import numpy as np
import pytest
from ablations.geometry import links_table
from compare_links import Rule, best_rule, compare, link_by_geometry, link_metrics
from random_findings import random_datalist, random_findings

from clnet.converters.breast_extent import BreastExtent
from clnet.findings.types import Detections, Link, PairFindings

EXTENTS = (BreastExtent(0, 100, (1.0, 1.0)), BreastExtent(0, 100, (1.0, 1.0)))


def box_at(depth, row=50):
    return [depth - 5, row - 5, depth + 5, row + 5]


def found(*depths_and_scores):
    depths, scores = zip(*depths_and_scores, strict=True)
    return Detections(np.array([box_at(depth) for depth in depths]), np.array(scores))


def test_detections_of_one_depth_are_linked_and_those_without_a_partner_go_to_the_dustbin():
    pair = PairFindings("1", found((20, 0.9), (70, 0.8)), found((71, 0.7), (45, 0.6)))
    linked = link_by_geometry(pair, EXTENTS, Rule(depth_mm=2.0, min_score=0.5))
    assert set(linked.links) == {Link(1, 0, 1.0), Link(0, None, 1.0), Link(None, 1, 1.0)}
    assert linked.cc == pair.cc


def test_a_sharper_rule_tells_depths_apart_that_a_wide_one_does_not():
    pair = PairFindings("1", found((20, 0.9)), found((22, 0.9), (30, 0.9)))
    wide, sharp = (link_by_geometry(pair, EXTENTS, Rule(mm, 0.5)).links for mm in (20.0, 2.0))
    assert {link.mlo for link in wide if link.cc == 0} == {None}
    assert {link.mlo for link in sharp if link.cc == 0} == {0}


def test_neither_unsure_nor_repeated_detections_are_linked():
    pair = PairFindings("1", found((20, 0.9), (20.5, 0.8), (50, 0.2)), found((20, 0.9)))
    links = link_by_geometry(pair, EXTENTS, Rule(2.0, min_score=0.5)).links
    assert links == (Link(0, 0, 1.0),)


def test_a_box_without_an_area_is_not_linked():
    flat = Detections(np.array([[20, 10, 20, 20]]), np.array([0.9]))
    links = link_by_geometry(PairFindings("1", flat, found((20, 0.9))), EXTENTS, Rule(2.0, 0.5)).links
    assert links == (Link(None, 0, 1.0),)


def test_a_missing_view_has_no_links():
    pair = PairFindings("1", found((20, 0.9)), None, (Link(0, None, 0.9),))
    assert link_by_geometry(pair, None, Rule(2.0, 0.5)).links == ()


@pytest.mark.slow
def test_the_rule_is_the_one_that_does_best_where_it_is_chosen():
    pairs = random_datalist(40)["test"]
    findings = random_findings(pairs, seed=2)
    extents = dict.fromkeys((pair.pair_id for pair in pairs), EXTENTS)
    rule = best_rule(pairs, findings, extents, (2.0, 20.0))
    others = (Rule(mm, score) for mm in (2.0, 20.0) for score in compare_links.MIN_SCORES)

    def f1(one):
        return link_metrics(pairs, compare_links.link_all(findings, extents, one), 0)["f1"][0]

    assert f1(rule) == max(map(f1, others))


def test_the_table_has_differences_of_the_same_patients_below_the_numbers():
    def sample(value, low, high):
        return {"f1": np.array([value, *np.linspace(low, high, 41)])}

    content = compare({"linker": sample(0.7, 0.6, 0.8), "depth": sample(0.5, 0.4, 0.6)})
    _, _, first, _, last = links_table(content).splitlines()
    assert first.startswith("| linker | 70.0 (60.")
    assert last.startswith("| linker − depth | +20.0 (+20.0 to +20.0), p ")


@pytest.mark.slow
def test_a_tiny_phantom_is_made_evaluated_linked_again_and_put_on_the_page(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("shipped.subprocess", SimpleNamespace(run=in_process.instead_of_subprocess))
    docs = tmp_path / "docs"
    words = ["--pairs", "24", "--resamples", "20", "--output", str(tmp_path), "--docs", str(docs)]
    compare_links.main(words)
    assert "| geometric linker | " in capsys.readouterr().out
    ablation.main(["--page", "--docs", str(docs)])
    page = (docs / "evidence" / "links.md").read_text(encoding="utf-8")
    assert re.search(r"^\| linker − depth ±6.8 mm, as in patients \| ", page, re.MULTILINE)
    assert json.loads((docs / "evidence.json").read_text())["links_beside_geometry"]["resamples"] == 20
