"""The steps done by threads of the one process that uses a queue in SQLite."""

import threading
import time
from collections.abc import Callable

from clnet.serve.journal import warn
from clnet.serve.ledger import Ledger
from clnet.serve.steps import Steps

IDLE_SECONDS = 0.2


class LocalWorkers:
    """One thread analyses; one per destination sends, so that none waits for one that is down.

    Args:
        ledger: the queue.
        steps: what is to be done.
        destinations: their names.
    """

    def __init__(self, ledger: Ledger, steps: Steps, destinations: list[str]) -> None:
        self._ledger, self._steps, self._destinations = ledger, steps, destinations
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._repeat, args=(self._analyse,), name="analyse")]
        for name in destinations:
            self._threads.append(
                threading.Thread(target=self._repeat, args=(lambda name=name: self._send(name),), name="send")
            )

    def start(self) -> None:
        """Begin."""
        for thread in self._threads:
            thread.start()

    def is_alive(self) -> bool:
        """Whether all threads run."""
        return all(thread.is_alive() for thread in self._threads)

    def offer(self) -> None:
        """The threads see by themselves what is due, but no thread is for a destination that was removed."""
        for delivery in self._ledger.due_deliveries(time.time()):
            if delivery.destination not in self._destinations:
                self._steps.send(delivery)

    def stop(self) -> None:
        """End after the steps that are being done."""
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _repeat(self, step: Callable[[], bool]) -> None:
        while not self._stop.is_set():
            try:
                done = step()
            except Exception as error:  # such as a full disk: the queue cannot be written
                warn("step interrupted", error=type(error).__name__)
                self._stop.wait(1)
                continue
            if not done:
                self._stop.wait(IDLE_SECONDS)

    def _analyse(self) -> bool:
        # Nothing is being analysed now, so that what says so was left behind, by a process that was killed.
        due = self._ledger.due_analyses(time.time(), limit=1)
        for study in due:
            self._steps.analyse(study.study_id, study.images)
        return bool(due)

    def _send(self, destination: str) -> bool:
        due = self._ledger.due_deliveries(time.time(), destination, limit=1)
        for delivery in due:
            self._steps.send(delivery)
        return bool(due)
