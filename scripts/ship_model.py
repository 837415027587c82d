"""Makes the model of a training one of the bundle's own: weights, record, settings, figures in the pages.

    python scripts/ship_model.py film OUTPUT
    python scripts/ship_model.py digital OUTPUT
    python scripts/ship_model.py phantom OUTPUT
    python scripts/ship_model.py pages

OUTPUT is the folder in which the commands of docs/real_data.md (film) or docs/training.md (phantom) were run,
or that scripts/cross_validate.py wrote to (digital).
`pages` writes the figures of the record again. The picture of the film model is scripts/film_figure.py's.
"""

import math
import re
import shutil
import sys
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import film_results
import phantom_results
from page_text import write_between_marks
from record_files import read, read_lines, write

from clnet.evaluation.record import read_record
from clnet.evaluation.threshold import threshold_at_rate
from clnet.predict.model_name import weights_digest

ROOT = Path(__file__).parent.parent
BUNDLE = ROOT / "bundle"
RECORD = BUNDLE / "models" / "record"
README, CARD, BUNDLE_README = (
    ROOT / "README.md",
    ROOT / "docs" / "model_card.md",
    BUNDLE / "docs" / "README.md",
)
EVALUATIONS = {  # of the film model, by name in the record: section and protocol
    "test": ("test", "film"),
    "test_default": ("test", "default"),
    "test_transreg": ("test", "transreg"),
    "validation": ("validation", "film"),
}
REPORT_RATE = 0.5  # false positives per image of the threshold of reports
LOG = "film_test_log.json"


def ship_film(output: Path) -> None:
    """The model of ``film-seed0``, with what it was evaluated to."""
    weights = output / "film-seed0" / "model.pt"
    metrics = {name: _film_metrics(output, name, weights) for name in EVALUATIONS}
    shutil.copy(weights, BUNDLE / "models" / "model.pt")
    _copy_training(output / "film-seed0", "film")
    seeds = sorted(output.glob("film-seed*/metrics.jsonl"))
    best = {path.parent.name.removeprefix("film-seed"): _best_validation(read_lines(path)) for path in seeds}
    write(RECORD / "film_seeds.json", best)
    for name, content in metrics.items():
        write(RECORD / f"film_{name}.json", content)
    threshold = _choose_threshold(output)
    write(RECORD / "film_threshold.json", threshold)
    write(RECORD / LOG, _updated_log(output))
    for config in ("film.yaml", "inference.yaml"):
        _set_min_score(BUNDLE / "configs" / config, threshold["min_score"])
    _write_metadata(metrics["test"]["detection"][film_results.IOU]["recall"])


def ship_phantom(output: Path) -> None:
    """The model of ``geometric-seed0``, with what it was evaluated to."""
    weights, evaluated = output / "geometric-seed0" / "model.pt", output / "evaluate-geometric"
    _read_metrics(evaluated, "test", "default", weights)
    shutil.copy(weights, BUNDLE / "models" / "phantom.pt")
    _copy_training(output / "geometric-seed0", "geometric")
    shutil.copy(evaluated / "metrics.json", RECORD / "geometric_test.json")


def film_passages(record: Path) -> dict[Path, str]:
    """The generated passages about the film model, by page."""
    return {
        README: film_results.headline(record),
        CARD: _from_docs(film_results.full(record)),
        BUNDLE_README: film_results.summary(record),
    }


def phantom_passages(record: Path) -> dict[Path, str]:
    """The generated passages about the phantom model, by page."""
    words = phantom_results.performance(record)
    return {README: phantom_results.headline(record), CARD: _from_docs(words), BUNDLE_README: words}


def write_pages(record: Path) -> None:
    """Write the generated passages of all pages."""
    for mark, passages in (("film", film_passages(record)), ("phantom", phantom_passages(record))):
        for page, words in passages.items():
            write_between_marks(page, mark, words)


def _from_docs(words: str) -> str:
    """With links and paths as a page in docs needs them; they are written for the bundle's README."""
    return words.replace("../../docs/", "").replace("`models/record`", "`bundle/models/record`")


def _film_metrics(output: Path, name: str, weights: Path) -> dict[str, Any]:
    """The numbers of an evaluation, without its curves."""
    folder = output / f"evaluate-film-{name.replace('_', '-')}"
    content = _read_metrics(folder, *EVALUATIONS[name], weights)
    content["data"] = {key: content["data"][key] for key in ("name", "section")}
    for at in content["detection"].values():
        del at["curve"]
    return content


