"""What becomes of a study, step by step: with an analyser that only writes files."""

from types import SimpleNamespace

import pytest
from pydicom.dataset import Dataset, FileMetaDataset
from pydicom.uid import ExplicitVRLittleEndian

from clnet.serve.analysis import Outcome
from clnet.serve.journal import Audit
from clnet.serve.ledger import Ledger
from clnet.serve.local_workers import LocalWorkers
from clnet.serve.metrics import Metrics
from clnet.serve.settings import ServeSettings
from clnet.serve.spool import Spool
from clnet.serve.steps import Steps

STUDY = "0123456789abcdef"
SECONDARY_CAPTURE = "1.2.840.10008.5.1.4.1.1.7"


@pytest.fixture
def ledger(tmp_path):
    ledger = Ledger(f"sqlite:///{tmp_path / 'queue.sqlite'}")
    yield ledger
    ledger.close()


def write_report(results, uid):
    """The results of an analysis: one report."""
    report = Dataset()
    report.SOPClassUID, report.SOPInstanceUID = SECONDARY_CAPTURE, uid
    report.file_meta = FileMetaDataset()
    report.file_meta.TransferSyntaxUID = ExplicitVRLittleEndian
    folder = results / "studies" / "study"
    folder.mkdir(parents=True)
    report.save_as(folder / "picture.dcm", enforce_file_format=True)


def steps_of(ledger, folder, analyse, *destinations):
    """Steps that send to folders."""
    settings = ServeSettings(
        folder=folder, destinations=[{"name": name, "folder": folder / name} for name in destinations]
    )
    analyser = SimpleNamespace(analyse=analyse)
    spool = Spool(folder, ledger, most_bytes=10**6, free_bytes=0)
    return Steps(settings, ledger, spool, analyser, Metrics(), Audit(folder / "audit"))


def receive(ledger, image):
    ledger.received(STUDY, image, "SENDER", "MG", 0, now=0)
    ledger.close_quiet(before=0)


def test_a_late_image_that_changes_nothing_keeps_no_results_from_a_destination_that_was_down(
    ledger, tmp_path
):
    def analyse(images, results, before):
        write_report(results, "1.2.3")
        return Outcome(0, ())

    steps = steps_of(ledger, tmp_path, analyse, "up", "down")
    receive(ledger, "1")
    steps.analyse(STUDY, 1)
    (tmp_path / "down").write_text("no folder")
    down, up = ledger.due_deliveries(now=1e12)
    steps.send(up)
    steps.send(down)
    assert [(d.destination, d.state) for d in ledger.deliveries(STUDY)] == [
        ("down", "pending"),
        ("up", "done"),
    ]
    receive(ledger, "2")
    steps.analyse(STUDY, 2)
    (tmp_path / "down").unlink()
    (delivery,) = ledger.due_deliveries(now=1e12)
    assert (delivery.destination, delivery.images) == ("down", 2)
    steps.send(delivery)
    assert (tmp_path / "down" / STUDY / "picture.dcm").is_file()
    assert ledger.study(STUDY).state == "done"
    receive(ledger, "3")  # now both have it
    steps.analyse(STUDY, 3)
    assert ledger.study(STUDY).state == "done"


def test_results_for_a_destination_that_the_settings_name_no_more_fail_and_say_so(ledger, tmp_path):
    steps = steps_of(ledger, tmp_path, None, "pacs")
    workers = LocalWorkers(ledger, steps, ["pacs"])
    receive(ledger, "1")
    ledger.begin_analysis(STUDY, 1, again=0)
    ledger.analysed(STUDY, 1, 0, "", ["renamed"], now=0)
    workers.offer()
    study = ledger.study(STUDY)
    assert (study.state, study.reason) == (
        "failed",
        "renamed: the settings name no such destination any more",
    )


def test_a_study_that_ended_the_process_too_often_fails_in_the_log_too(ledger, tmp_path, caplog):
    steps = steps_of(ledger, tmp_path, None)
    receive(ledger, "1")
    for _ in range(5):  # `retries.analysis`
        ledger.begin_analysis(STUDY, 1, again=0)
    steps.analyse(STUDY, 1)
    assert ledger.study(STUDY).state == "failed"
    (line,) = (record for record in caplog.records if record.message == "analysis failed")
    assert line.facts["reason"] == "the process ended 5 times during the analysis"
