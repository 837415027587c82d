"""The subgroups of lesion boxes and pairs that the datalist describes.

Pairs are grouped by laterality, by whether the breast has both views, and by each attribute that is a text, a
number or a boolean; lesions by the entries of ``attributes["lesions"]``, by whether one view or both show
them, and by the source of their link; boxes by view and size. Where the views of a lesion differ, its entry
is ``{"cc": …, "mlo": …}``, and each box has the value of its view. Measurements are split into thirds.

A value that fewer than three patients share is no subgroup: it says nothing, and it might identify a person.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from clnet.data.pair import VIEW_NAMES
from clnet.evaluation.cohort import Cohort

MAX_VALUES = 8
"""Integers with more values are split into thirds; of texts, the values that most patients share are kept."""
MIN_PATIENTS = 3
"""The minimum number of patients in a subgroup."""

Labels = list[str | None]


def groups_of_pairs(cohort: Cohort) -> dict[str, Labels]:
    """Labels [P] of the pairs by name of the grouping; None where unknown or too rare."""
    return _informative(_labels_of_pairs(cohort), cohort.pair_patient.tolist())


def groups_of_boxes(cohort: Cohort) -> dict[str, Labels]:
    """Labels [L] of the lesion boxes by name of the grouping; None where unknown or too rare."""
    box_pair = cohort.image_pair[cohort.box_image].tolist()
    of_lesions: list[Mapping[str, Any]] = []
    sources: list[str | None] = []
    rows: list[float] = []
    for lesion, view in zip(cohort.box_lesion.tolist(), cohort.box_view.tolist(), strict=True):
        pair, lesion_id = cohort.pairs[cohort.lesion_pair[lesion]], cohort.lesion_ids[lesion]
        described = pair.attributes.get("lesions")
        facts = described.get(lesion_id) if isinstance(described, Mapping) else None
        of_lesions.append(_in_view(facts, VIEW_NAMES[view]) if isinstance(facts, Mapping) else {})
        sources.append(pair.links.get(lesion_id))
        image_size = pair.views[VIEW_NAMES[view]].size
        rows.append(image_size[0] if image_size else np.nan)
    boxes = np.concatenate([np.zeros((0, 4)), *(result.lesions for result in cohort.results)])
    size = np.sqrt((boxes[:, 2:] - boxes[:, :2]).prod(1))
    groups: dict[str, Sequence[Any]] = {
        "view": [VIEW_NAMES[view] for view in cohort.box_view],
        "seen in": np.where(cohort.in_both_views[cohort.box_lesion], "both views", "one view").tolist(),
        "link source": sources,
        "size in pixels": size.tolist(),
        "size in % of image height": [
            share if np.isfinite(share) else None for share in (100 * size / np.array(rows)).tolist()
        ],
        **_columns(of_lesions),
    }
    labels = {
        **{name: [labels[pair] for pair in box_pair] for name, labels in _labels_of_pairs(cohort).items()},
        **{name: _labels(values) for name, values in groups.items()},
    }
    return _informative(labels, cohort.pair_patient[box_pair].tolist())


def _labels_of_pairs(cohort: Cohort) -> dict[str, Labels]:
    attributes = [
        {name: value for name, value in pair.attributes.items() if name != "lesions"} for pair in cohort.pairs
    ]
    groups = {
        "laterality": [pair.laterality for pair in cohort.pairs],
        "views of the breast": ["both" if len(pair.views) == 2 else "one" for pair in cohort.pairs],
        **_columns(attributes),
    }
    return {name: _labels(values) for name, values in groups.items()}


def _in_view(facts: Mapping[str, Any], view: str) -> dict[str, Any]:
    """The facts about a lesion as seen in one view."""
    return {name: value.get(view) if isinstance(value, Mapping) else value for name, value in facts.items()}


def _columns(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """From one mapping per row to one list per name; values that are not plain are left out."""
    names = sorted(
        {name for row in rows for name, value in row.items() if isinstance(value, str | int | float)}
    )
    return {name: [row.get(name) for row in rows] for name in names}


def _informative(groups: Mapping[str, Labels], patient: Sequence[int]) -> dict[str, Labels]:
    """The groupings that divide the set, without labels that too few patients share, or that are too many.

    Args:
        groups: labels [n] by name of the grouping.
        patient: [n] the patient of each label.
    """
    informative = {}
    for name, labels in groups.items():
        patients: dict[str, set[int]] = {}
        for label, number in zip(labels, patient, strict=True):
            if label is not None:
                patients.setdefault(label, set()).add(number)
        shared = [label for label, those in patients.items() if len(those) >= MIN_PATIENTS]
        kept = sorted(shared, key=lambda label: (-len(patients[label]), label))[:MAX_VALUES]
        if len(kept) >= 2:
            informative[name] = [label if label in kept else None for label in labels]
    return informative


def _labels(values: Sequence[Any]) -> Labels:
    known = [value for value in values if isinstance(value, str | int | float)]
    numbers = [value for value in known if not isinstance(value, str | bool)]
    # A grade (BI-RADS, subtlety) is an integer that many share; other numbers are measurements.
    is_grade = len(set(numbers)) <= min(MAX_VALUES, len(numbers) / MIN_PATIENTS) and all(
        float(number).is_integer() for number in numbers
    )
    if len(numbers) < len(known) or is_grade:
        return [str(value) if isinstance(value, str | int | float) else None for value in values]
    low, high = np.quantile(numbers, [1 / 3, 2 / 3])
    names = (
        f"lower third, below {low:.4g}",
        f"middle third, {low:.4g} to {high:.4g}",
        f"upper third, from {high:.4g}",
    )

    def third(value: Any) -> str | None:
        return names[int(value >= low) + int(value >= high)] if isinstance(value, int | float) else None

    return [third(value) for value in values]