def _read_metrics(folder: Path, section: str, protocol: str, weights: Path) -> dict[str, Any]:
    """The numbers of an evaluation, which must be of this section, by this protocol and of these weights."""
    content: dict[str, Any] = read(folder / "metrics.json")
    expected = (section, protocol, weights_digest(weights))
    found = (content["data"]["section"], content["settings"]["protocol"], content["model"].split()[-1])
    if found != expected or content["protocol"] != f"protocol {protocol}":
        sys.exit(f"{folder}: section, protocol and weights are {found}; expected {expected}, no rule changed")
    return content


def _copy_training(run: Path, name: str) -> None:
    """Settings and epochs of a run; of the machine's paths only the names are kept."""
    write(RECORD / f"{name}_training.json", _without_folders(read(run / "run.json")))
    shutil.copy(run / "metrics.jsonl", RECORD / f"{name}_epochs.jsonl")


def _without_folders(content: Any) -> Any:
    if isinstance(content, dict):
        return {key: _without_folders(value) for key, value in content.items()}
    if isinstance(content, list):
        return [_without_folders(value) for value in content]
    return Path(content).name if isinstance(content, str) and content.startswith("/") else content


def _best_validation(lines: list[dict[str, Any]]) -> dict[str, Any]:
    validations = [line for line in lines if line["kind"] == "validation"]
    best = max(validations, key=lambda line: line["metrics"]["mean_recall"])
    return {"epoch": best["epoch"], "metrics": best["metrics"]}


def _choose_threshold(output: Path) -> dict[str, Any]:
    """The score of reports, and what it does on both sections."""
    folders = {section: output / f"evaluate-film-{section}" for section in ("validation", "test")}
    chosen = threshold_at_rate(folders["validation"], REPORT_RATE)
    # Upwards, so that the rate is not exceeded; where all detections may pass, 0.
    min_score = math.ceil(max(chosen.min_score, 0.0) * 1e4) / 1e4
    effects = {}
    for section, folder in folders.items():
        curve = read_record(folder).curves[chosen.iou]
        effects[section] = {
            "rate": float((curve.false_positives >= min_score).sum() / curve.images),
            "recall": float((curve.found_at >= min_score).mean()),
        }
    return {"min_score": min_score, "rate": REPORT_RATE, "iou": chosen.iou, **effects}


def _updated_log(output: Path) -> list[dict[str, Any]]:
    """The log of the test section with the evaluations in a folder, one entry for each set of findings."""
    entries: dict[str, dict[str, Any]] = {entry["model"]: entry for entry in read(RECORD / LOG)}
    for path in sorted(output.glob("*/metrics.json")):
        metrics = read(path)
        if metrics["data"]["section"] != "test":
            continue
        protocol = metrics["protocol"].removeprefix("protocol ")
        when = datetime.fromtimestamp(path.stat().st_mtime, timezone.utc).date().isoformat()
        new = {"when": when, "model": metrics["model"], "trial": False, "protocols": [], "recall": {}}
        entry = entries.setdefault(metrics["model"], new)
        entry["protocols"] = sorted({*entry["protocols"], protocol})
        if protocol == "film":
            recall = metrics["detection"][film_results.IOU]["recall"]
            entry["recall"] = {rate: round(100 * recall[rate]["value"], 1) for rate in film_results.RATES}
    return list(entries.values())


def _set_min_score(config: Path, min_score: float) -> None:
    """Change the value of a config and leave its comment where it is."""
    line = f"min_score: {min_score:g}"
    text, count = re.subn(
        r"^min_score: [\d.]+( *)(?=#|$)",
        lambda found: line.ljust(len(found[0])) if found[1] else line,
        config.read_text(encoding="utf-8"),
        flags=re.MULTILINE,
    )
    if count != 1:
        sys.exit(f"{config}: expected one line min_score, found {count}")
    config.write_text(text, encoding="utf-8")


def _write_metadata(recall: dict[str, Any]) -> None:
    path = BUNDLE / "configs" / "metadata.json"
    metadata = read(path)
    metadata["eval_metrics"] = {
        f"recall_iou0.2_fpi{rate}": round(value["value"], 4) for rate, value in recall.items()
    }
    write(path, metadata, indent=4)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["film", folder]:
            ship_film(Path(folder))
        case ["digital", folder]:
            shutil.copy(Path(folder) / "cross_validation.json", RECORD / "film_digital.json")
        case ["phantom", folder]:
            ship_phantom(Path(folder))
        case ["pages"]:
            pass
        case _:
            sys.exit(__doc__)
    write_pages(RECORD)
