"""Makes the model of a training the bundle's own: weights, record, and the figures in metadata and pages.

    python scripts/ship_model.py OUTPUT

OUTPUT is the folder in which the commands of docs/training.md were run: it holds both trainings, both
evaluations and their comparison.
"""

import json
import re
import shutil
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

from page_text import percent, table

ROOT = Path(__file__).parent.parent
BUNDLE = ROOT / "bundle"
CARD = ROOT / "docs" / "model_card.md"
VARIANTS = {
    "clnet": "CL-Net, the shipped model",
    "deformable_detr": "each view alone (`deformable_detr.yaml`)",
}
RATES = ("0.125", "0.25", "0.5", "1", "2", "4")
IOU = "iou=0.5"


def main(output: Path) -> None:
    """Copy the model with its record, and write its figures where people look for them."""
    record = BUNDLE / "models" / "record"
    record.mkdir(parents=True, exist_ok=True)
    shutil.copy(output / "clnet-seed0" / "model.pt", BUNDLE / "models" / "model.pt")
    for variant in VARIANTS:
        run = _read(output / f"{variant}-seed0" / "run.json")
        for start in run["starts"]:  # of the interpreter's path the name will do
            start["command"][0] = Path(start["command"][0]).name
        _write(record / f"{variant}_training.json", run)
        shutil.copy(output / f"{variant}-seed0" / "metrics.jsonl", record / f"{variant}_epochs.jsonl")
        shutil.copy(output / f"evaluate-{variant}" / "metrics.json", record / f"{variant}_test.json")
    _write(record / "comparison.json", _read(output / "comparison" / "comparison.json"))
    _tell_metadata(record)
    _tell_pages(record)


def performance(record: Path) -> str:
    """The figures of a record as Markdown."""
    tests = {variant: _read(record / f"{variant}_test.json") for variant in VARIANTS}
    difference = _read(record / "comparison.json")["runs"]["evaluate-clnet"][IOU]["recall"]
    runs = {variant: _read(record / f"{variant}_training.json") for variant in VARIANTS}
    parts = (_recall_table(tests, difference), _about_links(tests["clnet"]["links"][IOU]), _about_cost(runs))
    return "\n\n".join(parts)


def card_performance(record: Path) -> str:
    """The same for the model card, which lies elsewhere."""
    return performance(record).replace("../../docs/", "").replace("`models/record`", "`bundle/models/record`")


def _recall_table(tests: dict[str, Any], difference: dict[str, Any]) -> str:
    counts = tests["clnet"]["counts"]
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
        f"Links of the shipped model: precision {percent(every['precision'])}, recall "
        f"{percent(every['recall'])}; of the masses that are found in both views, "
        f"{percent(every['accuracy'])} are linked correctly, in breasts with several masses "
        f"{percent(several['accuracy'])}."
    )


def _about_cost(runs: dict[str, Any]) -> str:
    costs = (
        f"{variant} {_minutes(run):.0f} min in all, {run['cost']['pairs_per_second']:.1f} pairs/s, "
        f"{run['cost']['data_loading_share']:.1%} of the training time waiting for data, "
        f"{run['cost']['peak_memory_gb']:.1f} GB of memory at the most"
        for variant, run in runs.items()
    )
    return (
        "Both were trained by `train.yaml` on the same pairs with the same seed and steps, by the commands "
        "of [docs/training.md](../../docs/training.md), both at once on two cores with one thread each: "
        f"{'; '.join(costs)}. The record is in `models/record`."
    )


def _minutes(run: dict[str, Any]) -> float:
    """From the start of a training to its end, reading, validation and all."""
    began, ended = (datetime.fromisoformat(time) for time in (run["starts"][0]["time"], run["ended"]))
    return (ended - began).total_seconds() / 60


def _tell_pages(record: Path) -> None:
    """Between the marks of the bundle's README and of the model card."""
    marks = r"(?<=<!-- performance -->\n).*?(?=<!-- end of performance -->)"
    for path in (BUNDLE / "docs" / "README.md", CARD):
        words = performance(record) if path != CARD else card_performance(record)
        text = re.sub(
            marks, lambda _, words=words: words + "\n", path.read_text(encoding="utf-8"), flags=re.DOTALL
        )
        path.write_text(text, encoding="utf-8")


def _tell_metadata(record: Path) -> None:
    path = BUNDLE / "configs" / "metadata.json"
    metadata = _read(path)
    recall = _read(record / "clnet_test.json")["detection"][IOU]["recall"]
    metadata["eval_metrics"] = {f"recall_iou0.5_fpi{rate}": round(recall[rate]["value"], 4) for rate in RATES}
    path.write_text(json.dumps(metadata, indent=4, ensure_ascii=False) + "\n", encoding="utf-8")


def _read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def _write(path: Path, content: Any) -> None:
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]))
