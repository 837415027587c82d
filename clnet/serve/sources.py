"""Archives that are asked for new studies: an Orthanc by its changes, a DICOMweb server by QIDO-RS.

An image that is here already is not fetched again, so that nothing depends on how far a question had got when
the process was killed.
"""

from collections.abc import Callable, Iterator
from datetime import date, timedelta
from typing import Any
from urllib.parse import urlsplit

import pydicom
import requests
from dicomweb_client import DICOMwebClient

from clnet.data.dicomweb import fetch_instance
from clnet.errors import ClnetError
from clnet.serve.destinations import http_reason, http_session, web_client
from clnet.serve.intake import Intake
from clnet.serve.journal import warn
from clnet.serve.ledger import Ledger
from clnet.serve.settings import Poll
from clnet.serve.spool import OUT_OF_RESOURCES, RefusedError

MOST_CHANGES = 100


class SourceError(ClnetError):
    """An archive that cannot be asked."""


class Source:
    """An archive.

    Args:
        settings: where it is.
        intake: takes the images.
        ledger: notes how far an Orthanc's changes have been followed.
        is_over: whether no more studies are to be taken; asked between two studies.
    """

    def __init__(
        self, settings: Poll, intake: Intake, ledger: Ledger, is_over: Callable[[], bool] = lambda: False
    ) -> None:
        self.settings = settings
        self._intake, self._ledger, self._is_over = intake, ledger, is_over
        self._session = http_session(
            settings.user, settings.password_file, settings.token_file, settings.authority
        )
        self._refused: set[str] = set()  # SOPInstanceUIDs of what would be refused again

    def poll(self) -> None:
        """Fetch what is new: at first, all studies of an Orthanc."""
        try:
            if self.settings.orthanc:
                self._follow_changes(self.settings.orthanc.rstrip("/"))
            elif self.settings.qido:
                self._ask(self.settings.qido)
        except requests.RequestException as error:
            raise SourceError(http_reason(error)) from None

    def _follow_changes(self, address: str) -> None:
        place = f"changes of {self.settings.name} {address}"
        while True:
            since = int(self._ledger.note(place) or "0")
            if since > self._json(f"{address}/changes?last")["Last"]:
                warn("archive was set up anew", source=self.settings.name)
                since = 0
            page = self._json(f"{address}/changes?since={since}&limit={MOST_CHANGES}")
            for change in page["Changes"]:
                if change["ChangeType"] == "StableStudy":
                    self._fetch_study(address, change["ID"])
                if self._is_over():
                    return
            self._ledger.set_note(place, str(page["Last"]))
            if page["Done"]:
                return

    def _fetch_study(self, address: str, name: str) -> None:
        try:
            study = self._json(f"{address}/studies/{name}")["MainDicomTags"]["StudyInstanceUID"]
            instances = self._json(f"{address}/studies/{name}/instances")
        except requests.HTTPError as error:
            if error.response is not None and error.response.status_code == 404:
                return  # it was deleted since
            raise
        for instance in instances:
            image = instance["MainDicomTags"]["SOPInstanceUID"]
            if self._is_known(study, image):
                continue
            kind = self._get(f"{address}/instances/{instance['ID']}/metadata/SopClassUid").text
            if kind in self._intake.spool.classes:
                self._take(image, self._get(f"{address}/instances/{instance['ID']}/file").content)

    def _ask(self, address: str) -> None:
        client = web_client(address, self._session)
        today = date.today()
        first = today - timedelta(days=self.settings.days - 1)
        filters = {"ModalitiesInStudy": "MG", "StudyDate": f"{first:%Y%m%d}-{today:%Y%m%d}"}
        for study in studies_in(client, filters):
            if self._is_over():
                return
            for listed in client.search_for_instances(study):
                tags = pydicom.Dataset.from_json(listed)
                series, image = tags.SeriesInstanceUID, tags.SOPInstanceUID
                if tags.SOPClassUID in self._intake.spool.classes and not self._is_known(study, image):
                    self._take(image, fetch_instance(client, study, series, image))

    def _is_known(self, study: str, image: str) -> bool:
        return image in self._refused or self._intake.spool.has(study, image)

    def _take(self, image: str, data: bytes) -> None:
        try:
            host = urlsplit(self.settings.orthanc or self.settings.qido or "").hostname or ""
            self._intake.take(data, self.settings.name, host, self.settings.priority)
        except RefusedError as refusal:
            if refusal.status == OUT_OF_RESOURCES and len(data) <= self._intake.spool.most_bytes:
                raise  # it can be fetched later
            self._refused.add(image)

    def _get(self, address: str) -> requests.Response:
        answer = self._session.get(address)
        answer.raise_for_status()
        return answer

    def _json(self, address: str) -> Any:
        return self._get(address).json()


def studies_in(client: DICOMwebClient, filters: dict[str, str]) -> Iterator[str]:
    """The StudyInstanceUIDs of an archive, of which many list no more than some hundred at a time."""
    seen: set[str] = set()
    while True:
        page = client.search_for_studies(search_filters=filters, offset=len(seen))
        new = {pydicom.Dataset.from_json(found).StudyInstanceUID for found in page} - seen
        if not new:
            return
        yield from new
        seen |= new
