"""Evaluate the shipped models on disturbed pairs, and write docs/robustness.md.

Each disturbance is a copy of a test section, evaluated by the bundle like any data set. Numbers are kept in
docs/robustness.json and not computed again while model and data are the same.
"""

import argparse
import hashlib
import shutil
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from ablations.kept import read_runs
from ablations.numbers import Numbers
from disturbances import DISTURBANCES, FILM_DISTURBANCES, Disturbance, Pairs
from matplotlib.figure import Figure
from numpy.typing import NDArray
from page_text import percent, points, table
from record_files import read, write
from shipped import ROOT, evaluate_shipped

from clnet.data.datalist import Datalist, read_datalist, write_datalist
from clnet.evaluation.bootstrap import draw_patients, interval
from clnet.evaluation.metrics import evaluate
from clnet.evaluation.protocols import settings_of
from clnet.evaluation.record import iou_key
from clnet.evaluation.resampled import difference, statistics
from clnet.findings.types import FINDINGS_FILE, read_findings
from clnet.phantom import PhantomSettings, make_phantom
from clnet.runs.provenance import data_fingerprint, git_commit

RATE, SECTION, RESAMPLES = "0.25", "test", 2000
COLUMNS = 5  # of panels in the picture
COMMAND = "./scripts/robustness --film output/cbis-ddsm"


@dataclass(frozen=True)
class Subject:
    """A shipped model, and how it is tried.

    Attributes:
        title: the heading of its part of the page.
        about: the model and its pairs, in words.
        weights: a file in bundle/models.
        configs: of the model, on top of train.yaml.
        protocol: the rules of counting.
        iou: of a hit.
        disturbances: by name.
        alone: the row of the evidence that sees each view alone, and the part of its boxes.
    """

    title: str
    about: str
    weights: str
    configs: tuple[str, ...]
    protocol: str
    iou: float
    disturbances: Mapping[str, Disturbance]
    alone: tuple[str, str]

    def identity(self, data: Path) -> dict[str, Any]:
        """What all its numbers depend on, with the data set in this folder."""
        weights = (ROOT / "bundle" / "models" / self.weights).read_bytes()
        return {"weights": hashlib.sha256(weights).hexdigest(), "data_fingerprint": data_fingerprint(data)}

    def levels(self) -> Iterator[tuple[str, float]]:
        """Disturbances and the levels that change something, the most informative first."""
        most = max(len(disturbance.levels) for disturbance in self.disturbances.values())
        for place in range(1, most):
            for name, disturbance in self.disturbances.items():
                if place < len(disturbance.levels):
                    yield name, disturbance.levels[place]


SUBJECTS = {
    "film": Subject(
        "Films",
        "The film model on the breasts of CBIS-DDSM's official test section that have both views",
        "model.pt",
        ("film",),
        "film",
        0.2,
        FILM_DISTURBANCES,
        ("one_view_film", "both views/"),
    ),
    "phantom": Subject(
        "The phantom",
        "The phantom model on the test section of the [phantom](phantom.md)",
        "phantom.pt",
        (),
        "default",
        0.5,
        DISTURBANCES,
        ("one_view", ""),
    ),
}


class Trial:
    """Evaluates disturbed copies of the test section of a data set: of its breasts with both views.

    Args:
        subject: the model, and the disturbances.
        data: folder of the data set.
        output: folder of the runs.
        words: further options of every command of the bundle.
    """

    def __init__(self, subject: Subject, data: Path, output: Path, words: Sequence[str]) -> None:
        self.subject, self.output, self.words = subject, output, words
        self.pairs = [pair for pair in read_datalist(data)[SECTION] if len(pair.views) == 2]
        self.undisturbed = self._recall("undisturbed", self.pairs)

    def about(self) -> dict[str, Any]:
        """The undisturbed pairs, and R@t."""
        return {"pairs": len(self.pairs), "boxes": boxes_of(self.pairs), "recall": interval(self.undisturbed)}

    def evaluate(self, name: str, level: float) -> dict[str, Any]:
        """R@t of a disturbance, and how much it differs from that of the undisturbed pairs."""
        images = self.output / "images"
        shutil.rmtree(images, ignore_errors=True)  # of an interrupted run
        images.mkdir(parents=True)
        pairs = self.subject.disturbances[name].change(self.pairs, level, images)
        recall = self._recall(f"{name}-{level:g}", pairs)
        shutil.rmtree(images)
        return {
            "level": level,
            "recall": interval(recall),
            "change": difference(recall, self.undisturbed),
            "boxes": boxes_of(pairs),
            "git_commit": git_commit(),
        }

    def _recall(self, run: str, pairs: Pairs) -> NDArray[np.float64]:
        """R@t [1 + resamples] of pairs."""
        began, data = time.monotonic(), self.output / "data"
        shutil.rmtree(data, ignore_errors=True)
        data.mkdir(parents=True)
        write_datalist(Datalist(run, {SECTION: tuple(pairs)}), data / "datalist.json")
        folder = evaluate_shipped(
            data, self.output, run, SECTION, "clnet-robustness", *self.words, configs=self.subject.configs
        )
        shutil.rmtree(data)
        settings = settings_of(self.subject.protocol, resamples=1)
        record = evaluate(pairs, read_findings(folder / FINDINGS_FILE), settings).record
        weights = draw_patients(record.patients, RESAMPLES, seed=0)
        print(f"{self.output.name}, {run}: evaluated in {time.monotonic() - began:.0f} s", flush=True)
        return statistics(record, weights)[self.subject.iou].recall[RATE]


