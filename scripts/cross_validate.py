"""Fine-tunes the film model on a small data set, cross-validated by patient: what does it bring?

    python scripts/cross_validate.py DATASET --output DIR [--folds 4] [SETTINGS...]

The film model is evaluated on all breasts of the data set, whatever their section, as it comes. Then the
patients are dealt into folds; for each, the model is fine-tuned by fine_tune.yaml on the other patients (a
fifth of them choose the epoch) and looks for masses in the fold's. The findings of all folds together are
evaluated once: both rows are of the same breasts, and no breast was tuned on. DIR gets
``cross_validation.json``. What is done already is not done again. SETTINGS, such as ``--max_epochs 5``, go to
every run.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from monai.bundle.config_parser import ConfigParser
from page_text import percent, points, table

from clnet.cli.main import main as clnet
from clnet.data.datalist import Datalist, read_datalist, split_by_patient, write_datalist
from clnet.data.pair import Pair
from clnet.evaluation.folder import evaluate_files, read_metrics
from clnet.evaluation.protocols import settings_of
from clnet.findings.types import FINDINGS_FILE, Findings, PairFindings, read_findings, write_findings

CONFIGS = Path(__file__).parent.parent / "bundle" / "configs"
RATES, IOU = ("0.25", "0.5", "1", "2", "4"), "iou=0.2"


def cross_validate(dataset: Path, output: Path, folds: int, settings: Sequence[str] = ()) -> dict[str, Any]:
    """Evaluate before and after fine-tuning.

    Args:
        dataset: a datalist, or a folder with one; all its sections are used.
        output: to write to.
        folds: how many.
        settings: for every run, such as ``("--max_epochs", "1")``.
    """
    source = read_datalist(dataset)
    pairs = [pair for section in source.sections.values() for pair in section]
    everything = _write_data(output / "all", source.name, {"test": tuple(pairs)})
    before = _find_masses(output, everything, "before", (), settings)

    after: list[PairFindings] = []
    for name, held_out in split_by_patient(pairs, {f"fold{k + 1}": 1 / folds for k in range(folds)}).items():
        others = [pair for pair in pairs if pair not in held_out]
        sections = split_by_patient(others, {"training": 0.8, "validation": 0.2})
        data = _write_data(output / f"data-{name}", f"{source.name}, {name}", {**sections, "test": held_out})
        run = output / name
        if not (run / "model.pt").exists():
            _bundle(output, data, "training", "fine_tune", ("--run_name", name, *settings))
        after += _find_masses(output, data, f"after-{name}", ("--weights", str(run / "model.pt")), settings)
    pooled = output / "after" / FINDINGS_FILE
    write_findings(Findings("fine-tuned in folds", tuple(after)), pooled)
    evaluate_files(everything, pooled, output=pooled.parent, settings=settings_of("film"), report=False)
    compared = output / "comparison"
    clnet(["compare", str(output / "before"), str(output / "after"), "--output", str(compared)])
    return {
        "data": source.name,
        "breasts": len(pairs),
        "images": sum(len(pair.views) for pair in pairs),
        "boxes": sum(len(view.boxes) for pair in pairs for view in pair.views.values()),
        "folds": folds,
        "before": _numbers(output / "before", pairs, before),
        "after": _numbers(output / "after", pairs, after),
        "difference": json.loads((compared / "comparison.json").read_text())["runs"]["after"][IOU]["recall"],
    }


def words_of(content: dict[str, Any]) -> str:
    """The result as Markdown."""
    rows = [
        [name, *(percent(content[key]["recall"][rate]) for rate in RATES)]
        for key, name in (("before", "as it comes"), ("after", "fine-tuned, cross-validated"))
    ]
    rows.append(["difference", *(points(content["difference"][rate]) for rate in RATES)])
    lines = [table(["the film model", *(f"R@{rate}" for rate in RATES)], rows), ""]
    for key, name in (("before", "As it comes"), ("after", "Fine-tuned")):
        normal = content[key]["normal"]
        lines.append(
            f"{name}, from a score of {normal['min_score']:g}: {normal['per_image']:.2f} false positives per "
            f"image of the {normal['breasts']} breasts without a mass; in {normal['silent']} of them nothing "
            "is reported."
        )
    return "\n".join(lines)


def _write_data(folder: Path, name: str, sections: dict[str, tuple[Pair, ...]]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    write_datalist(Datalist(name, sections), folder / "datalist.json")
    return folder


def _find_masses(
    output: Path, data: Path, name: str, weights: Sequence[str], settings: Sequence[str]
) -> list[PairFindings]:
    """The findings of a model in the test section, in a run of that name; by default the shipped model."""
    found = output / name / FINDINGS_FILE
    if not found.exists():
        _bundle(output, data, "evaluating", "evaluate", ("--run_name", name, *weights, *settings))
    return list(read_findings(found))


def _bundle(output: Path, data: Path, run: str, config: str, settings: Sequence[str]) -> None:
    files = [str(CONFIGS / f"{name}.yaml") for name in ("train", "film", config)]
    words = ["--config_file", str(files), "--dataset_dir", str(data), "--output_dir", str(output), *settings]
    done = subprocess.run([sys.executable, "-W", "ignore", "-m", "monai.bundle", "run", run, *words])
    if done.returncode:
        sys.exit(f"{config}.yaml failed on {data}; repeat the command when the reason above is mended")


def _numbers(folder: Path, pairs: Sequence[Pair], found: Sequence[PairFindings]) -> dict[str, Any]:
    """Recall by protocol film, and what is reported in breasts without a mass."""
    metrics = read_metrics(folder)
    least = ConfigParser.load_config_file(CONFIGS / "film.yaml")["min_score"]
    findings = {pair.pair_id: pair for pair in found}
    reported = [
        [int(np.sum(view.scores >= least)) for view in findings[pair.pair_id].views.values()]
        for pair in pairs
        if not any(len(view.boxes) for view in pair.views.values())
    ]
    images = [count for breast in reported for count in breast]
    return {
        "recall": metrics["detection"][IOU]["recall"],
        "normal": {
            "min_score": least,
            "breasts": len(reported),
            "silent": sum(not any(breast) for breast in reported),
            "per_image": sum(images) / max(len(images), 1),
        },
    }


def main() -> None:
    """Run, print and write."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("dataset", type=Path, metavar="DATASET", help="a datalist, or a folder with one")
    parser.add_argument("--output", type=Path, required=True, metavar="DIR", help="folder to write to")
    parser.add_argument("--folds", type=int, default=4, metavar="K", help="(default: %(default)s)")
    options, settings = parser.parse_known_args()
    content = cross_validate(options.dataset, options.output, options.folds, settings)
    (options.output / "cross_validation.json").write_text(json.dumps(content, indent=1) + "\n")
    print(words_of(content))


if __name__ == "__main__":
    main()
