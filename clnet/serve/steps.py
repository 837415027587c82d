"""The two steps of a study, each of which can be repeated: analyse it, send its results to a destination."""

import threading
import time
from pathlib import Path

import pydicom

from clnet.files import WriteError
from clnet.predict.loading import reason_of
from clnet.serve.analysis import Analyser, NothingToReportError, have_same_reports, report_files
from clnet.serve.destinations import send
from clnet.serve.journal import Audit, log, warn
from clnet.serve.ledger import Delivery, Ledger, Study
from clnet.serve.metrics import Metrics
from clnet.serve.settings import ServeSettings
from clnet.serve.spool import RefusedError, Spool

MOST_WORDS = 500  # characters of a reason


class Steps:
    """Does the steps that the queue says are due.

    Args:
        settings: of the node.
        ledger: the queue.
        spool: images and results.
        analyser: of studies.
        metrics: count the steps.
        audit: says who got what.
    """

    def __init__(
        self,
        settings: ServeSettings,
        ledger: Ledger,
        spool: Spool,
        analyser: Analyser,
        metrics: Metrics,
        audit: Audit,
    ) -> None:
        self._settings, self._ledger, self._spool = settings, ledger, spool
        self._analyser, self._metrics, self._audit = analyser, metrics, audit
        self._destinations = {destination.name: destination for destination in settings.destinations}
        self._one_analysis = threading.Lock()

    def analyse(self, study_id: str, images: int) -> None:
        """Analyse a study, unless it has more images by now."""
        with self._one_analysis:
            self._analyse(study_id, images)

    def _analyse(self, study_id: str, images: int) -> None:
        ledger, retries, began = self._ledger, self._settings.retries, time.time()
        study = ledger.study(study_id)
        if study is None:
            return
        again = began + retries.wait(study.attempts + 1)
        if not ledger.begin_analysis(study_id, images, again):
            return
        if study.attempts >= retries.analysis:  # it was killed, for it did not say why it failed
            reason = study.reason or f"the process ended {study.attempts} times during the analysis"
            ledger.analysis_failed(study_id, images, reason, None, began)
            self._metrics.steps.labels("analyse", "failed").inc()
            warn("analysis failed", study=study_id, reason=reason, final=True)
            return
        try:
            self._spool.check_space()
            before = self._results_before(study_id, images)
            outcome = self._analyser.analyse(
                self._spool.images_of(study_id), self._spool.results_of(study_id, images), before
            )
            names = [
                destination.name
                for destination in self._settings.destinations
                if destination.when.holds(study.modality, study.sender, outcome.lesions)
                and not self._has_arrived(study_id, images, destination.name)
            ]
        except Exception as error:
            self._analysis_failed(study, images, again, error)
            return
        reason = "; ".join(outcome.warnings)[:MOST_WORDS]
        counts = ledger.analysed(study_id, images, outcome.lesions, reason, names, time.time())
        self._done("analyse", "done" if counts else "void", began)
        log(
            "analysed" if counts else "analysed too early",
            study=study_id,
            images=images,
            lesions=outcome.lesions,
            seconds=round(time.time() - began, 3),
        )
        if counts and not names:
            self._finished(study_id)

    def _analysis_failed(self, study: Study, images: int, again: float, error: Exception) -> None:
        is_disk = isinstance(error, WriteError | RefusedError)
        is_last = study.attempts + 1 >= self._settings.retries.analysis and not is_disk
        is_final = is_last or isinstance(error, NothingToReportError)
        reason = reason_of(error)[:MOST_WORDS]
        self._ledger.analysis_failed(
            study.study_id, images, reason, None if is_final else again, time.time(), is_attempt=not is_disk
        )
        self._metrics.steps.labels("analyse", "failed" if is_final else "again").inc()
        warn("analysis failed", study=study.study_id, reason=reason, final=is_final)

    def _results_before(self, study_id: str, images: int) -> Path | None:
        """The folder of the last results that a later report replaces."""
        if self._settings.destinations:
            earlier = self._ledger.sent_before(study_id, images)
        else:
            folders = self._spool.results_of(study_id, images).parent.glob("*/summary.json")
            numbers = (int(file.parent.name) for file in folders if file.parent.name.isdecimal())
            earlier = max((number for number in numbers if number < images), default=None)
        return None if earlier is None else self._spool.results_of(study_id, earlier)

    def _has_arrived(self, study_id: str, images: int, destination: str) -> bool:
        """Whether the last results that arrived at a destination are the same as these."""
        earlier = self._ledger.sent_before(study_id, images, destination)
        if earlier is None:
            return False
        results = self._spool.results_of
        return have_same_reports(results(study_id, images), results(study_id, earlier))

    def send(self, delivery: Delivery) -> None:
        """Send results to their destination."""
        destination, began = self._destinations.get(delivery.destination), time.time()
        files = report_files(self._spool.results_of(delivery.study_id, delivery.images))
        facts = {"study": delivery.study_id, "destination": delivery.destination}
        if destination is None:
            reason = "the settings name no such destination any more"
            self._ledger.delivery_failed(delivery, reason, None, began)
            self._metrics.steps.labels("send", "failed").inc()
            warn("sending failed", **facts, reason=reason, final=True)
            return
        try:
            send(files, destination, delivery.study_id, self._settings.dicom.ae_title)
        except Exception as error:
            retries, attempts = self._settings.retries, delivery.attempts + 1
            is_final = attempts >= retries.sending
            reason = reason_of(error)[:MOST_WORDS]
            again = None if is_final else time.time() + retries.wait(attempts)
            self._ledger.delivery_failed(delivery, reason, again, time.time())
            self._metrics.steps.labels("send", "failed" if is_final else "again").inc()
            warn("sending failed", **facts, reason=reason, final=is_final)
            return
        for file in files:
            tags = pydicom.dcmread(file, specific_tags=["SOPInstanceUID", "StudyInstanceUID", "PatientID"])
            identity = {element.keyword: str(element.value) for element in tags}
            self._audit.write("sent", destination=delivery.destination, **identity)
        self._ledger.delivered(delivery, time.time())
        self._done("send", "done", began)
        log("sent", **facts, seconds=round(time.time() - began, 3))
        self._finished(delivery.study_id)

    def _done(self, step: str, end: str, began: float) -> None:
        self._metrics.steps.labels(step, end).inc()
        self._metrics.seconds.labels(step).observe(time.time() - began)

    def _finished(self, study_id: str) -> None:
        """Note how long the results took, if this was the last step."""
        study = self._ledger.study(study_id)
        if study is not None and study.state == "done":
            self._metrics.latency.observe(study.finished - study.received)
            log("study done", study=study_id, seconds=round(study.finished - study.received, 3))
