"""Train one network at several sites by NVFlare's simulator, at each site alone, and on all data; compare.

Options after -- go to every training and evaluation, such as -- --seed 1.
"""

import argparse
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from ablations.runs import ROOT, shell
from page_text import percent, table, write_between_marks
from record_files import read, write

from clnet.apps.federated.record import FEDERATION
from clnet.apps.federated.shards import write_shards
from clnet.data.datalist import read_datalist
from clnet.evaluation.folder import METRICS_FILE
from clnet.evaluation.protocols import settings_of
from clnet.phantom import PhantomSettings, make_phantom
from clnet.runs.checkpoints import BEST
from clnet.runs.command_line import parsed_options

EXPERIMENT = "clnet-federated"
RATES = ("0.25", "0.5", "1", "2", "4")


def options_of(words: Sequence[str]) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--sites", type=int, default=3, help="number of sites (3)")
    parser.add_argument("--rounds", type=int, default=8, help="of training at each site and averaging (8)")
    parser.add_argument("--local-epochs", type=int, default=1, help="at each site in a round (1)")
    parser.add_argument("--pairs", type=int, default=1000, help="of the phantom, 60%% for training (1000)")
    parser.add_argument("--film", type=Path, metavar="DIR", help="films with a datalist, not the phantom")
    parser.add_argument(
        "--backbone-weights", type=Path, metavar="FILE", help="ImageNet weights of the network of the films"
    )
    parser.add_argument("--jobs", type=int, default=1, help="trainings at once after the federation (1)")
    parser.add_argument(
        "--output", type=Path, default=ROOT / "output" / "federated", help="folder (output/federated)"
    )
    parser.add_argument(
        "--docs", type=Path, metavar="DIR", help="also write the table into DIR/federated.md, and into .json"
    )
    parser.add_argument("words", nargs="*", help=argparse.SUPPRESS)
    options = parser.parse_args(words)
    options.output = options.output.absolute()
    return options


class Comparison:
    """Trainings and evaluations with the same settings.

    Args:
        options: of the command line.
    """

    def __init__(self, options: argparse.Namespace) -> None:
        self.output = options.output
        self.rounds, self.local_epochs = options.rounds, options.local_epochs
        self.configs = ["train.yaml", *(["film.yaml"] if options.film else [])]
        self.protocol = "film" if options.film else "default"
        self.settings = {
            "output_dir": str(options.output / "runs"),
            "experiment": EXPERIMENT,
            **({"backbone_weights": str(options.backbone_weights)} if options.film else {}),
            **parsed_options(options.words),
        }
        self.call, self.stop = shell({})

    def federate(self, datasets: Mapping[str, Path]) -> Path:
        """Train in NVFlare's simulator, each site in a process of its own; returns the server's folder."""
        from clnet.apps.federated.job import make_job  # needs NVFlare

        server, workspace = self.output / "server", self.output / "workspace"
        for folder in (server, workspace):
            shutil.rmtree(folder, ignore_errors=True)
        settings = {**self.settings, "local_epochs": self.local_epochs}
        job = make_job(datasets, [*self.configs, "federated.yaml"], settings, self.rounds, server)
        # NVFlare makes its workspace part of a command, which it splits at spaces.
        with tempfile.TemporaryDirectory() as here:
            try:
                job.simulator_run(f"{here}/workspace", threads=len(datasets), log_config="concise")
            finally:
                shutil.move(f"{here}/workspace", workspace)
        done = len(read(server / FEDERATION)["rounds"]) if (server / FEDERATION).exists() else 0
        if done < self.rounds:
            sys.exit(f"federated: the simulator ended after {done} rounds; its logs are in {workspace}")
        return server

    def train(self, name: str, dataset: Path) -> Path:
        """Train on one data set, as long as a site and validated as often; returns the best weights."""
        epochs = self.rounds * self.local_epochs
        self._run("training", name, [], dataset_dir=dataset, max_epochs=epochs, val_interval=1)
        return self.output / "runs" / name / BEST

    def evaluate(self, name: str, weights: Path, dataset: Path) -> dict[str, Any]:
        """Recall on the test section, at the first IoU of the protocol."""
        plain = {"report": False, "attention": False}
        name = f"evaluate-{name}"
        self._run("evaluating", name, ["evaluate.yaml"], dataset_dir=dataset, weights=weights, **plain)
        iou = settings_of(self.protocol).ious[0]
        recall = read(self.output / "runs" / name / METRICS_FILE)["detection"][f"iou={iou:g}"]["recall"]
        return {rate: recall[rate] for rate in RATES}

    def _run(self, run_id: str, name: str, configs: Sequence[str], **settings: Any) -> None:
        files = str([f"bundle/configs/{config}" for config in (*self.configs, *configs)])
        given = {**self.settings, "run_name": name, **settings}
        words = [word for key, value in given.items() for word in (f"--{key}", str(value))]
        command = ["-m", "monai.bundle", "run", run_id, "--config_file", files, *words]
        self.call(command, self.output / f"{name}.log")


