"""The node: everything that `clnet serve` runs, from start to end."""

import fcntl
import math
import os
import threading
import time
from pathlib import Path

from clnet.predict.loading import reason_of
from clnet.serve.analysis import Analyser
from clnet.serve.intake import Intake
from clnet.serve.journal import Audit, log, warn
from clnet.serve.ledger import UNFINISHED, Ledger
from clnet.serve.local_workers import LocalWorkers
from clnet.serve.metrics import Metrics
from clnet.serve.receiver import Receiver
from clnet.serve.settings import ServeError, ServeSettings
from clnet.serve.shared_workers import SharedWorkers
from clnet.serve.sources import Source
from clnet.serve.spool import GIGABYTE, MEGABYTE, RefusedError, Spool
from clnet.serve.steps import Steps
from clnet.serve.web import Web

TICK_SECONDS, CLEANING_SECONDS = 0.25, 60
ABANDONED_SECONDS = 3600  # after which files of a process on another machine are taken for abandoned
DRAIN = "drain"
SECONDS_PER_DAY = 86400


class Node:
    """A DICOM node.

    Args:
        settings: what it does.
        listens: whether it takes studies; if not, it only works on those of a shared queue.
    """

    def __init__(self, settings: ServeSettings, listens: bool = True) -> None:
        self._settings, self._listens = settings, listens
        self._started, self._stop = time.time(), threading.Event()
        settings.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._ledger = Ledger(settings.database)
        self._drained_before = self._ledger.note(DRAIN)
        if not self._ledger.is_shared:
            if not listens:
                raise ServeError(
                    "--worker needs a queue that several nodes share: set queue to postgresql://…"
                )
            self._lock = _lock(settings.folder)
        self._spool = Spool(
            settings.folder,
            self._ledger,
            settings.limits.object_mb * MEGABYTE,
            settings.limits.free_gb * GIGABYTE,
            settings.secondary_capture,
        )
        self._audit, metrics = Audit(settings.folder / "audit"), Metrics()
        self._intake = Intake(self._spool, metrics, self._audit)
        steps = Steps(settings, self._ledger, self._spool, Analyser(settings), metrics, self._audit)
        self._workers = self._workers_for(steps)
        self._receiver = Receiver(settings.dicom, self._intake, self._is_draining)
        self._web = Web(settings.http, self._ledger, self._intake, metrics, self._audit, self._problems)
        self._polls = [
            threading.Thread(target=self._poll, args=(source,), name="poll")
            for source in (
                Source(poll, self._intake, self._ledger, self._takes_no_more)
                for poll in (settings.poll if listens else ())
            )
        ]

    def run(self) -> None:
        """Work until it is stopped, or until the queue is drained."""
        self._spool.clean(ABANDONED_SECONDS if self._ledger.is_shared else 0)
        try:
            self._workers.start()
            if self._listens:
                self._web.start()
                self._receiver.start()
            for thread in self._polls:
                thread.start()
            dicom, http = self._settings.dicom, self._settings.http
            places = {
                "dicom": f"{dicom.ae_title}@{dicom.host}:{dicom.port}",
                "http": f"{http.host}:{http.port}",
            }
            log("started", **(places if self._listens else {}), process=os.getpid())
            self._watch()
        finally:
            self._stop.set()
            log("stopping")
            if self._listens:
                self._receiver.stop()
                self._web.stop()
            for thread in self._polls:
                if thread.is_alive():
                    thread.join()
            self._workers.stop()
            self._ledger.close()
            self._audit.close()
        log("stopped")

    def stop(self) -> None:
        """Let `run` end after the steps that are being done."""
        self._stop.set()

    def _watch(self) -> None:
        """Close studies that have become quiet, offer work, clean up."""
        cleaned, before = 0.0, math.inf
        while not self._stop.wait(TICK_SECONDS):
            try:
                now = time.time()
                if now < before:  # at the start too: the clock may have been set back since the last run
                    self._started = min(self._started, now)
                    self._ledger.set_back(now, now + self._settings.retries.most_seconds)
                before = now
                if now - self._started > self._settings.quiet_seconds:  # before, nobody could send
                    self._ledger.close_quiet(now - self._settings.quiet_seconds)
                self._ledger.settle(now)
                self._workers.offer()
                if not 0 <= now - cleaned <= CLEANING_SECONDS:
                    cleaned = now
                    self._clean(now)
                if self._is_draining() and self._is_done():
                    log("drained")
                    return
            except Exception as error:  # such as a full disk, or a database that restarts
                warn("watch interrupted", error=type(error).__name__)
                self._stop.wait(1)

    def _clean(self, now: float) -> None:
        """Remove what is old, and what is done if the disk is nearly full."""
        retention, removed = self._settings.retention, 0
        old = self._ledger.finished_studies(now - retention.days * SECONDS_PER_DAY, 1000, with_failed=True)
        for study in old:
            removed += self._spool.remove(study)
        while self._spool.free() < retention.free_gb * GIGABYTE:
            done = self._ledger.finished_studies(now, 1, with_failed=False)
            if not done or not self._spool.remove(done[0]):
                break
            removed += 1
        if self._ledger.is_shared:
            self._spool.clean(ABANDONED_SECONDS)
        if removed:
            log("studies removed", studies=removed)

    def _poll(self, source: Source) -> None:
        while not self._stop.is_set():
            try:
                if not self._takes_no_more():
                    source.poll()
            except Exception as error:
                warn("polling failed", source=source.settings.name, reason=reason_of(error))
            self._stop.wait(source.settings.every_seconds)

    def _problems(self) -> tuple[list[str], list[str]]:
        """Why this node is not alive; and why it takes no studies."""
        dead = [] if self._workers.is_alive() else ["a worker has ended"]
        try:
            self._ledger.counts()
        except Exception as error:
            return [*dead, f"the queue does not answer ({type(error).__name__})"], [
                "the queue does not answer"
            ]
        not_ready = list(dead)
        if self._takes_no_more():
            not_ready.append("draining")
        try:
            self._spool.check_space()
        except RefusedError as refusal:
            not_ready.append(str(refusal))
        return dead, not_ready

    def _is_draining(self) -> bool:
        """Whether somebody asked for it since the start."""
        return self._ledger.note(DRAIN) != self._drained_before

    def _takes_no_more(self) -> bool:
        return self._stop.is_set() or self._is_draining()

    def _is_done(self) -> bool:
        counts = self._ledger.counts()
        return not any(counts[state] for state in UNFINISHED)

    def _workers_for(self, steps: Steps) -> LocalWorkers | SharedWorkers:
        if self._ledger.is_shared:
            return SharedWorkers(self._ledger, steps, self._settings.database)
        names = [destination.name for destination in self._settings.destinations]
        return LocalWorkers(self._ledger, steps, names)


def _lock(folder: Path) -> int:
    """Keep other processes from using a folder, as long as this one lives."""
    lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise ServeError(
            f"{folder}: another clnet serve uses this folder; give this one a folder of its own"
        ) from None
    return lock
