"""One run of the ablation: trained and evaluated by the bundle; an interrupted run is resumed."""

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from ablations.outcome import pack
from ablations.settings import SETTINGS, Setting
from machine import machine

from clnet.data.datalist import read_datalist
from clnet.data.pair import Pair
from clnet.evaluation.cohort import build_cohort
from clnet.evaluation.folder import METRICS_FILE
from clnet.evaluation.metrics import evaluate as evaluate_findings
from clnet.evaluation.protocols import settings_of
from clnet.evaluation.subgroups import groups_of_boxes
from clnet.findings.types import FINDINGS_FILE, Findings, read_findings
from clnet.runs.checkpoints import BEST, LAST
from clnet.runs.command_line import run_config
from clnet.runs.mlflow_run import flatten
from clnet.runs.provenance import data_fingerprint
from clnet.runs.record import read_metrics as read_epochs
from clnet.runs.record import read_run

ROOT = Path(__file__).parents[2]
SECTIONS = ("validation", "test")
EXPERIMENT = "clnet-ablation"
GROUPS = {
    "film": ("subtlety", "density", "size in % of image height", "pathology"),
    "phantom": (),
    "patient": (),
}
"""The groups of boxes that are kept, by the data."""
# What an outcome depends on, besides data and code; everything else in the config is wiring and paths.
DECIDES = (
    *("seed", "size", "batch_size", "accumulation_steps", "amp", "max_epochs", "val_interval"),
    *("learning_rate", "warmup_iterations", "backbone_factor", "matcher_factor", "gradient_clip"),
    *("average_momentum", "max_detections", "duplicate_iou", "validation_iou", "count_duplicates"),
    *("preprocessing", "random_transforms", "finish", "network_def", "loss", "optimizer", "schedule"),
)
PATHS = ("backbone_weights",)
"""Values that differ from machine to machine: only the reference to them is compared."""
Call = Callable[[list[str], Path], None]
"""Runs a command and appends its output to a file."""


class RunError(Exception):
    """A command of a run failed; the message is the last line of its output."""


@dataclass(frozen=True)
class Plan:
    """A run to make.

    Attributes:
        name: the setting.
        seed, epochs: the seed and length of the training.
        output: the folder of all runs, absolute.
        data: the folder of its data set.
        words: further options of every command of the bundle.
        parent_run: the id of the parent run in MLflow.
        start: the run whose weights its training starts from.
    """

    name: str
    seed: int
    epochs: int
    output: Path
    data: Path
    words: tuple[str, ...] = ()
    parent_run: str | None = None
    start: "Plan | None" = None

    def __str__(self) -> str:
        return f"{self.name}-seed{self.seed}"

    @property
    def setting(self) -> Setting:
        """The setting."""
        return SETTINGS[self.name]

    @property
    def folder(self) -> Path:
        """The folder of the training."""
        return self.output / str(self)

    def training(self, resume: bool = False) -> list[str]:
        """The words of the bundle's command that trains."""
        options = {"run_name": self.folder.name, "resume": str(resume)}
        if self.start:
            weights = self.start.folder / BEST
            options["network"] = f"$load_weights(@network_def.to(@device), '{weights}')"
        return self._command("training", (), options)

    def evaluating(self, section: str) -> list[str]:
        """The words of the bundle's command that evaluates on a section."""
        return self._command(
            "evaluating",
            ("evaluate",),
            {
                "run_name": self.evaluated(section).name,
                "section": section,
                "weights": str(self.folder / BEST),
                "attention": "False",
                "report": "False",
            },
        )

    def evaluated(self, section: str) -> Path:
        """The folder of an evaluation."""
        return self.output / f"{self}-{section}"

    def _command(self, run_id: str, configs: tuple[str, ...], options: Mapping[str, str]) -> list[str]:
        files = [f"bundle/configs/{name}.yaml" for name in ("train", *self.setting.configs, *configs)]
        options = {
            "output_dir": str(self.output),
            "dataset_dir": str(self.data),
            "experiment": EXPERIMENT,
            "seed": str(self.seed),
            "max_epochs": str(self.epochs),
            **self.setting.options,
            **({"parent_run": self.parent_run} if self.parent_run else {}),
            **options,
        }
        words = [word for name, value in options.items() for word in (f"--{name}", value)]
        return ["-m", "monai.bundle", "run", run_id, "--config_file", str(files), *words, *self.words]

    def settings(self) -> dict[str, str]:
        """Every value of the config that the outcome depends on, flat."""
        return deciding(run_config(self.training()))


def deciding(config: Mapping[str, Any]) -> dict[str, str]:
    """The values of a config that an outcome depends on, flat; what they refer to stands in their place."""

    def followed(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: followed(part) for name, part in value.items()}
        if isinstance(value, list):
            return [followed(part) for part in value]
        name = value.removeprefix("@") if isinstance(value, str) else value
        return followed(config[name]) if name != value and name in {*config} - {*DECIDES, *PATHS} else value

    return flatten({name: followed(config[name]) for name in DECIDES if name in config})


