"""Train and evaluate the paper's tables and ours, on the phantom and on films, and write docs/evidence.md.

Finished runs are kept in docs/evidence/runs and not repeated; an interrupted run resumes from its last
checkpoint. Options after -- are passed to every command of the bundle.
"""

import argparse
import fcntl
import shlex
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

from ablations import page
from ablations.data import make_data
from ablations.kept import KeptRun, differences, read_runs, write_run
from ablations.numbers import Numbers
from ablations.runs import EXPERIMENT, ROOT, Plan, RunError, evaluate, result, shell, train
from ablations.settings import SETTINGS
from ablations.tables import TABLES

from clnet.runs.mlflow_run import MlflowRun, MlflowStore
from clnet.runs.provenance import data_fingerprint

ENVIRONMENT = {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive"}
HEADLINE = "recall_iou0.5_fpi0.25"


def options_of(words: Sequence[str]) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--seeds", type=int, default=2, help="seeds of components and match learning (2)")
    parser.add_argument("--other-seeds", type=int, default=1, help="seeds of the other tables (1)")
    parser.add_argument(
        "--budget", type=int, default=12, metavar="EPOCHS", help="epochs of each training (12)"
    )
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
    """Settings and seeds in the order in which they are run, each once; the main tables first."""
    tables = [TABLES[name] for name in options.only or TABLES]
    seen = set()
    for many in (True, False):
        for seed in range(max(options.seeds, options.other_seeds)):
            for row in [row for table in tables if table.many_seeds == many for row in table.rows]:
                run = (row.setting, seed)
                is_wanted = seed < (options.seeds if many else options.other_seeds)
                setting = SETTINGS[row.setting]
                is_wanted &= not setting.removed and (setting.data != "film" or options.film is not None)
                if is_wanted and run not in seen:
                    seen.add(run)
                    yield run


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
                recall = {
                    section: 100 * part["metrics"][f"{section}/{HEADLINE}"]
                    for section, part in content["sections"].items()
                }
                say(
                    f"finished  {plan}: R@0.25 {recall['validation']:.1f}% in validation, "
                    f"{recall['test']:.1f}% in test; {content['training_seconds'] / 60:.1f} min of training; "
                    f"{done} of {len(plans)} done, about {left / 60:.0f} min left"
                )
    finally:
        stop()
        pool.shutdown()
    return failed


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
    folders = make_data(
        options.output, options.pairs, {SETTINGS[name].data for name, _ in names}, options.film
    )
    fingerprints = {name: data_fingerprint(folder) for name, folder in folders.items()}
    kept = read_runs(runs_folder, options.budget)
    words = ("--phantom_pairs", str(options.pairs), *options.words)
    film_words = ("--backbone_weights", str(options.backbone_weights)) if options.backbone_weights else ()
    plans = []
    parent = parent_run(options.output, f"ablation-{options.budget}epochs")
    for name, seed in names:
        data = SETTINGS[name].data
        own_words = (*words, *film_words) if data == "film" else words
        plan = Plan(name, seed, options.budget, options.output, folders[data], own_words, parent)
        known = kept.get((name, seed))
        changed = list(differences(known.content, plan, fingerprints[data])) if known else []
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
    runs: dict[tuple[str, int], KeptRun] = read_runs(runs_folder, options.budget)
    command = shlex.join(
        ["./scripts/ablation", "--seeds", str(options.seeds), "--budget", str(options.budget)]
    )
    page.write(Numbers(runs, options.resamples), options.budget, command, options.docs)
    say(f"written   {options.docs / 'evidence.md'}, of {len(runs)} runs")
    if failed:
        sys.exit("ablation: failed:\n" + "\n".join(failed))


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ablation: stopped; the same command resumes"))
    main(sys.argv[1:])
