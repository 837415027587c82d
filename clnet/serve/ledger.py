"""The durable queue: what has been received, and how far each study has come.

::

    receiving → complete → analysing → sending → done
                                     ↘         ↘
                                       failed    failed

A new image takes a study back to ``receiving``, from wherever it is. Every later step says for how many
images it was done, and counts for nothing if there are more by then. So each step can be repeated, and a late
image is never left out.

The tables are in SQLite (in WAL mode, every commit synced to disk) or in PostgreSQL; the statements are the
same. Nothing in them identifies a patient: studies and images are named by digests.
"""

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, create_engine, event, make_url, text
from sqlalchemy.exc import SQLAlchemyError

from clnet.errors import ClnetError

STATES = ("receiving", "complete", "analysing", "sending", "done", "failed")
UNFINISHED = STATES[:4]
BUSY_SECONDS = 30  # how long a connection waits for another one's write

_TABLES = (
    """CREATE TABLE IF NOT EXISTS studies (
        study_id TEXT PRIMARY KEY, state TEXT NOT NULL, images INTEGER NOT NULL, sender TEXT NOT NULL,
        modality TEXT NOT NULL, priority INTEGER NOT NULL, received DOUBLE PRECISION NOT NULL,
        attempts INTEGER NOT NULL, not_before DOUBLE PRECISION NOT NULL, reason TEXT NOT NULL,
        lesions INTEGER NOT NULL, finished DOUBLE PRECISION NOT NULL)""",
    "CREATE INDEX IF NOT EXISTS studies_by_state ON studies (state, not_before)",
    """CREATE TABLE IF NOT EXISTS images (
        study_id TEXT NOT NULL, image_id TEXT NOT NULL, PRIMARY KEY (study_id, image_id))""",
    """CREATE TABLE IF NOT EXISTS deliveries (
        study_id TEXT NOT NULL, images INTEGER NOT NULL, destination TEXT NOT NULL, state TEXT NOT NULL,
        attempts INTEGER NOT NULL, not_before DOUBLE PRECISION NOT NULL, reason TEXT NOT NULL,
        PRIMARY KEY (study_id, images, destination))""",
    "CREATE TABLE IF NOT EXISTS notes (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
)
# A study that is in a state, with as many images as a step was done for.
_STILL = "study_id = :study_id AND images = :images AND state"


class LedgerError(ClnetError):
    """A queue that cannot be opened."""


@dataclass(frozen=True)
class Study:
    """How far a study has come.

    Attributes:
        study_id: 16 hexadecimal digits, a digest of its StudyInstanceUID.
        state: one of `STATES`.
        images: how many have been accepted.
        sender: who sent the last one: an AE title, or the name of another source.
        modality: of the last one.
        priority: studies of a higher one are analysed first.
        received: when the last image was accepted, in seconds since 1970.
        attempts: how often its analysis has begun.
        not_before: when it may begin again.
        reason: why it failed, or what is unusual about it.
        lesions: how many were found.
        finished: when it was done or failed; 0 before.
    """

    study_id: str
    state: str
    images: int
    sender: str
    modality: str
    priority: int
    received: float
    attempts: int
    not_before: float
    reason: str
    lesions: int
    finished: float


@dataclass(frozen=True)
class Delivery:
    """The results of a study on their way to a destination.

    Attributes:
        study_id, images: which results.
        destination: its name.
        state: "pending", "done" or "failed".
        attempts: how often they have been sent.
        not_before: when they may be sent again, in seconds since 1970.
        reason: why the last attempt failed.
    """

    study_id: str
    images: int
    destination: str
    state: str
    attempts: int
    not_before: float
    reason: str


