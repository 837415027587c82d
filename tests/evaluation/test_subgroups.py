"""Which groups are made of what the data says."""

from pathlib import Path

import numpy as np
import pytest

from clnet.data.pair import Pair, View
from clnet.evaluation.cohort import build_cohort
from clnet.evaluation.subgroups import groups_of_boxes, groups_of_pairs
from clnet.findings.types import Findings, PairFindings


def cohort(*pairs):
    return build_cohort(pairs, Findings("m", tuple(PairFindings(pair.pair_id) for pair in pairs)))


def pair(number, attributes, cc=("1",), mlo=("1",), side=10, links=None):
    views = {
        name: View(Path(name), [(0, 0, side, side + n) for n, _ in enumerate(ids)], ids)
        for name, ids in (("cc", cc), ("mlo", mlo))
    }
    return Pair(f"{number}", f"{number}", "LR"[number % 2], **views, links=links or {}, attributes=attributes)


def test_boxes_are_grouped_by_pair_lesion_and_box():
    benign = {"density": "B", "lesions": {"1": {"pathology": "benign"}}}
    malignant = {"density": "C", "lesions": {"1": {"pathology": "malignant"}}}
    three = [
        (
            pair(6 * n, benign, links={"1": "geometric"}),
            pair(6 * n + 1, malignant, mlo=()),
            pair(6 * n + 2, {}),
        )
        for n in range(3)
    ]
    groups = groups_of_boxes(cohort(*(pair for each in three for pair in each)))
    assert groups["density"] == ["B", "B", "C", None, None] * 3
    assert groups["laterality"] == ["L", "L", "R", "L", "L"] * 3
    assert groups["view"] == ["cc", "mlo", "cc", "cc", "mlo"] * 3
    assert groups["seen in"] == ["both views", "both views", "one view", "both views", "both views"] * 3
    assert groups["link source"] == ["geometric", "geometric", None, "annotated", "annotated"] * 3
    assert groups["pathology"] == ["benign", "benign", "malignant", None, None] * 3


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


def test_measurements_are_cut_into_thirds_however_few_they_are():
    lesions = [{"lesions": {"1": {"diameter_mm": 10.5 + n}}} for n in range(9)]
    labels = groups_of_boxes(cohort(*(pair(2 * n, facts) for n, facts in enumerate(lesions))))["diameter_mm"]
    assert [labels.count(label) for label in sorted(set(labels))] == [6, 6, 6], "three lesions in two views"
    ages = [{"age": 50 + n} for n in range(9)]
    labels = groups_of_pairs(cohort(*(pair(2 * n, facts) for n, facts in enumerate(ages))))["age"]
    assert [labels.count(label) for label in sorted(set(labels))] == [3, 3, 3]


def test_what_one_or_two_have_is_no_group():
    few = [pair(2 * n, {"lesions": {"1": {"diameter_mm": 9.5 + n}}}) for n in range(5)]
    assert "diameter_mm" not in groups_of_boxes(cohort(*few)), "one or two lesions in a third"
    grades = [2, *[3] * 3, *[4] * 6, *[5] * 2]
    groups = groups_of_pairs(cohort(*(pair(2 * n, {"birads": grade}) for n, grade in enumerate(grades))))
    assert groups["birads"] == [None, *["3"] * 3, *["4"] * 6, None, None]
    named = [pair(2 * n, {"reader": f"Dr {n}", "clinic": "north" if n else "south"}) for n in range(6)]
    assert groups_of_pairs(cohort(*named)) == {}


def test_the_boxes_of_one_patient_are_not_several_patients():
    twins = [pair(2 * n, {"lesions": {"1": {"shape": "oval" if n < 2 else "round"}}}) for n in range(6)]
    assert "shape" not in groups_of_boxes(cohort(*twins)), "four boxes, but two patients have an oval one"


def test_boxes_of_breasts_with_one_view_are_apart():
    both = [pair(2 * n, {}) for n in range(3)]
    lone = [Pair(f"lone {n}", f"lone {n}", "L", cc=pair(0, {}).cc) for n in range(3)]
    groups = groups_of_boxes(cohort(*both, *lone))
    assert groups["views of the breast"] == ["both"] * 6 + ["one"] * 3
    assert groups_of_pairs(cohort(*both, *lone))["views of the breast"] == ["both"] * 3 + ["one"] * 3


@pytest.mark.parametrize("kind", [str, int])
def test_a_box_has_the_descriptor_of_its_own_view(kind):
    """Subtlety as CBIS-DDSM has it, from 1 to 5; every combination of two grades among the views."""
    combinations = [(cc, mlo) for cc in range(1, 6) for mlo in range(1, 6)]
    pairs = []
    for number, (cc, mlo) in enumerate(combinations):
        subtlety = kind(cc) if cc == mlo else {"cc": kind(cc), "mlo": kind(mlo)}
        pairs.append(pair(2 * number, {"lesions": {"1": {"subtlety": subtlety}}}))
    labels = groups_of_boxes(cohort(*pairs))["subtlety"]
    assert labels == [str(grade) for both in combinations for grade in both]


def test_a_datalist_with_both_views_in_one_text_still_has_its_groups():
    """Rare combinations are left out; the grades that the views agree on stay."""
    texts = [*["3"] * 9, *["4"] * 9, *["3 / 4"] * 4, *(f"{cc} / {mlo}" for cc in "12" for mlo in "3456")]
    pairs = [pair(2 * n, {"lesions": {"1": {"subtlety": text}}}) for n, text in enumerate(texts)]
    assert set(groups_of_boxes(cohort(*pairs))["subtlety"]) == {"3", "4", "3 / 4", None}


def test_of_many_values_the_eight_that_most_patients_share_are_kept():
    shapes = [f"shape {n}" for n in range(10) for _ in range(13 - n)]
    pairs = [pair(2 * n, {"lesions": {"1": {"shape": shape}}}) for n, shape in enumerate(shapes)]
    labels = groups_of_boxes(cohort(*pairs))["shape"]
    assert sorted(set(labels) - {None}) == [f"shape {n}" for n in range(8)]


def test_size_relative_to_the_image_is_the_same_at_any_resolution():
    def scaled(number, scale):
        boxes = np.array([(0, 0, 10 + number, 10 + number)]) * scale
        view = View(Path("cc"), boxes, ("1",), (200 * scale, 100 * scale))
        return Pair(f"{number} {scale}", f"{number} {scale}", "L", cc=view)

    sizes = [scaled(number, scale) for number in range(9) for scale in (1, 4)]
    groups = groups_of_boxes(cohort(*sizes))
    # 5, 5, 5.5, 5.5 … 9, 9 %: a third of the way is between 6 and 6.5, two thirds between 7.5 and 8.
    assert groups["size in % of image height"] == [
        *["lower third, below 6.333"] * 6,
        *["middle third, 6.333 to 7.667"] * 6,
        *["upper third, from 7.667"] * 6,
    ]
    unknown = [pair(2 * n, {}, side=10 + n) for n in range(9)]
    assert "size in % of image height" not in groups_of_boxes(cohort(*unknown)), "the rows are not known"
