"""The findings file: what is written comes back, and what is wrong is named."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from clnet.findings.types import (
    Attention,
    Detections,
    Findings,
    FindingsError,
    Link,
    PairFindings,
    read_findings,
    write_findings,
)

CONTENT = {
    "schema": 1,
    "model": "a model",
    "pairs": [
        {
            "pair_id": "17_L",
            "views": {
                "cc": {"boxes": [[10, 20, 30, 40.5], [1, 2, 3, 4]], "scores": [0.9, 0.4]},
                "mlo": {"boxes": [[5, 6, 7, 8]], "scores": [0.7]},
            },
            "links": [{"cc": 0, "mlo": 0, "score": 0.91}, {"cc": 1, "mlo": None, "score": 0.4}],
        },
        {"pair_id": "17_R", "views": {"mlo": {"boxes": [], "scores": []}}},
    ],
}


def changed(path, value):
    """The content above with one place changed."""
    content = json.loads(json.dumps(CONTENT))
    place = content
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return content


def read(content, folder):
    file = folder / "findings.json"
    file.write_text(json.dumps(content), encoding="utf-8")
    return read_findings(file)


def test_a_file_is_read_as_it_says(tmp_path):
    findings = read(CONTENT, tmp_path)
    assert findings.model == "a model"
    left, right = findings
    np.testing.assert_array_equal(left.cc.boxes, np.float32([[10, 20, 30, 40.5], [1, 2, 3, 4]]))
    np.testing.assert_array_equal(left.cc.scores, [0.9, 0.4])
    assert left.links == (Link(0, 0, 0.91), Link(1, None, 0.4))
    assert right.cc is None
    assert len(right.mlo) == 0
    assert right.links == ()


def test_a_link_may_say_where_the_linker_looked(tmp_path):
    content = changed(["pairs", 0, "links", 0, "attention"], {"cc": [0.5, 0.2, 0.3], "mlo": [1, 0]})
    first, second = next(iter(read(content, tmp_path))).links
    assert first.attention == Attention(cc=(0.5, 0.2, 0.3), mlo=(1.0, 0.0))
    assert second.attention is None


def test_a_pair_may_say_how_well_its_views_fit_together(tmp_path):
    first, second = read(changed(["pairs", 0, "consistency"], 0.125), tmp_path)
    assert (first.consistency, second.consistency) == (0.125, None)


detections = st.integers(0, 4).flatmap(
    lambda count: st.builds(
        lambda low, size, scores: Detections(np.concatenate([low, low + size], 1), scores),
        hnp.arrays(np.float32, (count, 2), elements=st.floats(-50, 5000, width=32)),
        hnp.arrays(np.float32, (count, 2), elements=st.floats(0, 900, width=32)),
        hnp.arrays(np.float64, count, elements=st.floats(-30, 30)),
    )
)


@given(st.lists(st.tuples(st.none() | detections, st.none() | detections, st.floats(0, 1)), max_size=4))
def test_what_is_written_comes_back_exactly(tmp_path_factory, views):
    def links(cc, mlo, score):
        yield from (Link(i, None, score) for i in range(len(cc or ())))
        yield from (Link(None, i, score) for i in range(len(mlo or ())))
        if cc and mlo:
            weights = [tuple(np.linspace(0, score, len(view) + 1).tolist()) for view in (cc, mlo)]
            yield Link(len(cc) - 1, 0, score, Attention(*weights))

    pairs = [
        PairFindings(f"päir {n}", cc, mlo, tuple(links(cc, mlo, score)), score if n % 2 else None)
        for n, (cc, mlo, score) in enumerate(views)
    ]
    file = tmp_path_factory.mktemp("findings") / "findings.json"
    write_findings(Findings("m", tuple(pairs)), file)
    assert read_findings(file) == Findings("m", tuple(pairs))


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        (["schema"], 2, ["schema is 2", "reads 1"]),
        (["model"], None, ["model is None"]),
        (["pairs"], {}, ["pairs is {}", "a list"]),
        (["pairs", 1], 5, ["pairs[1] is 5", "an object"]),
        (["pairs", 1], {"pair_id": "x"}, ["pairs[1]", "'views' is missing"]),
        (["pairs", 0, "pair_id"], "", ["pair_id is ''"]),
        (["pairs", 1, "pair_id"], "17_L", ["pair '17_L' appears twice"]),
        (["pairs", 0, "views", "ml"], {}, ["pair '17_L'", "unknown key 'ml'"]),
        (["pairs", 0, "views", "cc", "boxes", 1], [3, 2, 1, 4], ["pair '17_L', cc", "boxes[1] is [3.0, 2.0"]),
        (["pairs", 0, "views", "cc", "boxes", 1], [1, 2, 3], ["pair '17_L', cc", "boxes[1] is [1, 2, 3]"]),
        (
            ["pairs", 0, "views", "cc", "boxes", 0, 2],
            "9",
            ["pair '17_L', cc", "boxes[0] is [10, 20, '9', 40.5]"],
        ),
        (["pairs", 0, "views", "cc", "boxes", 0, 2], None, ["pair '17_L', cc", "boxes[0] is [10, 20, None"]),
        (["pairs", 0, "views", "cc", "boxes", 1, 3], float("nan"), ["pair '17_L', cc", "boxes[1]", "nan"]),
        (["pairs", 0, "views", "cc", "boxes", 1, 3], 1e300, ["pair '17_L', cc", "boxes[1]", "inf"]),
        (["pairs", 0, "views", "mlo", "boxes"], 4, ["pair '17_L', mlo", "boxes is 4"]),
        (["pairs", 0, "views", "mlo", "scores"], [0.1, 0.2], ["pair '17_L', mlo", "1 boxes but 2 scores"]),
        (["pairs", 0, "views", "cc", "scores", 1], "0.4", ["pair '17_L', cc", "scores[1] is '0.4'"]),
        (["pairs", 0, "views", "cc", "scores", 0], [0.9], ["pair '17_L', cc", "scores[0] is [0.9]"]),
        (["pairs", 0, "views", "cc", "scores", 1], float("inf"), ["pair '17_L', cc", "scores[1] is inf"]),
        (["pairs", 0, "views", "cc"], {"boxes": []}, ["pair '17_L', cc", "'scores' is missing"]),
        (["pairs", 0, "links", 0, "mlo"], 1, ["pair '17_L'", "links[0]", "mlo is 1", "1 boxes"]),
        (["pairs", 0, "links", 1, "cc"], -1, ["pair '17_L'", "links[1]", "cc is -1"]),
        (["pairs", 0, "links", 1, "cc"], True, ["pair '17_L'", "links[1]", "cc is True"]),
        (["pairs", 0, "links", 1, "cc"], None, ["pair '17_L'", "links[1]", "both null"]),
        (["pairs", 0, "links", 1, "score"], "high", ["pair '17_L'", "links[1]", "score is 'high'"]),
        (["pairs", 0, "links", 1, "score"], float("nan"), ["pair '17_L'", "links[1]", "score is nan"]),
        (["pairs", 0, "consistency"], 1.5, ["pair '17_L'", "consistency is 1.5", "from 0 to 1"]),
        (["pairs", 0, "consistency"], "0.5", ["pair '17_L'", "consistency is '0.5'"]),
        (["pairs", 0, "consistency"], float("nan"), ["pair '17_L'", "consistency is nan"]),
        (["pairs", 0, "links", 0], {"cc": 0}, ["pair '17_L', links[0]", "'mlo' is missing"]),
        (["pairs", 1, "links"], [{"cc": 0, "mlo": 0, "score": 1}], ["pair '17_R'", "cc is 0", "0 boxes"]),
        (
            ["pairs", 0, "links", 0, "attention"],
            [1],
            ["pair '17_L'", "links[0], attention is [1]", "an object"],
        ),
        (["pairs", 0, "links", 0, "attention"], {"cc": []}, ["pair '17_L'", "attention", "'mlo' is missing"]),
        (
            ["pairs", 0, "links", 0, "attention"],
            {"cc": [0.5, 0.5], "mlo": [0.5, 0.5]},
            ["pair '17_L'", "links[0]", "attention has 2 weights in cc", "expected 3"],
        ),
        (
            ["pairs", 0, "links", 0, "attention"],
            {"cc": [0.5, 0.2, 0.3], "mlo": [0.5, 1.5]},
            ["pair '17_L'", "links[0]", "attention, mlo[1] is 1.5"],
        ),
        (
            ["pairs", 0, "links", 0, "attention"],
            {"cc": [0.5, float("nan"), 0.3], "mlo": [0.5, 0.5]},
            ["pair '17_L'", "links[0]", "attention, cc[1] is nan"],
        ),
        (
            ["pairs", 0, "links", 0, "attention"],
            {"cc": [0.5, "0.2", 0.3], "mlo": [0.5, 0.5]},
            ["pair '17_L'", "attention", "cc[1] is '0.2'"],
        ),
    ],
)
def test_what_is_wrong_is_named_with_file_pair_view_index_and_value(tmp_path, path, value, words):
    with pytest.raises(FindingsError) as caught:
        read(changed(path, value), tmp_path)
    for word in ["findings.json", *words]:
        assert word in str(caught.value)


def test_a_file_that_is_absent_or_no_json_is_named(tmp_path):
    with pytest.raises(FindingsError, match=r"nowhere\.json: no such file"):
        read_findings(tmp_path / "nowhere.json")
    for bad in ("{", "[" * 100_000, '{"schema": ' + "1" * 5000 + "}"):
        (tmp_path / "bad.json").write_text(bad)
        with pytest.raises(FindingsError, match=r"bad\.json: cannot be read as JSON"):
            read_findings(tmp_path / "bad.json")
