"""The DICOM listener: C-ECHO and C-STORE, from senders that are known."""

import contextlib
from collections.abc import Callable
from typing import cast

from pydicom.dataset import Dataset
from pydicom.uid import AllTransferSyntaxes
from pynetdicom import AE, _config, evt
from pynetdicom.dimse_primitives import C_STORE
from pynetdicom.pdu_primitives import A_ASSOCIATE
from pynetdicom.sop_class import Verification  # type: ignore[attr-defined]  # made when it is imported
from pynetdicom.transport import ThreadedAssociationServer

from clnet.serve.intake import Intake
from clnet.serve.settings import Dicom, Sender, ServeError, is_loopback
from clnet.serve.spool import OUT_OF_RESOURCES, RefusedError

# A-ASSOCIATE-RJ (PS3.8, 9.3.4): result, source, reason.
CALLING_TITLE_UNKNOWN, CALLED_TITLE_UNKNOWN, BUSY = (1, 1, 3), (1, 1, 7), (2, 3, 1)

# A damaged object must come to us as it is: we answer, and our log says no more than we write ourselves.
_config.LOG_HANDLER_LEVEL = "none"
_config.LOG_RESPONSE_IDENTIFIERS = _config.LOG_REQUEST_IDENTIFIERS = False


class Receiver:
    """Listens until it is stopped.

    Args:
        settings: of the listener.
        intake: takes the images.
        is_draining: whether no more studies are taken.
    """

    def __init__(self, settings: Dicom, intake: Intake, is_draining: Callable[[], bool]) -> None:
        self._settings, self._intake, self._is_draining = settings, intake, is_draining
        self._ae = AE(settings.ae_title)
        self._ae.maximum_associations = settings.most_associations
        self._ae.add_supported_context(Verification)
        for sop_class in intake.spool.classes:
            self._ae.add_supported_context(sop_class, AllTransferSyntaxes)
        self._server: ThreadedAssociationServer | None = None

    def start(self) -> None:
        """Begin to listen."""
        settings = self._settings
        handlers: list[evt.EventHandlerType] = [
            (evt.EVT_REQUESTED, self._admit),
            (evt.EVT_REJECTED, self._note_too_many),
            (evt.EVT_C_ECHO, lambda _: 0x0000),
            (evt.EVT_C_STORE, self._store),
            (evt.EVT_PDU_RECV, self._drop_excess),
        ]
        tls = settings.tls.server_context() if settings.tls else None
        try:
            self._server = self._ae.start_server(
                (settings.host, settings.port), block=False, evt_handlers=handlers, ssl_context=tls
            )
        except OSError as error:
            place = f"{settings.host}:{settings.port}"
            raise ServeError(f"dicom: cannot listen at {place} ({error.strerror})") from error

    def stop(self) -> None:
        """Take no more associations, and end those that there are."""
        if self._server is not None:
            self._server.shutdown()
            for association in self._ae.active_associations:
                with contextlib.suppress(Exception):
                    association.abort()

    def _admit(self, event: evt.Event) -> None:
        """Reject an association that is not for us, or not from somebody who is known."""
        request = cast(A_ASSOCIATE, event.assoc.requestor.primitive)
        address = event.assoc.requestor.address
        calling, called = request.calling_ae_title.strip(), request.called_ae_title.strip()
        if called != self._settings.ae_title:
            verdict, reason = CALLED_TITLE_UNKNOWN, "called AE title is not recognised"
        elif self._sender(calling, address) is None:
            verdict, reason = CALLING_TITLE_UNKNOWN, "calling AE title or address is not known"
        elif self._is_draining():
            verdict, reason = BUSY, "the node is draining"
        else:
            return
        event.assoc.acse.send_reject(*verdict)  # first: to note it may fail, as when the disk is full
        event.assoc.kill()
        self._intake.refused("association", None, reason, sender=calling, address=address)

    def _note_too_many(self, event: evt.Event) -> None:
        """Note what pynetdicom rejects by itself: one association more than are allowed at a time."""
        peer = event.assoc.requestor
        self._intake.refused(
            "association", None, "too many associations", peer.ae_title.strip(), peer.address
        )

    def _drop_excess(self, event: evt.Event) -> None:
        """Hold no more of an object than shows that it is too large; the rest is received and dropped."""
        message, most = event.assoc.dimse.message, int(self._intake.spool.most_bytes)
        held = message.data_set if message is not None else None
        if held is not None and held.tell() > most:
            held.seek(most + 1)
            held.truncate()

    def _sender(self, ae_title: str, address: str) -> Sender | None:
        if not self._settings.senders and is_loopback(address):
            return Sender(ae_title=ae_title)
        fitting = (
            s for s in self._settings.senders if s.ae_title == ae_title and s.address in (None, address)
        )
        return next(fitting, None)

    def _store(self, event: evt.Event) -> Dataset | int:
        peer = event.assoc.requestor
        sender = self._sender(peer.ae_title.strip(), peer.address)
        request, answer = cast(C_STORE, event.request), Dataset()
        try:
            announced = (str(request.AffectedSOPClassUID), str(request.AffectedSOPInstanceUID))
            self._intake.take(
                event.encoded_dataset(),
                sender=peer.ae_title.strip(),
                address=peer.address,
                priority=sender.priority if sender else 0,
                expected=announced,
            )
            return 0x0000
        except RefusedError as refusal:
            answer.Status, answer.ErrorComment = refusal.status, str(refusal)[:64]
        except Exception as error:  # such as a queue that cannot be written: not the fault of the image
            reason = type(error).__name__
            self._intake.refused("image", OUT_OF_RESOURCES, reason, peer.ae_title, peer.address)
            answer.Status, answer.ErrorComment = OUT_OF_RESOURCES, "cannot be taken now"
        return answer