def changes(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """How settings differ.

    Settings that only one side has do not count: one that was added to the config since is assumed to have
    had its present value all along. Names of classes and expressions do not count either, since code may be
    renamed; nor do references, since what they stand for is compared by itself or is a path.
    """
    return [
        f"{name} was {before[name]}, is {value}"
        for name, value in now.items()
        if before.get(name, value) != value
        and not (name.endswith("_target_") or value.startswith(("$", "@")))
    ]


def shell(environment: Mapping[str, str], held: tuple[int, ...] = ()) -> tuple[Call, Callable[[], None]]:
    """A function that runs a command, and one that ends those still running.

    Args:
        environment: environment variables of the commands.
        held: file descriptors that they keep open.
    """
    running: set[subprocess.Popen[bytes]] = set()

    def call(words: list[str], log: Path) -> None:
        with log.open("ab") as said:
            process = subprocess.Popen(
                [sys.executable, "-W", "ignore", *words],
                cwd=ROOT,
                env={**os.environ, **environment},
                stdout=said,
                stderr=said,
                pass_fds=held,
            )
            running.add(process)
            try:
                code = process.wait()
            finally:
                running.discard(process)
        if code:
            raise RunError(f"{last_line(log)} (log: {log})")

    def stop() -> None:
        for process in list(running):
            process.terminate()

    return call, stop


def last_line(log: Path) -> str:
    """The last line of a command's output."""
    lines = [line for line in re.split(r"[\r\n]", log.read_text(errors="replace")) if line.strip()]
    return lines[-1].strip() if lines else "no output"


def train(plan: Plan, call: Call) -> None:
    """Train, or resume an interrupted training; does nothing if it is finished."""
    folder, run = plan.folder, read_run(plan.folder)
    same = (
        not changes(deciding(run.get("config", {})), deciding(run_config(plan.training())))
        and run.get("data_fingerprint") == data_fingerprint(plan.data)
        and (folder / LAST).exists()
    )
    if same and run["status"] == "finished":
        return
    if folder.exists() and not same:  # interrupted before its first checkpoint, or with other settings
        shutil.rmtree(folder)
    call(plan.training(resume=same), plan.output / f"{folder.name}.log")


def evaluate(plan: Plan, call: Call) -> dict[str, float]:
    """Evaluate on both sections; returns the seconds that each took, 0 if it was done before."""
    seconds = {}
    for section in SECTIONS:
        folder, began = plan.evaluated(section), time.monotonic()
        written = folder / METRICS_FILE  # the last of its files
        if not written.exists() or written.stat().st_mtime < (plan.folder / BEST).stat().st_mtime:
            shutil.rmtree(folder, ignore_errors=True)
            call(plan.evaluating(section), plan.output / f"{plan}.log")
        seconds[section] = round(time.monotonic() - began, 1)
    return seconds


def result(plan: Plan, evaluation_seconds: Mapping[str, float]) -> dict[str, Any]:
    """What is kept of a finished run: where it is from, its validations, and outcomes for the tables."""
    trained, datalist = read_run(plan.folder), read_datalist(plan.data)
    epochs = [line for line in read_epochs(plan.folder) if line["kind"] == "validation"]
    return {
        "setting": plan.name,
        "seed": plan.seed,
        "epochs": plan.epochs,
        "git_commit": trained.get("git_commit") or "not in a checkout",
        "data_fingerprint": data_fingerprint(plan.data),
        "machine": machine(),
        "versions": trained["versions"],
        "training_seconds": round(training_seconds(plan.folder), 1),
        "training_cpu_seconds": training_cpu_seconds(plan.folder),
        "best": trained.get("best"),
        "validation": {line["epoch"]: round(line["metrics"]["mean_recall"], 4) for line in epochs},
        "settings": plan.settings(),
        "pairs": {name: len(pairs) for name, pairs in datalist.sections.items()},
        "sections": {
            section: {
                "seconds": evaluation_seconds[section],
                **counted(
                    datalist[section],
                    read_findings(plan.evaluated(section) / FINDINGS_FILE),
                    GROUPS[plan.setting.data],
                ),
            }
            for section in SECTIONS
        },
    }


def counted(pairs: Sequence[Pair], findings: Findings, groups: Sequence[str]) -> dict[str, Any]:
    """What is kept of findings, by the rules of protocol film: duplicates are false positives.

    Args:
        pairs: that were looked at.
        findings: in them.
        groups: of boxes, by their names in `clnet.evaluation.subgroups`.

    Returns:
        ``outcome`` from `pack`, and ``only_in_one_view``, precision and recall of links that say so.
    """
    evaluation = evaluate_findings(pairs, findings, settings_of("film", resamples=1))
    labels = groups_of_boxes(build_cohort(pairs, findings))
    links = evaluation.metrics["links"] or {}
    return {
        "outcome": pack(evaluation.record, {name: labels[name] for name in groups}),
        "only_in_one_view": {
            key: {name: of["only_in_one_view"][name]["value"] for name in ("precision", "recall")}
            for key, of in links.items()
        },
    }


def training_seconds(folder: Path) -> float:
    """The time from each start of a training to its last record, summed; validation included."""
    run = read_run(folder)
    ended = {"time": datetime.fromisoformat(run["ended"]).timestamp()}
    return sum(
        max((line["time"] for line in lines), default=start) - start
        for start, lines in lines_by_start(run, [*read_epochs(folder), ended])
    )


def training_cpu_seconds(folder: Path) -> float | None:
    """The CPU time of all starts of a training; None if an older record lacks it."""
    total = 0.0
    for _, lines in lines_by_start(read_run(folder), read_epochs(folder)):
        if any("cpu_seconds" not in line for line in lines):
            return None
        total += max((line["cpu_seconds"] for line in lines), default=0.0)
    return total


def lines_by_start(
    run: Mapping[str, Any], lines: Sequence[Mapping[str, Any]]
) -> Iterator[tuple[float, list[Mapping[str, Any]]]]:
    """The time of each start of a training, and the lines of its record written after it."""
    starts = [datetime.fromisoformat(start["time"]).timestamp() for start in run["starts"]]
    for start, until in zip(starts, [*starts[1:], float("inf")], strict=True):
        yield start, [line for line in lines if start <= line["time"] < until]
