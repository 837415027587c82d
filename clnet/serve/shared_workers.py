"""The steps shared out among nodes by procrastinate, a job queue in PostgreSQL.

Every node offers what is due as jobs, again and again; a lock on the name of a job keeps it from waiting
twice, and one on the study keeps two nodes from working on it, even if what is being analysed is offered.
Jobs of a node that has died, whose heartbeat has stopped, are dropped and so offered again. When and how
often a step is tried again is up to the ledger, as it is without PostgreSQL.
"""

import asyncio
import threading
import time
from contextlib import suppress

import psycopg
from procrastinate import App, PsycopgConnector, SyncPsycopgConnector
from procrastinate.exceptions import AlreadyEnqueued
from procrastinate.jobs import Status

from clnet.serve.journal import warn
from clnet.serve.ledger import Ledger
from clnet.serve.steps import Steps

HEARTBEAT_SECONDS, DEAD_SECONDS = 5.0, 20.0
SENDERS = 4


class SharedWorkers:
    """Works for this node on jobs of all nodes.

    Args:
        ledger: the queue.
        steps: what is to be done.
        address: of the database.
    """

    def __init__(self, ledger: Ledger, steps: Steps, address: str) -> None:
        self._ledger, self._steps, self._address = ledger, steps, address
        self._offers = App(connector=SyncPsycopgConnector(conninfo=address))
        self._loop: asyncio.AbstractEventLoop | None = None
        self._work: asyncio.Task[None] | None = None
        self._is_set_up = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), name="jobs")

    def start(self) -> None:
        """Make the tables, if they are missing, and begin."""
        self._offers.open()
        with psycopg.connect(self._address) as connection:
            connection.execute("SELECT pg_advisory_xact_lock(24)")  # two nodes may start at once
            found = connection.execute("SELECT to_regclass('procrastinate_jobs')").fetchone()
            if found is not None and found[0] is None:
                self._offers.schema_manager.apply_schema()
        self._thread.start()

    def is_alive(self) -> bool:
        """Whether jobs are worked on."""
        return self._thread.is_alive()

    def offer(self) -> None:
        """Make jobs of what is due."""
        now = time.time()
        for study in self._ledger.due_analyses(now):
            name = f"analyse {study.study_id} {study.images}"
            self._defer("analyse", name, study.study_id, study.images, priority=study.priority)
        for delivery in self._ledger.due_deliveries(now):
            name = f"send {delivery.study_id} {delivery.images} {delivery.destination}"
            self._defer("send", name, delivery.study_id, delivery.images, destination=delivery.destination)

    def stop(self) -> None:
        """End after the steps that are being done."""
        if self._thread.is_alive():
            self._is_set_up.wait()
            if self._loop is not None and self._work is not None:
                with suppress(RuntimeError):  # the loop has just ended by itself
                    self._loop.call_soon_threadsafe(self._work.cancel)
            self._thread.join()
        self._offers.close()

    def _defer(
        self, task: str, name: str, study_id: str, images: int, priority: int = 0, **more: str
    ) -> None:
        # One study is analysed once at a time; its results may go to several destinations at a time.
        lock = study_id if task == "analyse" else name
        job = self._offers.configure_task(task, queue=task, lock=lock, queueing_lock=name, priority=priority)
        with suppress(AlreadyEnqueued):
            job.defer(study_id=study_id, images=images, **more)

    async def _run(self) -> None:
        app = App(connector=PsycopgConnector(conninfo=self._address))

        @app.task(name="analyse", queue="analyse")
        def analyse(study_id: str, images: int) -> None:
            self._steps.analyse(study_id, images)

        @app.task(name="send", queue="send")
        def send(study_id: str, images: int, destination: str) -> None:
            due = self._ledger.due_deliveries(time.time(), destination, limit=10**6)
            for delivery in due:
                if (delivery.study_id, delivery.images) == (study_id, images):
                    self._steps.send(delivery)

        self._loop = asyncio.get_running_loop()
        try:
            async with app.open_async():
                self._work = asyncio.ensure_future(self._work_on(app))
                self._is_set_up.set()
                with suppress(asyncio.CancelledError):
                    await self._work
        finally:
            self._is_set_up.set()

    async def _work_on(self, app: App) -> None:
        async def work(queue: str, concurrency: int) -> None:
            await app.run_worker_async(
                queues=[queue],
                concurrency=concurrency,
                fetch_job_polling_interval=1.0,
                install_signal_handlers=False,
                delete_jobs="always",
                update_heartbeat_interval=HEARTBEAT_SECONDS,
                stalled_worker_timeout=DEAD_SECONDS,
            )

        await asyncio.gather(work("analyse", 1), work("send", SENDERS), self._take_over(app))

    async def _take_over(self, app: App) -> None:
        """Drop jobs of nodes that have died: what they were about is due, and is offered again.

        To run such a job again would not do: one that was offered since waits under the same name.
        """
        while True:
            try:
                for job in await app.job_manager.get_stalled_jobs(seconds_since_heartbeat=DEAD_SECONDS):
                    await app.job_manager.finish_job(job, Status.FAILED, delete_job=True)
                    warn("job of a node that died", study=job.task_kwargs.get("study_id"))
            except Exception as error:  # such as another node that was faster
                warn("jobs not looked at", error=type(error).__name__)
            await asyncio.sleep(HEARTBEAT_SECONDS)