class Ledger:
    """The queue, safe for threads and, in PostgreSQL, for processes on several machines.

    Args:
        url: ``sqlite:///FILE`` or ``postgresql://…``.
    """

    def __init__(self, url: str) -> None:
        address = make_url(url)
        self.is_shared = address.get_backend_name() == "postgresql"
        if self.is_shared:
            address = address.set(drivername="postgresql+psycopg")
        self._engine = create_engine(address, pool_pre_ping=self.is_shared, hide_parameters=True)
        # SQLite has one writer at a time; a fair queue in this process is better than its polling.
        self._writing = threading.Lock()
        if not self.is_shared:
            event.listen(self._engine, "connect", _make_durable)
        try:
            with self._engine.begin() as connection:
                if self.is_shared:  # two processes may start at once
                    connection.execute(text("SELECT pg_advisory_xact_lock(23)"))
                for statement in _TABLES:
                    connection.execute(text(statement))
        except SQLAlchemyError as error:
            place = address.render_as_string(hide_password=True)
            reason = str(getattr(error, "orig", error)).strip().splitlines()[0]
            raise LedgerError(f"queue is {place}, which cannot be opened ({reason})") from error

    def close(self) -> None:
        """Close all connections."""
        self._engine.dispose()

    def received(
        self, study_id: str, image_id: str, sender: str, modality: str, priority: int, now: float
    ) -> bool:
        """Note that an image is on disk; returns whether it is a new one.

        A new image makes its study wait until it is quiet, and be analysed again if it was before.
        """
        with self._write() as connection:
            new = connection.execute(
                text("INSERT INTO images VALUES (:study_id, :image_id) ON CONFLICT DO NOTHING"),
                {"study_id": study_id, "image_id": image_id},
            ).rowcount
            if not new:
                return False
            connection.execute(
                text(
                    "INSERT INTO studies VALUES "
                    "(:study_id, 'receiving', 1, :sender, :modality, :priority, :now, 0, 0, '', 0, 0) "
                    "ON CONFLICT (study_id) DO UPDATE SET state = 'receiving', images = studies.images + 1, "
                    "sender = :sender, modality = :modality, priority = :priority, received = :now, "
                    "attempts = 0, not_before = 0, reason = '', finished = 0"
                ),
                {
                    "study_id": study_id,
                    "sender": sender,
                    "modality": modality,
                    "priority": priority,
                    "now": now,
                },
            )
            return True

    def has_image(self, study_id: str, image_id: str) -> bool:
        """Whether an image was accepted before."""
        question = "SELECT 1 FROM images WHERE study_id = :study_id AND image_id = :image_id"
        return bool(self._read(question, study_id=study_id, image_id=image_id))

    def close_quiet(self, before: float) -> int:
        """Studies whose last image came before a time are complete; returns how many."""
        return self._change(
            "UPDATE studies SET state = 'complete' WHERE state = 'receiving' AND received <= :before",
            before=before,
        )

    def set_back(self, now: float, latest: float) -> None:
        """After the clock was set back: what was received in the future was received now.

        Args:
            now: the time by the clock as it is.
            latest: no step has to wait longer than until then.
        """
        with self._write() as connection:
            connection.execute(text("UPDATE studies SET received = :now WHERE received > :now"), {"now": now})
            for table in ("studies", "deliveries"):
                connection.execute(
                    text(f"UPDATE {table} SET not_before = :latest WHERE not_before > :latest"),
                    {"latest": latest},
                )

    def due_analyses(self, now: float, limit: int = 100) -> list[Study]:
        """Studies whose time has come, the most urgent first: complete, or left behind while analysing."""
        return self._studies(
            "WHERE state IN ('complete', 'analysing') AND not_before <= :now "
            "ORDER BY priority DESC, received LIMIT :limit",
            now=now,
            limit=limit,
        )

    def begin_analysis(self, study_id: str, images: int, again: float) -> bool:
        """Complete, or left behind by a process that was killed → analysing; returns whether it is.

        Args:
            study_id: which study.
            images: how many it had.
            again: when it may begin again if this process is killed.
        """
        return bool(
            self._change(
                "UPDATE studies SET state = 'analysing', attempts = attempts + 1, not_before = :again "
                f"WHERE {_STILL} IN ('complete', 'analysing')",
                study_id=study_id,
                images=images,
                again=again,
            )
        )

    def analysed(
        self, study_id: str, images: int, lesions: int, reason: str, destinations: Sequence[str], now: float
    ) -> bool:
        """Analysing → sending, or done without destinations; returns False if an image has come since.

        Args:
            study_id: which study.
            images: how many it had.
            lesions: how many were found.
            reason: what is unusual.
            destinations: where the results go.
            now: the time.
        """
        key = {"study_id": study_id, "images": images}
        with self._write() as connection:
            changed = connection.execute(
                text(
                    "UPDATE studies SET state = :state, lesions = :lesions, reason = :reason, "
                    f"finished = :finished WHERE {_STILL} = 'analysing'"
                ),
                {
                    **key,
                    "state": "sending" if destinations else "done",
                    "lesions": lesions,
                    "reason": reason,
                    "finished": 0 if destinations else now,
                },
            ).rowcount
            if changed:
                for destination in destinations:
                    connection.execute(
                        text(
                            "INSERT INTO deliveries VALUES "
                            "(:study_id, :images, :destination, 'pending', 0, 0, '') ON CONFLICT DO NOTHING"
                        ),
                        {**key, "destination": destination},
                    )
            return bool(changed)

    def analysis_failed(
        self,
        study_id: str,
        images: int,
        reason: str,
        again: float | None,
        now: float,
        is_attempt: bool = True,
    ) -> bool:
        """Analysing → complete, to begin again at a time; or failed, if there is none.

        Args:
            study_id: which study.
            images: how many it had.
            reason: why.
            again: when it may begin again.
            now: the time.
            is_attempt: False if it is not the study's fault, so that this attempt does not count.
        """
        return bool(
            self._change(
                "UPDATE studies SET state = :state, reason = :reason, not_before = :again, "
                f"finished = :finished, attempts = attempts - :uncounted WHERE {_STILL} = 'analysing'",
                study_id=study_id,
                images=images,
                uncounted=int(not is_attempt),
                state="failed" if again is None else "complete",
                reason=reason,
                again=again or 0,
                finished=now if again is None else 0,
            )
        )

    def due_deliveries(self, now: float, destination: str | None = None, limit: int = 100) -> list[Delivery]:
        """Results whose time has come, those that wait longest first.

        Args:
            now: the time.
            destination: theirs; None for all.
            limit: how many at most.
        """
        rows = self._read(
            "SELECT d.* FROM deliveries d JOIN studies s ON s.study_id = d.study_id AND s.images = d.images "
            "WHERE s.state = 'sending' AND d.state = 'pending' AND d.not_before <= :now "
            "AND (d.destination = :destination OR :any = 1) "
            "ORDER BY d.not_before, s.priority DESC, s.received LIMIT :limit",
            now=now,
            destination=destination or "",
            any=int(destination is None),
            limit=limit,
        )
        return [Delivery(**row) for row in rows]

    def delivered(self, delivery: Delivery, now: float) -> None:
        """Note that results have arrived; the last of a study makes it done."""
        self._change_delivery(delivery, "done", "", 0, now)

    def delivery_failed(self, delivery: Delivery, reason: str, again: float | None, now: float) -> None:
        """Note why results have not arrived, and when to send them again: None for never."""
        self._change_delivery(delivery, "failed" if again is None else "pending", reason, again or 0, now)

    def _change_delivery(self, delivery: Delivery, state: str, reason: str, again: float, now: float) -> None:
        self._change(
            "UPDATE deliveries SET state = :state, reason = :reason, not_before = :again, "
            "attempts = attempts + 1 "
            f"WHERE destination = :destination AND {_STILL} = 'pending'",
            study_id=delivery.study_id,
            images=delivery.images,
            destination=delivery.destination,
            state=state,
            reason=reason,
            again=again,
        )
        self.settle(now)

    def settle(self, now: float) -> None:
        """Sending → done or failed, for studies of which nothing is on its way any more."""
        these = "FROM deliveries d WHERE d.study_id = studies.study_id AND d.images = studies.images"
        failed = f"EXISTS (SELECT * {these} AND d.state = 'failed')"
        self._change(
            f"UPDATE studies SET state = CASE WHEN {failed} THEN 'failed' ELSE 'done' END, "
            f"reason = CASE WHEN {failed} "
            f"THEN (SELECT min(d.destination || ': ' || d.reason) {these} AND d.state = 'failed') "
            "ELSE reason END, finished = :now "
            f"WHERE state = 'sending' AND NOT EXISTS (SELECT * {these} AND d.state = 'pending')",
            now=now,
        )

    def sent_before(self, study_id: str, images: int, destination: str | None = None) -> int | None:
        """The number of images of the last results, of fewer images, that arrived.

        Args:
            study_id: which study.
            images: how many it has.
            destination: where they arrived; None for anywhere.
        """
        (row,) = self._read(
            "SELECT max(images) AS images FROM deliveries "
            "WHERE study_id = :study_id AND images < :images AND state = 'done' "
            "AND (destination = :destination OR :any = 1)",
            study_id=study_id,
            images=images,
            destination=destination or "",
            any=int(destination is None),
        )
        return row["images"]

    def retry(self, study_id: str | None = None) -> int:
        """Failed → sending, if it failed there, or complete; returns how many.

        Args:
            study_id: which; None for all.
        """
        chosen = {"study_id": study_id or "", "any": int(study_id is None)}
        here = "d.study_id = studies.study_id AND d.images = studies.images AND d.state = 'failed'"
        with self._write() as connection:
            retried = connection.execute(
                text(
                    "UPDATE studies SET attempts = 0, not_before = 0, finished = 0, reason = '', "
                    f"state = CASE WHEN EXISTS (SELECT * FROM deliveries d WHERE {here}) THEN 'sending' "
                    "ELSE 'complete' END WHERE state = 'failed' AND (study_id = :study_id OR :any = 1)"
                ),
                chosen,
            ).rowcount
            connection.execute(
                text(
                    "UPDATE deliveries SET state = 'pending', attempts = 0, not_before = 0 "
                    "WHERE state = 'failed' AND (study_id = :study_id OR :any = 1)"
                ),
                chosen,
            )
            return int(retried)

    def forget(self, study_id: str, images: int) -> bool:
        """Remove a finished study; returns False if an image has come since."""
        with self._write() as connection:
            removed = connection.execute(
                text(f"DELETE FROM studies WHERE {_STILL} IN ('done', 'failed')"),
                {"study_id": study_id, "images": images},
            ).rowcount
            if removed:
                for table in ("images", "deliveries"):
                    connection.execute(
                        text(f"DELETE FROM {table} WHERE study_id = :study_id"),
                        {"study_id": study_id},
                    )
            return bool(removed)

    def study(self, study_id: str) -> Study | None:
        """A study; None if it is not known."""
        return next(iter(self._studies("WHERE study_id = :study_id", study_id=study_id)), None)

    def last_studies(self, limit: int, state: str | None = None) -> list[Study]:
        """Those whose last image came last, in any or one state."""
        return self._studies(
            "WHERE state = :state OR :any = 1 ORDER BY received DESC LIMIT :limit",
            state=state or "",
            any=int(state is None),
            limit=limit,
        )

    def finished_studies(self, before: float, limit: int, with_failed: bool) -> list[Study]:
        """Those that were done, or failed, before a time; the oldest first."""
        return self._studies(
            "WHERE (state = 'done' OR (state = 'failed' AND :with_failed = 1)) AND finished <= :before "
            "ORDER BY finished LIMIT :limit",
            before=before,
            limit=limit,
            with_failed=int(with_failed),
        )

    def deliveries(self, study_id: str) -> list[Delivery]:
        """Of a study, in the order of its results."""
        rows = self._read(
            "SELECT * FROM deliveries WHERE study_id = :study_id ORDER BY images, destination",
            study_id=study_id,
        )
        return [Delivery(**row) for row in rows]

    def counts(self) -> dict[str, int]:
        """The number of studies in each state."""
        rows = self._read("SELECT state, count(*) AS number FROM studies GROUP BY state")
        found = {row["state"]: row["number"] for row in rows}
        return {state: found.get(state, 0) for state in STATES}

    def note(self, name: str) -> str:
        """What was noted under a name; "" if nothing."""
        rows = self._read("SELECT value FROM notes WHERE name = :name", name=name)
        return str(rows[0]["value"]) if rows else ""

    def set_note(self, name: str, value: str) -> None:
        """Note something under a name."""
        self._change(
            "INSERT INTO notes VALUES (:name, :value) ON CONFLICT (name) DO UPDATE SET value = :value",
            name=name,
            value=value,
        )

    def _studies(self, where: str, **values: Any) -> list[Study]:
        return [Study(**row) for row in self._read(f"SELECT * FROM studies {where}", **values)]

    def _read(self, statement: str, **values: Any) -> list[Mapping[str, Any]]:
        with self._engine.connect() as connection:
            return [dict(row) for row in connection.execute(text(statement), values).mappings()]

    def _change(self, statement: str, **values: Any) -> int:
        with self._write() as connection:
            return connection.execute(text(statement), values).rowcount

    @contextmanager
    def _write(self) -> Iterator[Connection]:
        """A transaction, on disk when it ends."""
        if self.is_shared:
            with self._engine.begin() as connection:
                yield connection
        else:
            with self._writing, self._engine.begin() as connection:
                yield connection


def _make_durable(connection: Any, _record: Any) -> None:
    """Settings of each SQLite connection; by default a commit in WAL mode may be lost with the power."""
    for setting in ("journal_mode = WAL", "synchronous = FULL", f"busy_timeout = {1000 * BUSY_SECONDS}"):
        connection.execute(f"PRAGMA {setting}")