def compare(options: argparse.Namespace, data: Path) -> list[dict[str, Any]]:
    """Train in every way; returns the rows of the table."""
    comparison = Comparison(options)
    sites = write_shards(data, options.sites, options.output / "sites")
    shutil.rmtree(options.output / "runs", ignore_errors=True)
    server = comparison.federate(sites)
    return rows_of(comparison, data, sites, server, options.jobs)


def rows_of(
    comparison: Comparison, data: Path, sites: Mapping[str, Path], server: Path, jobs: int
) -> list[dict[str, Any]]:
    """What training at each site alone and on all data gives, beside the models of a federation."""
    trainings = {**{f"{site}-alone": folder for site, folder in sites.items()}, "all-data-together": data}
    federated = {f"federated-{kind}-round": server / f"{kind}.pt" for kind in ("best", "final")}
    try:
        with ThreadPoolExecutor(jobs) as pool:
            weights = [*pool.map(comparison.train, trainings, trainings.values()), *federated.values()]
            names = [*trainings, *federated]
            recalls = list(pool.map(comparison.evaluate, names, weights, [data] * len(names)))
    finally:
        comparison.stop()
    return [
        {
            "trained": name.replace("-", " "),
            "pairs": len(read_datalist(trainings.get(name, data))["training"]),
            "recall": recall,
        }
        for name, recall in zip(names, recalls, strict=True)
    ]


def passage_of(result: Mapping[str, Any]) -> str:
    """What the page says of a comparison: how long it was, and the table."""
    epochs = "1 epoch" if result["local_epochs"] == 1 else f"{result['local_epochs']} epochs"
    return (
        f"Recall in % of boxes on the {result['test_pairs']} pairs of the test section, "
        f"IoU ≥ {result['iou']:g}, at t false positives per image, with 95% intervals from a bootstrap over "
        f"patients. The federation had {result['rounds']} rounds of {epochs}, and the others as many epochs; "
        f"its best round was {result['best_round']}.\n\n{table_of(result['rows'])}"
    )


def table_of(rows: Sequence[Mapping[str, Any]]) -> str:
    """The rows as Markdown: recall in %, with intervals."""
    heads = ["trained", "pairs", *(f"R@{rate}" for rate in RATES)]
    numbers = [[percent(row["recall"][rate]) for rate in RATES] for row in rows]
    return table(
        heads, [[row["trained"], str(row["pairs"]), *line] for row, line in zip(rows, numbers, strict=True)]
    )


def main(words: Sequence[str]) -> None:
    """Compare, write results.json, print the table."""
    options = options_of(words)
    data = options.film or options.output / "phantom"
    if not options.film:
        make_phantom(data, PhantomSettings(options.pairs))
    report(options, data, compare(options, data))


def report(options: argparse.Namespace, data: Path, rows: list[dict[str, Any]]) -> None:
    """Write results.json, and the page if it is asked for; print the table."""
    kind, protocol = ("film", "film") if options.film else ("phantom", "default")
    result = {
        "rounds": options.rounds,
        "local_epochs": options.local_epochs,
        "best_round": read(options.output / "server" / FEDERATION)["best_round"],
        "iou": settings_of(protocol).ious[0],
        "test_pairs": len(read_datalist(data)["test"]),
        "rows": rows,
    }
    write(options.output / "results.json", result)
    print(table_of(rows))
    if options.docs:
        file = options.docs / "federated.json"
        write(file, {**(read(file) if file.exists() else {}), kind: result})
        write_between_marks(file.with_suffix(".md"), kind, passage_of(result))


if __name__ == "__main__":
    main(sys.argv[1:])
