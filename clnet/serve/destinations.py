"""Where results go: C-STORE, STOW-RS, or a folder. Sending the same results twice leaves them there once."""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pydicom
import requests
from dicomweb_client import DICOMwebClient
from pynetdicom import AE

from clnet.errors import ClnetError
from clnet.files import WriteError, system_words, whole_folder
from clnet.serve.settings import Destination, DicomPeer, read_token

TIMEOUT = 30  # seconds for a connection, and for each answer
# C-STORE statuses under which an object is stored: success, and warnings that something was coerced.
STORED = (0x0000, 0xB000, 0xB006, 0xB007)


class SendError(ClnetError):
    """Results that have not arrived."""


def send(files: Sequence[Path], destination: Destination, study_id: str, ae_title: str) -> None:
    """Send the reports of a study; when this returns, all of them have arrived.

    Args:
        files: the reports.
        destination: where to.
        study_id: names the folder, where it is one.
        ae_title: of this node.
    """
    if destination.dicom is not None:
        _send_by_dicom(files, destination.dicom, ae_title)
    elif destination.stow is not None:
        _send_by_stow(files, destination)
    elif destination.folder is not None:
        _copy(files, destination.folder / study_id)


def http_session(
    user: str | None, password_file: Path | None, token_file: Path | None, authority: Path | None = None
) -> requests.Session:
    """A session that logs in, follows no proxy of the environment, and gives up in time."""
    session = _Session()
    session.trust_env = False
    if user:
        session.auth = (user, read_token(password_file))
    elif token_file:
        session.headers["Authorization"] = f"Bearer {read_token(token_file)}"
    if authority:
        session.verify = str(authority)
    return session


class _Session(requests.Session):
    def request(self, *words: Any, **options: Any) -> requests.Response:
        """A request with a timeout, which `requests` has none of by default."""
        options["timeout"] = options.get("timeout") or TIMEOUT
        return super().request(*words, **options)


def http_reason(error: requests.RequestException) -> str:
    """Why a request failed. It names no address, which may hold the UID of a study."""
    if isinstance(error, requests.HTTPError) and error.response is not None:
        return f"the server answered HTTP {error.response.status_code}"
    return f"the server cannot be reached ({type(error).__name__})"


def web_client(address: str, session: requests.Session) -> DICOMwebClient:
    """A DICOMweb client of an address."""
    if urlsplit(address).scheme not in ("http", "https"):
        raise SendError(f"{address} is no address of a DICOMweb server; it begins with http:// or https://")
    return DICOMwebClient(address, session=session)


def _send_by_dicom(files: Sequence[Path], peer: DicomPeer, ae_title: str) -> None:
    ae = AE(ae_title)
    ae.acse_timeout = ae.dimse_timeout = ae.network_timeout = ae.connection_timeout = TIMEOUT
    kinds = {(meta.MediaStorageSOPClassUID, meta.TransferSyntaxUID) for meta in map(_meta_of, files)}
    for sop_class, syntax in sorted(kinds):
        ae.add_requested_context(sop_class, syntax)
    tls = (peer.tls.client_context(), peer.host) if peer.tls else None
    association = ae.associate(peer.host, peer.port, ae_title=peer.ae_title, tls_args=tls)
    if not association.is_established:
        what = "refuses the association" if association.is_rejected else "cannot be reached"
        raise SendError(f"{peer.ae_title} at {peer.host}:{peer.port} {what}")
    try:
        for file in files:
            try:
                status = association.send_c_store(file).get("Status")
            except (ValueError, RuntimeError) as error:  # no context for it; the association has ended
                raise SendError(
                    f"{peer.ae_title} does not take {file.stem} ({type(error).__name__})"
                ) from None
            if status not in STORED:
                said = "gave no answer" if status is None else f"answered 0x{status:04X}"
                raise SendError(f"{peer.ae_title} {said} to {file.stem}")
    finally:
        association.release()


def _send_by_stow(files: Sequence[Path], destination: Destination) -> None:
    session = http_session(
        destination.user, destination.password_file, destination.token_file, destination.authority
    )
    client = web_client(str(destination.stow), session)
    try:
        answer = client.store_instances([pydicom.dcmread(file) for file in files])
    except requests.RequestException as error:
        raise SendError(http_reason(error)) from None
    failed = answer.get("FailedSOPSequence") or []
    if failed:
        raise SendError(f"the server failed to store {len(failed)} of {len(files)} objects")


def _copy(files: Sequence[Path], folder: Path) -> None:
    try:
        with whole_folder(folder) as unfinished:
            for file in files:
                shutil.copyfile(file, unfinished / file.name)
    except (OSError, WriteError) as error:
        raise SendError(f"the folder cannot be written ({system_words(error)})") from error


def _meta_of(file: Path) -> Any:
    return pydicom.filereader.read_file_meta_info(file)
