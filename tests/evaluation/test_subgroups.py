"""Which groups are made of what the data says."""

from pathlib import Path

from clnet.data.pair import Pair, View
from clnet.evaluation.cohort import gather
from clnet.evaluation.subgroups import groups_of_boxes, groups_of_pairs
from clnet.inference.findings import Findings, PairFindings


def cohort(*pairs):
    return gather(pairs, Findings("m", tuple(PairFindings(pair.pair_id) for pair in pairs)))


def pair(number, attributes, cc=("1",), mlo=("1",), side=10, links=None):
    views = {
        name: View(Path(name), [(0, 0, side, side + n) for n, _ in enumerate(ids)], ids)
        for name, ids in (("cc", cc), ("mlo", mlo))
    }
    return Pair(f"{number}", f"{number}", "LR"[number % 2], **views, links=links or {}, attributes=attributes)


def test_boxes_are_grouped_by_pair_lesion_and_box():
    groups = groups_of_boxes(
        cohort(
            pair(0, {"density": "B", "lesions": {"1": {"pathology": "benign"}}}, links={"1": "geometric"}),
            pair(1, {"density": "C", "lesions": {"1": {"pathology": "malignant"}}}, mlo=()),
            pair(2, {}),
        )
    )
    assert groups["density"] == ["B", "B", "C", None, None]
    assert groups["laterality"] == ["L", "L", "R", "L", "L"]
    assert groups["view"] == ["cc", "mlo", "cc", "cc", "mlo"]
    assert groups["seen in"] == ["both views", "both views", "one view", "both views", "both views"]
    assert groups["link source"] == ["geometric", "geometric", None, "annotated", "annotated"]
    assert groups["pathology"] == ["benign", "benign", "malignant", None, None]


def test_numbers_of_many_values_are_cut_into_thirds():
    pairs = [pair(n, {"age": 40 + n}, side=10 + n) for n in range(30)]
    labels = groups_of_pairs(cohort(*pairs))["age"]
    assert [labels.count(label) for label in sorted(set(labels))] == [10, 10, 10]
    assert sorted(set(labels)) == [labels[0], labels[15], labels[29]], "they sort from low to high"
    assert set(groups_of_boxes(cohort(*pairs))["size in pixels"]) == {
        "lower third, below 19.67",
        "middle third, 19.67 to 29.33",
        "upper third, from 29.33",
    }


def test_what_divides_nothing_or_only_names_is_no_group():
    pairs = [
        pair(
            2 * n,
            {"scanner": "one", "name": f"x{n}", "mimics": {"cc": []}, "birads": n % 3, "implant": n > 5},
        )
        for n in range(20)
    ]
    groups = groups_of_pairs(cohort(*pairs))
    assert set(groups) == {"birads", "implant"}
    assert set(groups["birads"]) == {"0", "1", "2"}
    assert set(groups["implant"]) == {"True", "False"}
