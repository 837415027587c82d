"""The prose of the evidence pages, and how numbers become sentences."""

from collections.abc import Mapping
from typing import Any

from ablations.by_eye import sentence as by_eye_sentence
from ablations.tables import RATES, TABLES
from page_text import percent

LEVEL = 0.05
"""The corrected p below which a difference counts as shown."""

ABOUT = """R@t is the recall of boxes around masses at t false positives per image; a second box on a mass
is a false positive. Intervals (95%) and p are over patients *and* seeds of the training; p is corrected for
the number of questions (Holm). The paper's numbers are of DDSM, with its own split and rules, and one run per
row: they are shown, not reproduced."""

TRUST = """## How far can this be trusted?

- **Few seeds.** Each resample draws patients and, for each row, its seeds with replacement. With three seeds
  that still understates how much a fourth could differ; a row of one seed has an interval over patients
  alone, and answers nothing.
- **One data set of films**, of the 1990s, in which every image shows a mass. Before these tables, Geometric
  CL-Net was developed on its validation section, the paper's networks were not: their settings are those of
  `film.yaml`. [Every look at the test section](model_card.md#results) at the film model is listed; the runs
  here are looked at once each, after training.
- **The same budget for all**: every row of a table has the same epochs, images, augmentation and backbone.
  The epoch is chosen on the validation section.
- **Links are not annotated on films.** Those that count are of breasts with one mass in each view, and
  geometric ones where shapes agree.
- **The phantom rewards depth** and hides masses among mimics: what it shows is possible, not what patients
  show.
"""


def verdict(answer: Mapping[str, Any]) -> str:
    """What a difference says: its interval, p, and whether it is shown."""
    difference = percent(answer, signed=True)
    if "corrected" not in answer:
        return f"{difference}; too few seeds to say"
    p = f"p {max(answer['corrected'], 0.001):.3f}"
    if answer["corrected"] >= LEVEL:
        return f"not shown: {difference}, {p}"
    return f"{'yes' if answer['value'] > 0 else 'no, the opposite'}: {difference}, {p}"


def first_sentence(answers: list[Mapping[str, Any]]) -> str:
    """What the page says first: the answer to the first question on films, and whether it is shown."""
    main = next((answer for answer in answers if answer["table"] == "film"), None)
    if main is None:
        return ""
    names = setting_names()
    ours, theirs = main["seeds"]
    low, high = 100 * main["low"], 100 * main["high"]
    ours_name, theirs_name = (short_name(names[main[side]]) for side in ("ours", "theirs"))
    words = (
        f"**On films, {ours_name} finds {100 * abs(main['value']):.1f} percentage points "
        f"{'more' if main['value'] > 0 else 'fewer'} masses than {theirs_name}** ({main['unit']}; 95% "
        f"interval of the difference {low:+.1f} to {high:+.1f}, {ours} and {theirs} seeds)."
    )
    if low <= 0 <= high:
        return f"{words} The interval holds zero: a gain is not shown."
    if main.get("corrected", 0.0) >= LEVEL:
        corrected = f"Corrected for the number of questions (p {main['corrected']:.3f})"
        return f"{words} {corrected}, a gain is not shown."
    return words if min(ours, theirs) > 1 else f"{words} Where there is one seed, another might change that."


def more_answers(content: Mapping[str, Any]) -> list[str]:
    """Answers that are not differences of two rows: links, disturbed pairs, digital images."""
    parts = [
        _links_answer(content["tables"].get("film")),
        by_eye_sentence(content["links_by_eye"]) if content["links_by_eye"] else "",
        _partner_answer((content["robustness"] or {}).get("film")),
        _digital_answer(content["digital"]),
    ]
    return ["\n".join(f"- {part}" for part in parts if part)]


def _links_answer(table: Mapping[str, Any] | None) -> str:
    rows = {row["setting"]: row["numbers"] for row in (table or {}).get("rows", ())}
    if "geometric_film" not in rows:
        return ""
    right = rows["geometric_film"]["iou=0.2/links of single pairs/accuracy"]
    return (
        "**Do links hold?** Of masses that Geometric CL-Net finds in both views of breasts with one mass in "
        f"each, {percent(right)} % are linked correctly."
    )


def _partner_answer(film: Mapping[str, Any] | None) -> str:
    """What a missing or wrong second view costs on films, where every breast has it."""
    if not film:
        return ""
    wrong, missing = (
        next((point["change"] for point in film["disturbances"].get(name, ()) if point["level"] == 1), None)
        for name in ("wrong_partner", "missing_view")
    )
    if wrong is None or missing is None:
        return ""
    return (
        f"**What does a wrong second view cost, or none?** Another patient's MLO in every breast changes "
        f"R@{RATES[0]} of the film model by {percent(wrong, signed=True)} points, one view alone by "
        f"{percent(missing, signed=True)} "
        "([robustness](robustness.md#films))."
    )


def _digital_answer(digital: Mapping[str, Any] | None) -> str:
    if not digital:
        return ""
    before, after = (percent(digital[when]["recall"][RATES[0]]) for when in ("before", "after"))
    return (
        f"**And on digital images?** On CDD-CESM, which it has never seen, R@{RATES[0]} of the film model is "
        f"{before} %, fine-tuned {after} % ([model card](model_card.md#digital-mammograms))."
    )


def missing_words(missing: Mapping[str, int]) -> str:
    """The rows that lack trainings, and how many each lacks; "" if none does."""
    if not missing:
        return ""
    names = setting_names()
    rows = ", ".join(f"{short_name(names[setting])} ({number})" for setting, number in missing.items())
    return f"Not trained yet, with the number of seeds: {rows}."


def short_name(name: str) -> str:
    """What tables call a setting, without the explanation."""
    return name.split(":")[0]


def data_words(name: str) -> str:
    """The data of a table in a few words."""
    return {"film": "films", "phantom": "phantom", "patient": "phantom, depths as in patients"}[name]


def setting_names() -> dict[str, str]:
    """What tables call each setting."""
    return {row.setting: row.name for table in TABLES.values() for row in table.rows}


LINKS_BESIDE_GEOMETRY = (
    "# Links beside geometry",
    "Does the linker know more than that a mass has nearly the same depth and size in both views? The "
    "detections of the [phantom model](../../bundle/docs/README.md) were linked by its linker, and by the "
    "rule that [links data sets without links](../datasets.md#links).",
    "The linker beats both rules by every measure, in breasts with several masses too. Even the rule that "
    "knows how exactly the phantom preserves depth does not know which detections are masses, or what they "
    "look like. Patients preserve depth less exactly, so both would get worse there.",
)
