"""The paper's tables on the phantom, and ours: trains, evaluates, and writes docs/evidence.md.

Finished runs are kept in docs/evidence/runs and not repeated; a run that was cut off goes on from its last
checkpoint. Whatever stands behind -- goes to every command of the bundle.
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
    """What the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--seeds", type=int, default=2, help="of components and match learning (2)")
    parser.add_argument("--other-seeds", type=int, default=1, help="of the other tables (1)")
    parser.add_argument("--budget", type=int, default=12, metavar="EPOCHS", help="of each training (12)")
    parser.add_argument("--only", nargs="+", choices=list(TABLES), metavar="TABLE", help=", ".join(TABLES))
    parser.add_argument("--jobs", type=int, default=2, help="runs at a time, one thread each (2)")
    parser.add_argument("--output", type=Path, default=ROOT / "output" / "ablation", help="output/ablation")
    parser.add_argument("--docs", type=Path, default=ROOT / "docs", help="where the page is written (docs)")
    parser.add_argument("--pairs", type=int, default=3000, help="of the phantom (3000)")
    parser.add_argument("--resamples", type=int, default=2000, help="of the bootstrap (2000)")
    parser.add_argument("--page", action="store_true", help="write the page of what is there; train nothing")
    parser.add_argument("words", nargs="*", help=argparse.SUPPRESS)
    options = parser.parse_args(words)
    options.output, options.docs = options.output.absolute(), options.docs.absolute()
    return options


def wanted(options: argparse.Namespace) -> Iterator[tuple[str, int]]:
    """Settings and seeds in the order in which they are run, each once; the main tables first.

    What is only evaluated has as many seeds as what it evaluates.
    """
    tables = [TABLES[name] for name in options.only or TABLES]
    seen = set()
    for many in (True, False):
        for seed in range(max(options.seeds, options.other_seeds)):
            for row in [row for table in tables if table.many_seeds == many for row in table.rows]:
                several = many or SETTINGS[row.setting].trained_as
                run = (row.setting, seed)
                if run not in seen and seed < (options.seeds if several else options.other_seeds):
                    seen.add(run)
                    yield run


def parent_run(output: Path, name: str) -> str:
    """The MLflow run that all others are listed under: the one of this folder, or a new one."""
    store, file = MlflowStore(output), output / "mlflow_parent_run"
    known = file.read_text().strip() if file.exists() else ""
    run = MlflowRun.find(store.client(), known) if known else None
    if run is None:
        run = MlflowRun.create(store.client(), EXPERIMENT, name, {"kind": "ablation"}, store.files_at)
        file.write_text(f"{run.run_id}\n")
    return run.run_id


def one(plan: Plan, call: Any, runs_folder: Path) -> dict[str, Any]:
    """Do all of a run, keep its result, and give it."""
    train(plan, call)
    content = result(plan, evaluate(plan, call))
    write_run(content, runs_folder, str(plan))
    return content


def say(words: str) -> None:
    """A line of progress."""
    print(f"{time.strftime('%H:%M:%S')}  {words}", flush=True)


def run_all(plans: Sequence[Plan], jobs: int, runs_folder: Path, held: int) -> list[str]:
    """Run what is wanted, some at a time; gives what failed.

    A row that takes the weights of another waits until that is trained.
    """
    call, stop = shell(ENVIRONMENT, (held,))
    failed, done, began = [], 0, time.monotonic()
    waiting, running = list(plans), dict[Future[dict[str, Any]], Plan]()
    pool = ThreadPoolExecutor(jobs)
    try:
        while waiting or running:
            for plan in list(waiting):
                busy = {other.folder for other in running.values()}
                if len(running) < jobs and plan.folder not in busy:
                    waiting.remove(plan)
                    running[pool.submit(one, plan, call, runs_folder)] = plan
                    say(f"begun     {plan}")
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
    """Run whatever is not kept yet; gives what failed."""
    options.output.mkdir(parents=True, exist_ok=True)
    # Commands that outlive this process hold the lock, too: two must not write to one run.
    lock = (options.output / "lock").open("w")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        sys.exit(f"ablation: another one is at work in {options.output}; wait for it, or end it")
    names = list(wanted(options))
    folders = make_data(options.output, options.pairs, {SETTINGS[name].data for name, _ in names})
    fingerprints = {name: data_fingerprint(folder) for name, folder in folders.items()}
    kept = read_runs(runs_folder, options.budget)
    words = ("--phantom_pairs", str(options.pairs), *options.words)
    plans = []
    parent = parent_run(options.output, f"ablation-{options.budget}epochs")
    for name, seed in names:
        data = SETTINGS[name].data
        plan = Plan(name, seed, options.budget, options.output, folders[data], words, parent)
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
    """Train what is missing, then write the page."""
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
        sys.exit("ablation: not finished:\n" + "\n".join(failed))


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ablation: ended; the same command goes on"))
    main(sys.argv[1:])
