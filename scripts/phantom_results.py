"""The results of the phantom's model as Markdown, from its record in the bundle."""

from pathlib import Path
from typing import Any

from page_text import percent, table
from record_files import cpu_hours, read, read_lines

VARIANTS = {
    "geometric": "Geometric CL-Net, the phantom model",
    "one_view": "each view alone (`one_view.yaml`)",
}
RATES = ("0.125", "0.25", "0.5", "1", "2", "4")
IOU = "iou=0.5"


def performance(record: Path) -> str:
    """The figures of a record, with links as they are in the bundle's README."""
    tests = {variant: read(record / f"{variant}_test.json") for variant in VARIANTS}
    difference = read(record / "comparison.json")["runs"]["evaluate-geometric"][IOU]["recall"]
    runs = {variant: read(record / f"{variant}_training.json") for variant in VARIANTS}
    parts = (
        _recall_table(tests, difference),
        _about_links(tests["geometric"]["links"][IOU]),
        _about_cost(runs, record),
    )
    return "\n\n".join(parts)


def _recall_table(tests: dict[str, Any], difference: dict[str, Any]) -> str:
    counts = tests["geometric"]["counts"]
    rows = []
    for variant, name in VARIANTS.items():
        recall = tests[variant]["detection"][IOU]["recall"]
        rows.append([name, *(percent(recall[rate]) for rate in RATES)])
    differences = (f"{percent(difference[rate])}, p {difference[rate]['p']:.3f}" for rate in RATES)
    rows.append(["difference", *differences])
    return (
        f"On the {counts['pairs']} pairs of the phantom's test section, with {counts['lesion_boxes']} boxes "
        f"around {counts['lesions']} masses: recall in % of boxes at t false positives per image, IoU ≥ 0.5, "
        "with 95% intervals from a bootstrap over patients.\n\n"
    ) + table(["", *(f"R@{rate}" for rate in RATES)], rows)


def _about_links(links: dict[str, Any]) -> str:
    every, several = links["all"], links["several_lesions"]
    return (
        f"Links: precision {percent(every['precision'])}, recall "
        f"{percent(every['recall'])}; of the masses that are found in both views, "
        f"{percent(every['accuracy'])} are linked correctly, in breasts with several masses "
        f"{percent(several['accuracy'])}."
    )


def _about_cost(runs: dict[str, Any], record: Path) -> str:
    costs = (
        f"`{variant}` {cpu_hours(read_lines(record / f'{variant}_epochs.jsonl')):.1f} CPU hours, "
        f"{run['cost']['pairs_per_second']:.1f} pairs/s, "
        f"{run['cost']['data_loading_share']:.1%} of the training time waiting for data, "
        f"{run['cost']['peak_memory_gb']:.1f} GB of memory at the most"
        for variant, run in runs.items()
    )
    return (
        "Both were trained by `train.yaml` on the same pairs with the same seed and steps, by the commands "
        "of [docs/training.md](../../docs/training.md), with one thread each, beside other work: "
        f"{'; '.join(costs)}. The record is in `models/record`."
    )
