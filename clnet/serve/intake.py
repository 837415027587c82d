"""Whatever an image came by, it is taken in here: onto disk, into the queue, logged, counted."""

import time

from clnet.files import system_words
from clnet.serve.journal import Audit, log, warn
from clnet.serve.metrics import Metrics
from clnet.serve.spool import Accepted, RefusedError, Spool


class Intake:
    """Takes images.

    Args:
        spool: where to.
        metrics: count them.
        audit: says who sent them.
    """

    def __init__(self, spool: Spool, metrics: Metrics, audit: Audit) -> None:
        self.spool = spool
        self._metrics, self._audit = metrics, audit

    def take(
        self,
        data: bytes,
        sender: str,
        address: str,
        priority: int = 0,
        expected: tuple[str, str] | None = None,
    ) -> Accepted:
        """As `Spool.accept`; what is refused is logged and raised."""
        began = time.monotonic()
        try:
            accepted = self.spool.accept(data, sender, priority, expected)
        except RefusedError as refusal:
            self.refused("image", refusal.status, str(refusal), sender, address)
            raise
        self._metrics.seconds.labels("receive").observe(time.monotonic() - began)
        if accepted.is_new:
            self._metrics.images.inc()
        log("image received", study=accepted.study_id, image=accepted.image_id, new=accepted.is_new)
        self._audit.write("received", sender=sender, address=address, **accepted.identity)
        return accepted

    def refused(self, what: str, status: int | None, reason: str, sender: str, address: str) -> None:
        """Note a refusal. Its reason identifies nobody; the sender is named in the audit log alone."""
        shown = "rejected" if status is None else f"0x{status:04X}"
        self._metrics.refused.labels(shown).inc()
        warn(f"{what} refused", status=shown, reason=reason)
        try:
            self._audit.write(
                "refused", what=what, status=shown, reason=reason, sender=sender, address=address
            )
        except OSError as error:  # the sender is told why it is refused all the same
            warn("audit log not written", reason=system_words(error))
