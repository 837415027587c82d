"""The results of the phantom's model as Markdown, from its record in the bundle."""

from pathlib import Path
from typing import Any

from page_text import percent, table
from record_files import cpu_hours, read, read_lines

RATES = ("0.125", "0.25", "0.5", "1", "2", "4")
IOU = "iou=0.5"


def headline(record: Path) -> str:
    """A sentence for the first page."""
    test = read(record / "geometric_test.json")
    recall, links = test["detection"][IOU]["recall"], test["links"][IOU]["all"]
    return (
        f"On the [phantom](docs/phantom.md) the phantom model's R@0.25 is {percent(recall['0.25'])} % "
        f"at IoU ≥ 0.5, and {percent(links['accuracy'])} % of the masses that it finds in both views are "
        "linked correctly. The phantom is built so that one view cannot tell masses from mimics: it shows "
        "what two views can give, not what they give in patients."
    )


def performance(record: Path) -> str:
    """The figures of a record, with links as they are in the bundle's README."""
    test = read(record / "geometric_test.json")
    return "\n\n".join((_recall_table(test), _about_links(test["links"][IOU]), _about_cost(record)))


def _recall_table(test: dict[str, Any]) -> str:
    counts, recall = test["counts"], test["detection"][IOU]["recall"]
    return (
        f"On the {counts['pairs']} pairs of the phantom's test section, with {counts['lesion_boxes']} boxes "
        f"around {counts['lesions']} masses: recall in % of boxes at t false positives per image, IoU ≥ 0.5, "
        "with 95% intervals from a bootstrap over patients.\n\n"
    ) + table([f"R@{rate}" for rate in RATES], [[percent(recall[rate]) for rate in RATES]])


def _about_links(links: dict[str, Any]) -> str:
    every, several = links["all"], links["several_lesions"]
    return (
        f"Links: precision {percent(every['precision'])}, recall "
        f"{percent(every['recall'])}; of the masses that are found in both views, "
        f"{percent(every['accuracy'])} are linked correctly, in breasts with several masses "
        f"{percent(several['accuracy'])}."
    )


def _about_cost(record: Path) -> str:
    run, epochs = read(record / "geometric_training.json"), read_lines(record / "geometric_epochs.jsonl")
    return (
        f"Trained by `train.yaml` for {run['epoch']} epochs on a CPU, with one thread: "
        f"{cpu_hours(epochs):.1f} CPU hours, {run['cost']['peak_memory_gb']:.1f} GB of memory at most. "
        f"The weights are those of epoch {run['best']['epoch']}, the best of the validation section. One "
        "seed was trained. The record is in `models/record`."
    )