def boxes_of(pairs: Pairs) -> int:
    """The number of boxes around masses."""
    return sum(len(view.boxes) for pair in pairs for view in pair.views.values())


def evaluate_missing(name: str, data: Path, options: argparse.Namespace, file: Path) -> None:
    """Evaluate what the file lacks of a subject, and add each result to it."""
    subject, content = SUBJECTS[name], read(file) if file.exists() else {}
    identity = subject.identity(data)
    if content.get(name, {}).get("of") != identity:
        content[name] = {"of": identity, "disturbances": {}}
    known = content[name]["disturbances"]
    wanted = [
        (disturbance, level)
        for disturbance, level in subject.levels()
        if level not in [point["level"] for point in known.get(disturbance, ())]
    ]
    if not wanted:
        return
    trial = Trial(subject, data, options.output / name, options.words)
    content[name]["undisturbed"] = trial.about()
    for disturbance, level in wanted:
        found = [*known.get(disturbance, ()), trial.evaluate(disturbance, level)]
        known[disturbance] = sorted(found, key=lambda point: point["level"])
        write(file, content)


def alone(subject: Subject, runs: Path) -> dict[str, Any] | None:
    """R@t of the same training that sees each view alone, on undisturbed pairs; None if it is not kept."""
    setting, part = subject.alone
    kept = {key: run for key, run in read_runs(runs).items() if key[0] == setting}
    numbers = Numbers(kept, resamples=RESAMPLES)
    return numbers.row(setting)[f"{iou_key(subject.iou)}/{part}recall/{RATE}"] if kept else None


def draw(content: Mapping[str, Any], singles: Mapping[str, Any], path: Path) -> None:
    """A panel for each disturbance of each subject, so many in a row."""
    rows = [
        (name, list(of_subject["disturbances"])[first : first + COLUMNS])
        for name, of_subject in content.items()
        for first in range(0, len(of_subject["disturbances"]), COLUMNS)
    ]
    figure = Figure(figsize=(1.9 * COLUMNS, 2.3 * len(rows) + 0.4), layout="constrained", dpi=120)
    every_axes = figure.subplots(len(rows), COLUMNS, sharey=True, squeeze=False)
    for row, (name, kinds) in zip(every_axes, rows, strict=True):
        of_subject = content[name]
        for axes in row[len(kinds) :]:
            axes.set_axis_off()
        row[0].set_ylabel(f"{SUBJECTS[name].title}, R@{RATE} in %")
        for axes, kind in zip(row, kinds, strict=False):
            found = of_subject["disturbances"][kind]
            disturbance = SUBJECTS[name].disturbances[kind]
            whole = {"level": disturbance.levels[0], "recall": of_subject["undisturbed"]["recall"]}
            every = sorted([whole, *found], key=lambda point: point["level"])
            levels = [point["level"] for point in every]
            recall = {
                key: [100 * point["recall"][key] for point in every] for key in ("value", "low", "high")
            }
            axes.fill_between(levels, recall["low"], recall["high"], alpha=0.2, color="#1f4e79", linewidth=0)
            axes.plot(levels, recall["value"], "o-", markersize=3, color="#1f4e79", label="the shipped model")
            if singles.get(name):
                axes.axhline(
                    100 * singles[name]["value"],
                    linestyle="--",
                    color="#b3541e",
                    label="the same training on each view alone, undisturbed",
                )
            axes.set(ylim=(0, 100))
            axes.set_title(disturbance.title, fontsize=9)
            axes.set_xlabel(disturbance.axis, fontsize=8)
            axes.tick_params(labelsize=8)
            axes.grid(alpha=0.3)
            axes.spines[["top", "right"]].set_visible(False)
    handles, labels = every_axes[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2, frameon=False)
    figure.savefig(path)


