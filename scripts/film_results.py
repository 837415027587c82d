"""The results of the film model as Markdown, from its record in the bundle."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cross_validate import words_of as digital_words
from page_text import percent, table
from record_files import cpu_hours, read, read_lines

from clnet.evaluation.error_types import ERROR_TYPES

RATES = ("0.25", "0.5", "1", "2", "4")
IOU, STRICT_IOU = "iou=0.2", "iou=0.5"
FIRST_RULE = "IoU ≥ 0.2, duplicates are false positives"
STRICT_RULE = "IoU ≥ 0.5, duplicates are false positives"
PAPER = ("the paper's CL-Net: DDSM, another split, rules not public", "78.1", "83.1", "88.0", "92.4", "95.0")
SUBGROUPS = {
    "subtlety": "subtlety {}",
    "density": "density {}",
    "size in % of image height": "size, {} % of the image's height",
    "pathology": "{}",
}


def headline(record: Path) -> str:
    """A short table for the first page."""
    test = read(record / "film_test.json")
    rows = [
        [f"**{FIRST_RULE}**", *_recalls(test["detection"][IOU]["recall"])],
        [STRICT_RULE, *_recalls(test["detection"][STRICT_IOU]["recall"])],
        PAPER,
    ]
    return f"{_about_section(test)}\n\n{_recall_table('the film model', rows)}"


def summary(record: Path) -> str:
    """Recall, links, threshold and cost, for the bundle's README."""
    parts = (_recall_section(record), _links_section(record), about_threshold(record), _cost_section(record))
    return "\n\n".join(parts)


def full(record: Path) -> str:
    """Everything, for the model card."""
    parts = {
        "Recall": _recall_section(record),
        "Subgroups": _subgroup_section(record),
        "Links": _links_section(record),
        "Errors": _errors_section(record),
        "Digital mammograms": _digital_section(record),
        "Threshold of reports": about_threshold(record),
        "Training": _cost_section(record),
        "Every evaluation on the test section": _log_section(record),
    }
    return "\n\n".join(f"#### {title}\n\n{words}" for title, words in parts.items())


def about_threshold(record: Path) -> str:
    """The threshold of reports, and what it does."""
    found = read(record / "film_threshold.json")
    there, here = found["validation"], found["test"]
    return (
        f"`clnet predict` reports lesions with a score of at least {found['min_score']:g} (`--min-score`). "
        f"It was chosen for {found['rate']:g} false positives per image on the validation section, where it "
        f"finds {100 * there['recall']:.1f}% of the boxes. On the test section it gives {here['rate']:.2f} "
        f"false positives per image and finds {100 * here['recall']:.1f}%."
    )


def _about_section(test: Mapping[str, Any]) -> str:
    counts = test["counts"]
    return (
        f"On CBIS-DDSM's official test section: {counts['images']} scanned films of {counts['pairs']} "
        f"breasts of {counts['patients']} patients with {counts['lesion_boxes']} boxes around masses. R@t is "
        "the recall of boxes in % at t false positives per image, with 95% intervals from a bootstrap over "
        "patients. Every film shows a mass, so nothing is known about normal ones."
    )


def _recall_section(record: Path) -> str:
    test, forgiving, transreg, validation = (
        read(record / f"film_{name}.json") for name in ("test", "test_default", "test_transreg", "validation")
    )
    views = test["subgroups"][IOU].get("views of the breast", {})
    rows = [
        [f"**{FIRST_RULE}**", *_recalls(test["detection"][IOU]["recall"])],
        [STRICT_RULE, *_recalls(test["detection"][STRICT_IOU]["recall"])],
        ["IoU ≥ 0.2, duplicates forgiven", *_recalls(forgiving["detection"][IOU]["recall"])],
        ["IoU > 0.2, TransReg's rules", *_recalls(transreg["detection"][IOU]["recall"])],
        *(
            [
                f"first rule, breasts with {words} ({views[name]['boxes']} boxes)",
                *_recalls(views[name]["recall"]),
            ]
            for name, words in (("both", "both views"), ("one", "one view"))
            if name in views
        ),
        [
            f"first rule, validation section ({validation['counts']['lesion_boxes']} boxes)",
            *_recalls(validation["detection"][IOU]["recall"]),
        ],
    ]
    trials = [entry for entry in read(record / "film_test_log.json") if entry["trial"]]
    others = [
        *([entry["model"], *(f"{entry['recall'][rate]:.1f}" for rate in RATES)] for entry in trials),
        PAPER,
    ]
    return "\n\n".join(
        (
            _about_section(test),
            _recall_table("the film model", rows),
            "[The rules](../../docs/evaluation.md#protocols) in words. Epoch and threshold were chosen on "
            "the validation section, so its row is too good. For orientation only: trials with a smaller "
            "input and 14 epochs on the same test section by the first rule, and the paper.",
            _recall_table("", others),
        )
    )


