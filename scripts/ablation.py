"""Train and evaluate the rows of the evidence, on films and on the phantom, and write docs/evidence.md.

Finished runs are kept in docs/evidence/runs and not repeated; an interrupted run resumes from its last
checkpoint. Options after -- are passed to every command of the bundle.
"""

import argparse
import fcntl
import signal
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

from ablations import page
from ablations.data import make_data
from ablations.evidence import BESIDE, evidence
from ablations.kept import differences, read_runs, write_run
from ablations.runs import EXPERIMENT, ROOT, Plan, RunError, evaluate, result, shell, train
from ablations.settings import SETTINGS
from ablations.tables import TABLES
from page_text import write_between_marks
from record_files import read

from clnet.runs.mlflow_run import MlflowRun, MlflowStore
from clnet.runs.provenance import data_fingerprint

COMMAND = "./scripts/ablation --film output/cbis-ddsm --backbone-weights data/resnet18.pth"
STARTING = threading.Lock()
"""Runs that start from the same weights wait until one of them has trained those."""
ENVIRONMENT = {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive"}


def options_of(words: Sequence[str]) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--seeds", type=int, help="seeds of each row, at most (as many as its table says)")
    parser.add_argument("--epochs", type=int, help="of each training (24 on the phantom, 16 on films)")
    parser.add_argument(
        "--only", nargs="+", choices=list(TABLES), metavar="TABLE", help=f"tables to run: {', '.join(TABLES)}"
    )
    parser.add_argument("--jobs", type=int, default=2, help="parallel runs, one thread each (2)")
    parser.add_argument(
        "--output",
        type=Path,
        default=ROOT / "output" / "ablation",
        help="folder of the runs (output/ablation)",
    )
    parser.add_argument("--docs", type=Path, default=ROOT / "docs", help="folder of the pages (docs)")
    parser.add_argument(
        "--film", type=Path, metavar="DIR", help="films with a datalist; without it their tables are left out"
    )
    parser.add_argument(
        "--backbone-weights", type=Path, metavar="FILE", help="ImageNet weights of the network of the films"
    )
    parser.add_argument("--pairs", type=int, default=3000, help="pairs of the phantom (3000)")
    parser.add_argument("--resamples", type=int, default=2000, help="bootstrap resamples (2000)")
    parser.add_argument("--page", action="store_true", help="only write the pages, from the kept runs")
    parser.add_argument("words", nargs="*", help=argparse.SUPPRESS)
    options = parser.parse_args(words)
    options.output, options.docs = options.output.absolute(), options.docs.absolute()
    return options


def wanted(options: argparse.Namespace) -> Iterator[tuple[str, int]]:
    """Settings and seeds in the order in which they are run: first seeds first."""
    rows = [row for name in options.only or TABLES for row in TABLES[name].rows]
    for seed in range(max(row.seeds for row in rows)):
        for row in rows:
            is_there = SETTINGS[row.setting].data != "film" or options.film is not None
            if is_there and seed < min(row.seeds, options.seeds or row.seeds):
                yield row.setting, seed


def parent_run(output: Path, name: str) -> str:
    """The id of the parent run in MLflow: the one of this folder, or a new one."""
    store, file = MlflowStore(output), output / "mlflow_parent_run"
    known = file.read_text().strip() if file.exists() else ""
    run = MlflowRun.find(store.client(), known) if known else None
    if run is None:
        run = MlflowRun.create(store.client(), EXPERIMENT, name, {"kind": "ablation"}, store.files_at)
        file.write_text(f"{run.run_id}\n")
    return run.run_id


def one(plan: Plan, call: Any, runs_folder: Path) -> dict[str, Any]:
    """Train, evaluate and keep one run; returns what is kept."""
    if plan.start:
        with STARTING:
            train(plan.start, call)
    train(plan, call)
    content = result(plan, evaluate(plan, call))
    write_run(content, runs_folder, str(plan))
    return content


def say(words: str) -> None:
    """Print a line of progress."""
    print(f"{time.strftime('%H:%M:%S')}  {words}", flush=True)


def run_all(plans: Sequence[Plan], jobs: int, runs_folder: Path, held: int) -> list[str]:
    """Run the plans, some in parallel; returns what failed."""
    call, stop = shell(ENVIRONMENT, (held,))
    failed, done, began = [], 0, time.monotonic()
    waiting, running = list(plans), dict[Future[dict[str, Any]], Plan]()
    pool = ThreadPoolExecutor(jobs)
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                plan = waiting.pop(0)
                running[pool.submit(one, plan, call, runs_folder)] = plan
                say(f"started   {plan}")
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                plan, done = running.pop(future), done + 1
                left = (time.monotonic() - began) / done * (len(plans) - done)
                try:
                    content = future.result()
                except (RunError, OSError, ValueError) as error:
                    failed.append(f"{plan}: {error}")
                    say(f"FAILED    {failed[-1]}")
                    continue
                best = content["best"]
                say(
                    f"finished  {plan}: mean recall {100 * best['value']:.1f}% in validation, epoch "
                    f"{best['epoch']}; {content['training_seconds'] / 60:.1f} min of training; "
                    f"{done} of {len(plans)} done, about {left / 60:.0f} min left"
                )
    finally:
        stop()
        pool.shutdown()
    return failed


def plan_of(
    name: str, seed: int, options: argparse.Namespace, folders: Mapping[str, Path], parent: str
) -> Plan:
    """The run of a setting and a seed, with the run that it starts from."""
    setting = SETTINGS[name]
    words = ["--phantom_pairs", str(options.pairs), *options.words]
    if "film" in setting.configs and options.backbone_weights:
        words += ["--backbone_weights", str(options.backbone_weights)]
    return Plan(
        name,
        seed,
        options.epochs or setting.epochs,
        options.output,
        folders[setting.data],
        tuple(words),
        parent,
        plan_of(setting.start, 0, options, folders, parent) if setting.start else None,
    )


def train_missing(options: argparse.Namespace, runs_folder: Path) -> list[str]:
    """Run whatever is not kept yet; returns what failed."""
    options.output.mkdir(parents=True, exist_ok=True)
    # Commands that outlive this process also hold the lock: two must not write to one run.
    lock = (options.output / "lock").open("w")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        sys.exit(f"ablation: another one is running in {options.output}; wait for it or stop it")
    names = list(wanted(options))
    settings = [SETTINGS[name] for name, _ in names]
    settings += [SETTINGS[setting.start] for setting in settings if setting.start]
    folders = make_data(options.output, options.pairs, {setting.data for setting in settings}, options.film)
    fingerprints = {name: data_fingerprint(folder) for name, folder in folders.items()}
    kept = read_runs(runs_folder)
    plans = []
    parent = parent_run(options.output, "ablation")
    for name, seed in names:
        plan = plan_of(name, seed, options, folders, parent)
        known = kept.get((name, seed))
        changed = list(differences(known.content, plan, fingerprints[plan.setting.data])) if known else []
        if known and not changed:
            say(f"kept      {plan}")
            continue
        if changed:
            say(f"again     {plan}: {'; '.join(changed)}")
        plans.append(plan)
    failed = run_all(plans, options.jobs, runs_folder, lock.fileno())
    MlflowRun(MlflowStore(options.output).client(), parent).end("FAILED" if failed else "FINISHED")
    return failed


def main(words: Sequence[str]) -> None:
    """Train what is missing, then write the pages."""
    options = options_of(words)
    runs_folder = options.docs / "evidence" / "runs"
    failed = [] if options.page else train_missing(options, runs_folder)
    runs = read_runs(runs_folder)
    files = {name: options.docs.parent / file for name, file in BESIDE.items()}
    beside = {name: read(file) for name, file in files.items() if file.exists()}
    content = evidence(runs, COMMAND, options.resamples, beside)
    page.write(content, options.docs)
    if options.docs == ROOT / "docs":
        write_between_marks(ROOT / "README.md", "evidence", page.readme_passage(content))
    say(f"written   {options.docs / 'evidence.md'}, of {len(runs)} runs")
    if failed:
        sys.exit("ablation: failed:\n" + "\n".join(failed))


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ablation: stopped; the same command resumes"))
    main(sys.argv[1:])