def summary(name: str, of_subject: Mapping[str, Any], single: Mapping[str, Any] | None) -> str:
    """What costs something beyond its interval, and what does not."""
    levels = [
        (SUBJECTS[name].disturbances[kind], point)
        for kind, found in of_subject["disturbances"].items()
        for point in found
    ]
    costs = [(of, point) for of, point in levels if point["change"]["high"] < 0]
    costly = sorted({of.title for of, _ in costs}, key=[of.title for of, _ in levels].index)
    harmless = sorted({of.title for of, _ in levels} - set(costly), key=[of.title for of, _ in levels].index)
    words = f"Undisturbed R@{RATE} is {percent(of_subject['undisturbed']['recall'])}"
    words += f", with each view alone {percent(single)}. " if single else ". "
    words += f"What costs something, at some level, beyond its interval: {', '.join(costly) or 'nothing'}."
    return words + (f" No cost was shown for: {', '.join(harmless)}." if harmless else "")


def part(name: str, of_subject: Mapping[str, Any], single: Mapping[str, Any] | None) -> list[str]:
    """The paragraphs of a subject."""
    subject, undisturbed = SUBJECTS[name], of_subject["undisturbed"]
    lines = [
        [
            disturbance.title,
            f"{disturbance.axis} {point['level']:g}",
            percent(point["recall"]),
            points(point["change"]),
        ]
        for kind, disturbance in subject.disturbances.items()
        for point in of_subject["disturbances"].get(kind, ())
    ]
    return [
        f"## {subject.title}",
        f"{subject.about}: {undisturbed['pairs']} breasts, {undisturbed['boxes']} boxes, "
        f"IoU ≥ {subject.iou:g}, [protocol `{subject.protocol}`](evaluation.md#protocols). "
        f"{summary(name, of_subject, single)}",
        table(["disturbance", "level", f"R@{RATE}", "change in points"], lines),
    ]


def page(content: Mapping[str, Any], singles: Mapping[str, Any]) -> str:
    """The Markdown."""
    meaning = [
        f"- *{disturbance.title}*: {' '.join((disturbance.change.__doc__ or '').split()).replace('``', '`')}"
        for disturbance in FILM_DISTURBANCES.values()
    ]
    parts = [
        "# Robustness",
        f"![R@{RATE} of the shipped models under disturbances](images/robustness.png)",
        "What the shipped models lose when their input is not as it should be. "
        f"R@{RATE} is the recall of boxes in % at {RATE} false positives per image, with 95% intervals from a"
        " bootstrap over patients. A change is from the undisturbed pairs, in the same resamples.",
        f"```bash\n{COMMAND}\n```",
        "disturbs the pairs, evaluates each copy by the bundle's `evaluating`, and writes this page. Without "
        "`--film` it evaluates the phantom model alone.",
    ]
    for name, of_subject in content.items():
        parts += part(name, of_subject, singles.get(name))
    parts += ["## The disturbances", "\n".join(meaning)]
    return "\n\n".join(parts) + "\n"


def options_of(words: Sequence[str]) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--film", type=Path, metavar="DIR", help="films with a datalist, for the film model")
    parser.add_argument(
        "--output",
        type=Path,
        default=ROOT / "output" / "robustness",
        help="folder of the runs (output/robustness)",
    )
    parser.add_argument("--docs", type=Path, default=ROOT / "docs", help="folder of the page (docs)")
    parser.add_argument(
        "--pairs",
        type=int,
        default=3000,
        help="pairs of the phantom, a quarter of them in the test section (3000)",
    )
    parser.add_argument("--page", action="store_true", help="only write the page, from the kept numbers")
    parser.add_argument("words", nargs="*", help="after --: options of every command of the bundle")
    options = parser.parse_args(words)
    options.output, options.docs = options.output.absolute(), options.docs.absolute()
    return options


def main(words: Sequence[str]) -> None:
    """Evaluate what is missing, and write the page."""
    options = options_of(words)
    file = options.docs / "robustness.json"
    if not options.page:
        make_phantom(options.output / "data_phantom", PhantomSettings(options.pairs))
        (options.docs / "images").mkdir(parents=True, exist_ok=True)
        evaluate_missing("phantom", options.output / "data_phantom", options, file)
        if options.film:
            evaluate_missing("film", options.film.absolute(), options, file)
    content = {name: read(file)[name] for name in SUBJECTS if name in read(file)}
    singles = {name: alone(SUBJECTS[name], options.docs / "evidence" / "runs") for name in content}
    draw(content, singles, options.docs / "images" / "robustness.png")
    (options.docs / "robustness.md").write_text(page(content, singles), encoding="utf-8")
    print(f"written to {options.docs / 'robustness.md'}")


if __name__ == "__main__":
    main(sys.argv[1:])