def _subgroup_section(record: Path) -> str:
    groups = read(record / "film_test.json")["subgroups"][IOU]
    shown = ("0.25", "0.5", "1", "2")
    rows = [
        [
            words.format(_label(label)),
            str(group["boxes"]),
            *(percent(group["recall"][rate]) for rate in shown),
        ]
        for name, words in SUBGROUPS.items()
        for label, group in groups.get(name, {}).items()
    ]
    return (
        "Test section, first rule, at the score thresholds of the whole section. Grades are those of the "
        "data set: a mass of subtlety 5 is obvious. Groups of fewer than three patients are left out.\n\n"
        + table(["boxes around masses", "n", *(f"R@{rate}" for rate in shown)], rows)
    )


def _links_section(record: Path) -> str:
    test = read(record / "film_test.json")
    names = {
        "single_pair": "one mass in each view",
        "several_lesions": "several masses",
        "all": "all with both views",
    }
    rows = []
    for name, words in names.items():
        links = test["links"][IOU][name]
        counts = links["counts"]
        numbers = (counts["lesions"], counts["detected"], counts["detected_right"])
        rows.append([words, *map(str, numbers), percent(links["accuracy"])])
    heads = ["breasts", "masses", "found in both views", "and linked correctly", "in % of those found"]
    return (
        "Links, test section, IoU ≥ 0.2, at 0.5 false positives per image. CBIS-DDSM does not say which mass "
        "is which: links are certain where there is one mass in each view; elsewhere they come from geometry "
        "or are missing. A link counts from a score of 0.5 on.\n\n" + table(heads, rows)
    )


def _errors_section(record: Path) -> str:
    errors = read(record / "film_test.json")["errors"]
    rows = [[ERROR_TYPES[name], str(count)] for name, count in errors["counts"].items()]
    return "Test section, IoU ≥ 0.2, at 0.5 false positives per image.\n\n" + table(["error", "n"], rows)


def _digital_section(record: Path) -> str:
    content = read(record / "film_digital.json")
    return (
        f"On {content['images']} low-energy images of CDD-CESM, which look like ordinary digital mammograms "
        "(Khaled et al. 2021, The Cancer Imaging Archive, [doi:10.7937/29kw-ae92]"
        f"(https://doi.org/10.7937/29kw-ae92)): {content['breasts']} breasts, most of them without a mass, "
        f"and {content['boxes']} boxes, by the first rule. Fine-tuning is `fine_tune.yaml` on the other "
        f"patients of the data set, cross-validated in {content['folds']} folds by patient "
        f"(`scripts/cross_validate.py`).\n\n{digital_words(content)}\n\n"
        "So digital images need training of their own: as it comes, the model marks something in nearly "
        "every normal breast. Fine-tuning on a few dozen breasts fixes most of that. Up to one false "
        "positive per image it does not find more masses beyond the interval."
    )


def _cost_section(record: Path) -> str:
    run, epochs = read(record / "film_training.json"), read_lines(record / "film_epochs.jsonl")
    words = (
        f"Trained for {run['epoch']} epochs on a CPU: {cpu_hours(epochs):.1f} CPU hours, "
        f"{run['cost']['peak_memory_gb']:.1f} GB of memory at most. The weights are those of epoch "
        f"{run['best']['epoch']}, the best of the validation section. Settings and record are in "
        "`models/record`."
    )
    seeds = read(record / "film_seeds.json")
    if len(seeds) == 1:
        return f"{words} One seed was trained: how much another would differ is not known."
    rows = [
        [
            f"seed {seed}{', the film model' if seed == '0' else ''}",
            str(best["epoch"]),
            *(f"{100 * best['metrics'][f'recall_iou0.2_fpi{rate}']:.1f}" for rate in RATES),
        ]
        for seed, best in seeds.items()
    ]
    heads = ["validation section, first rule", "best epoch", *(f"R@{rate}" for rate in RATES)]
    return f"{words}\n\nHow much the seed matters, during training:\n\n{table(heads, rows)}"


def _log_section(record: Path) -> str:
    rows = [
        [
            entry["when"],
            entry["model"],
            ", ".join(entry["protocols"]),
            " / ".join(f"{value:.1f}" for value in entry["recall"].values()) or "–",
        ]
        for entry in read(record / "film_test_log.json")
    ]
    heads = ["when", "model", "counted by", " / ".join(f"R@{rate}" for rate in RATES)]
    return (
        "R@t is by the first rule. The trials informed the choice of the network, so the test section was "
        "not quite unseen; epoch and threshold were chosen on the validation section. The trainings of "
        "[the evidence](../../docs/evidence.md), other seeds of the film model among them, were looked at "
        "once each, after training, and decided nothing; so were the "
        "[disturbed copies](../../docs/robustness.md) of the section, by the last of these models.\n\n"
        + table(heads, rows)
    )


def _recalls(recall: Mapping[str, Any]) -> list[str]:
    return [percent(recall[rate]) for rate in RATES]


def _recall_table(title: str, rows: list[Any]) -> str:
    return table([title, *(f"R@{rate}" for rate in RATES)], rows)


def _label(label: str) -> str:
    """Of a third the range alone; of a pathology a word."""
    for third in ("lower third, ", "middle third, ", "upper third, "):
        label = label.removeprefix(third)
    return label.replace("_", " ").lower()
