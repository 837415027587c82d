"""`clnet serve`: a DICOM node that analyses what it is sent; and the commands to operate it."""

import argparse
import importlib.util
import signal
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

from clnet.errors import ClnetError

if TYPE_CHECKING:
    from clnet.serve.ledger import Ledger

_NEEDED = (
    *("pynetdicom", "dicomweb_client", "prometheus_client", "procrastinate", "psycopg", "pydantic"),
    *("python_multipart", "sqlalchemy", "starlette", "uvicorn"),
)
SHOWN = 20


class MissingExtraError(ClnetError):
    """Packages that `clnet serve` needs beyond those of clnet."""


class StudyError(ClnetError):
    """A study was named where none can be."""


def add_serve(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `clnet serve`."""
    command = commands.add_parser(
        "serve",
        help="run a DICOM node: take studies from a PACS, analyse them, send the reports back",
        description="Take studies by C-STORE, STOW-RS or from an archive that is polled; analyse each when "
        "it is complete; send the DICOM reports on. Nothing that was accepted is lost when the process is "
        "killed.",
    )
    command.add_argument(
        "action",
        nargs="?",
        choices=("run", "status", "retry", "drain"),
        default="run",
        help="run the node (default); show the queue; try failed studies again; "
        "finish what is in the queue, take nothing more, and end",
    )
    command.add_argument("study", nargs="?", metavar="STUDY", help="with retry: only this study")
    command.add_argument("--config", type=Path, metavar="FILE", help="settings, see docs/serve.md")
    command.add_argument(
        "--worker",
        action="store_true",
        help="take no studies, only work on those of a queue in PostgreSQL",
    )
    command.set_defaults(run=_serve)


def _serve(options: argparse.Namespace) -> int:
    if options.study is not None and options.action != "retry":
        raise StudyError(
            f"clnet serve {options.action} takes no study, only retry does; {options.study!r} was given"
        )
    missing = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise MissingExtraError(f"{missing[0]} is not installed; run: pip install 'clnet[serve]'")
    from clnet.serve.settings import read_settings

    settings = read_settings(options.config)
    if options.action == "run":
        from clnet.serve.journal import write_log_to_stderr
        from clnet.serve.node import Node

        write_log_to_stderr()
        node = Node(settings, listens=not options.worker)
        for number in (signal.SIGTERM, signal.SIGINT):
            # A handler must not wait for a lock that the code it interrupts may hold: another thread stops.
            signal.signal(number, lambda *_: threading.Thread(target=node.stop).start())
        node.run()
        return 0

    from clnet.serve.ledger import Ledger
    from clnet.serve.settings import ServeError

    if settings.queue is None and not settings.folder.is_dir():
        raise ServeError(
            f"{settings.folder}: no such folder; has clnet serve been started with these settings?"
        )
    ledger = Ledger(settings.database)
    try:
        return {"status": _status, "retry": _retry, "drain": _drain}[options.action](ledger, options)
    finally:
        ledger.close()


def _status(ledger: "Ledger", _: argparse.Namespace) -> int:
    counts = ledger.counts()
    print("  ".join(f"{state} {number}" for state, number in counts.items()))
    failed, last = ledger.last_studies(SHOWN, "failed"), ledger.last_studies(SHOWN)
    for study in dict.fromkeys([*failed, *last]):
        row = f"{study.study_id}  {study.state:<10}{study.images:>3} images  {study.reason}"
        print(row.rstrip())
    return int(bool(counts["failed"]))


def _retry(ledger: "Ledger", options: argparse.Namespace) -> int:
    number = ledger.retry(options.study)
    print(f"failed studies that are tried again: {number}")
    return int(options.study is not None and not number)


def _drain(ledger: "Ledger", _: argparse.Namespace) -> int:
    ledger.set_note("drain", str(time.time()))
    counts = ledger.counts()
    left = sum(counts[state] for state in ("receiving", "complete", "analysing", "sending"))
    print(f"no more studies are taken; {left} are left to finish")
    return 0
