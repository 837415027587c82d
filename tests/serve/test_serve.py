"""`clnet serve` among programs of others: dcmtk, Orthanc, a DICOMweb client, a browser's requests."""

import base64
import json
import time

import pydicom
import pytest
from dicomweb_client import DICOMwebClient
from full_disk import full_disk
from serve_images import SECRETS, bytes_of, copy_of, studies
from servers import ask_orthanc, free_port, start_orthanc, wait_for
from serving import FAST, NodeHere, echo, needs, serving, storescp, storescu, write_study

from clnet.cli.main import main
from clnet.serve.ledger import Ledger

KINDS = {"SR", "PR", "OT"}  # what `clnet predict` writes by default: measurements, presentation, picture
TOKEN = "a-token-for-tests"  # noqa: S105


@pytest.fixture(scope="module")
def study():
    (first, *_) = studies()
    return first


def reports_in(folder):
    return [pydicom.dcmread(file) for file in sorted(folder.rglob("*")) if file.is_file()]


@pytest.fixture(scope="module")
def node(tmp_path_factory):
    """A node that sends to dcmtk, to a folder, and what has no findings nowhere else."""
    folder = tmp_path_factory.mktemp("serve")
    (folder / "token").write_text(TOKEN)
    with storescp(folder / "archive") as archive:
        destinations = [
            {"name": "archive", "dicom": {"host": "127.0.0.1", "port": archive, "ae_title": "STORESCP"}},
            {"name": "share", "folder": str(folder / "share")},
            {"name": "other", "folder": str(folder / "other"), "when": {"senders": ["NOBODY"]}},
        ]
        http = {"token_file": str(folder / "token"), "stow": True, "status_page": True}
        dicom = {
            "senders": [
                {"ae_title": "STORESCU", "address": "127.0.0.1"},
                {"ae_title": "AWAY", "address": "10.9.8.7"},
            ]
        }
        with serving(folder, destinations=destinations, http=http, dicom=dicom) as node:
            yield node


@needs("echoscu")
def test_it_answers_an_echo_of_those_it_knows(node):
    assert echo(node.dicom, "CLNET") == 0
    assert echo(node.dicom, "OTHER") != 0
    assert echo(node.dicom, "CLNET", calling="STRANGER") != 0
    assert echo(node.dicom, "CLNET", calling="AWAY") != 0


@needs("storescu")
def test_a_stranger_reads_in_his_log_why_he_is_refused(node, study, tmp_path):
    said = storescu(node.dicom, write_study(tmp_path / "study", study), calling="STRANGER")
    assert said.returncode != 0
    assert "Calling AE Title Not Recognized" in said.stdout + said.stderr


@needs("storescu", "storescp")
def test_dcmtk_sends_a_study_and_dcmtk_gets_its_reports(node, study, tmp_path):
    said = storescu(node.dicom, write_study(tmp_path / "study", study))
    assert said.returncode == 0, said.stderr
    node.wait_until(done=1)
    reports = reports_in(node.folder / "archive")
    assert {report.Modality for report in reports} == KINDS
    assert {report.StudyInstanceUID for report in reports} == {study[0].StudyInstanceUID}
    assert {report.PatientID for report in reports} == {"secret-id"}
    (shared,) = (node.folder / "share").iterdir()
    assert {file.name for file in shared.iterdir()} == {"measurements.dcm", "picture.dcm", "presentation.dcm"}
    assert not (node.folder / "other").exists()


@needs("storescu", "storescp")
def test_a_late_image_gives_new_reports_that_name_the_old_ones(node, tmp_path):
    late_study = copy_of(studies()[0], 1)
    before = {report.SOPInstanceUID for report in reports_in(node.folder / "archive")}
    done = node.states()["done"]
    storescu(node.dicom, write_study(tmp_path / "early", late_study[:3]))
    node.wait_until(done=done + 1)
    early = [r for r in reports_in(node.folder / "archive") if r.SOPInstanceUID not in before]
    storescu(node.dicom, write_study(tmp_path / "late", late_study[3:]))
    node.wait_until(receiving=1)
    node.wait_until(done=done + 1)
    known = before | {report.SOPInstanceUID for report in early}
    late = [r for r in reports_in(node.folder / "archive") if r.SOPInstanceUID not in known]
    assert {report.Modality for report in late} == KINDS
    (old,) = (report for report in early if report.Modality == "SR")
    (new,) = (report for report in late if report.Modality == "SR")
    (study_item,) = new.PredecessorDocumentsSequence
    (series_item,) = study_item.ReferencedSeriesSequence
    assert series_item.ReferencedSOPSequence[0].ReferencedSOPInstanceUID == old.SOPInstanceUID
    # The late image once more: nothing new.
    storescu(node.dicom, write_study(tmp_path / "again", late_study[3:]))
    time.sleep(2)
    assert node.states()["done"] == done + 1


@needs("storescu")
def test_what_cannot_be_used_is_refused_with_a_status(node, study, tmp_path):
    (other,) = copy_of(study[:1], 2)
    other.SOPInstanceUID = other.file_meta.MediaStorageSOPInstanceUID = study[0].SOPInstanceUID
    other.StudyInstanceUID = study[0].StudyInstanceUID
    said = storescu(node.dicom, write_study(tmp_path / "other", [other]), words=["-d"])
    assert "another object of this SOPInstanceUID was accepted before" in said.stderr
    report = next(r for r in reports_in(node.folder / "archive") if r.Modality == "SR")
    report.SOPInstanceUID = report.file_meta.MediaStorageSOPInstanceUID = "2.25.1"
    said = storescu(node.dicom, write_study(tmp_path / "report", [report]))
    assert "No presentation context" in said.stdout + said.stderr


@needs("storescu")
def test_a_study_of_damaged_images_fails_and_says_why(node, tmp_path, capsys):
    damaged = copy_of(studies()[0][:1], 3)
    damaged[0].PixelData = damaged[0].PixelData[:100]
    storescu(node.dicom, write_study(tmp_path / "damaged", damaged))
    node.wait_until(failed=1)
    _, page = node.ask("/status", {"Authorization": f"Bearer {TOKEN}"})
    assert "Retry" in page.decode()
    assert main(["serve", "status", "--config", str(node.config)]) == 1
    said = capsys.readouterr().out
    assert "failed 1" in said
    line = next(line for line in said.splitlines() if " failed " in line and "images" in line)
    assert "PixelData" in line or "pixel" in line.lower()


def test_a_dicomweb_client_stores_a_study(node):
    client = DICOMwebClient(
        f"http://127.0.0.1:{node.http}/dicom-web", headers={"Authorization": f"Bearer {TOKEN}"}
    )
    done = node.states()["done"]
    answer = client.store_instances(copy_of(studies()[1], 4))
    assert len(answer.ReferencedSOPSequence) == 4
    node.wait_until(done=done + 1)


def test_a_part_that_is_no_dicom_is_refused_and_the_others_are_stored(node):
    (image,) = copy_of(studies()[1][:1], 5)
    head = b"--limit\r\nContent-Type: application/dicom\r\n\r\n"
    body = head + b"rubbish\r\n" + head + bytes_of(image) + b"\r\n--limit--\r\n"
    kind = 'multipart/related; type="application/dicom"; boundary=limit'
    headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": kind}
    status, answer = node.ask("/dicom-web/studies", headers, body)
    assert status == 202
    answer = pydicom.Dataset.from_json(json.loads(answer))
    assert answer.ReferencedSOPSequence[0].ReferencedSOPInstanceUID == image.SOPInstanceUID
    assert answer.FailedSOPSequence[0].FailureReason == 0xC000


@needs("storescu")
def test_a_clock_that_is_set_back_a_day_delays_no_study(tmp_path, study, monkeypatch):
    now, ahead = time.time, [0.0]
    monkeypatch.setattr(time, "time", lambda: now() + ahead[0])
    with serving(tmp_path, destinations=[{"name": "share", "folder": str(tmp_path / "share")}]) as node:
        assert storescu(node.dicom, write_study(tmp_path / "study", study)).returncode == 0
        node.wait_until(receiving=1)
        ahead[0] = -86400.0
        node.wait_until(done=1, seconds=120)
    assert {report.Modality for report in reports_in(tmp_path / "share")} == KINDS


def test_a_clock_that_is_set_back_does_not_repeat_an_earlier_drain(tmp_path, monkeypatch):
    now, ahead = time.time, [0.0]
    monkeypatch.setattr(time, "time", lambda: now() + ahead[0])
    node = NodeHere(tmp_path)
    node.files.mkdir()
    ledger = Ledger(f"sqlite:///{node.files / 'queue.sqlite'}")
    ledger.set_note("drain", str(time.time() - 60))
    ledger.close()
    try:
        node.start()
        ahead[0] = -3600.0
        time.sleep(2)
        assert node.status_of("/ready") == 200
    finally:
        node.stop()


def test_pages_ask_for_the_token_and_the_state_of_the_node_does_not(node):
    assert [node.ask(path)[0] for path in ("/health", "/ready", "/metrics")] == [200, 200, 200]
    assert node.ask("/status")[0] == 401
    assert node.ask("/dicom-web/studies", data=b"x")[0] == 401
    wrong = base64.b64encode(b"user:wrong").decode()
    assert node.ask("/status", {"Authorization": f"Basic {wrong}"})[0] == 401
    for nonsense in ("Basic \u00e9", "Basic ====", "Basic", "Bearer \u00e9"):
        assert node.ask("/status", {"Authorization": nonsense})[0] == 401
    right = base64.b64encode(f"user:{TOKEN}".encode()).decode()
    assert node.ask("/status", {"Authorization": f"Basic {right}"})[0] == 200
    for other_site in ("http://elsewhere.example", "null", "http://[", ""):
        headers = {"Authorization": f"Basic {right}", "Origin": other_site}
        assert node.ask("/status/0123456789abcdef/retry", headers, b"")[0] == 403
    assert node.ask("/status/..%2f..%2fqueue.sqlite", {"Authorization": f"Basic {right}"})[0] == 404


def test_identities_are_in_the_audit_log_alone(node):
    """After all the tests above: the log, the metrics, the pages, and the names of all files."""
    uids = {image.StudyInstanceUID for each in studies() for image in each}
    _, metrics = node.ask("/metrics")
    pages = ["/status", *(f"/status/{folder.name}" for folder in (node.files / "results").iterdir())]
    page = b"".join(node.ask(page, {"Authorization": f"Bearer {TOKEN}"})[1] for page in pages)
    assert b"<img " in page
    names = "\n".join(str(path.relative_to(node.files)) for path in node.files.rglob("*"))
    queue = b"".join(file.read_bytes() for file in node.files.glob("queue.sqlite*"))
    seen = node.log.read_bytes() + metrics + page + names.encode() + queue
    for secret in (*SECRETS, *uids, "2.25.77", "2.25.79", "STRANGER"):
        assert secret.encode() not in seen, secret
    (audit,) = (node.files / "audit").iterdir()
    assert audit.stat().st_mode & 0o777 == 0o600
    lines = [json.loads(line) for line in audit.read_text().splitlines()]
    assert {"received", "sent", "refused", "looked"} <= {line["event"] for line in lines}
    assert {line.get("sender") for line in lines} >= {"STORESCU", "STRANGER", "STOW-RS"}
    assert "secret-id" in audit.read_text()


@needs("storescu")
def test_a_drained_node_takes_nothing_more_and_ends(tmp_path, capsys):
    with serving(tmp_path / "drained", quiet_seconds=2) as node:
        storescu(node.dicom, write_study(tmp_path / "study", copy_of(studies()[0], 6)))
        assert main(["serve", "drain", "--config", str(node.config)]) == 0
        assert node.status_of("/ready") == 503
        refused = storescu(node.dicom, write_study(tmp_path / "more", copy_of(studies()[0], 7)))
        assert refused.returncode != 0
        node.process.join(120)
        assert not node.process.is_alive()
        assert main(["serve", "status", "--config", str(node.config)]) == 0
        assert "done 1" in capsys.readouterr().out


ORTHANC = needs("Orthanc")


def orthanc(folder, node, http, dicom):
    """An Orthanc that knows the node."""
    folder.mkdir()
    return start_orthanc(
        folder,
        HttpPort=http,
        DicomServerEnabled=True,
        DicomPort=dicom,
        DicomAet="ORTHANC",
        StableAge=1,
        DicomModalities={"clnet": ["CLNET", "127.0.0.1", node]},
    )


@ORTHANC
@pytest.mark.parametrize("way", ["C-STORE", "changes", "QIDO"])
def test_an_orthanc_gives_studies_and_takes_reports(way, tmp_path):
    http, dicom = free_port(), free_port()
    address = f"http://127.0.0.1:{http}"
    back = {
        "C-STORE": {"dicom": {"host": "127.0.0.1", "port": dicom, "ae_title": "ORTHANC"}},
        "changes": {"stow": f"{address}/dicom-web"},
        "QIDO": {"stow": f"{address}/dicom-web"},
    }[way]
    asked = {"changes": {"orthanc": address}, "QIDO": {"qido": f"{address}/dicom-web"}}.get(way)
    poll = [{"name": "orthanc", "every_seconds": 0.5, **asked}] if asked else []
    node = NodeHere(tmp_path / "node", destinations=[{"name": "orthanc", **back}], poll=poll)
    study = copy_of(studies()[0], 8)
    for image in study:
        image.StudyDate = time.strftime("%Y%m%d")
    with orthanc(tmp_path / "orthanc", node.dicom, http, dicom):
        try:
            node.start()
            for image in study:
                assert ask_orthanc(address, "/instances", bytes_of(image))["Status"] == "Success"
            if way == "C-STORE":
                (name,) = ask_orthanc(address, "/studies")
                job = json.dumps({"Resources": [name], "Synchronous": True}).encode()
                ask_orthanc(address, "/modalities/clnet/store", job)
            node.wait_until(done=1)
            (name,) = ask_orthanc(address, "/studies")  # the reports are in the study of their images
            series = [
                ask_orthanc(address, f"/series/{s}")
                for s in ask_orthanc(address, f"/studies/{name}")["Series"]
            ]
            assert {one["MainDicomTags"]["Modality"] for one in series} == {"MG", *KINDS}
            time.sleep(3)  # its reports do not come back as studies
            assert (node.metric("clnet_images_received_total"), node.states()["done"]) == (4, 1)
            assert node.metric('clnet_steps_total{end="done",step="analyse"}') == 1
        finally:
            node.stop()


def finish_studies(ledger, spool, *numbers):
    """Studies that were done, one second after the other."""
    for number in numbers:
        accepted = spool.accept(bytes_of(copy_of(studies()[0][:1], number)[0]), "SENDER")
        ledger.close_quiet(before=time.time())
        ledger.begin_analysis(accepted.study_id, 1, again=0)
        ledger.analysed(accepted.study_id, 1, 0, "", [], now=float(number))
        yield accepted.study_id


def test_finished_studies_are_removed_by_age_and_the_oldest_first_while_space_is_short(tmp_path, monkeypatch):
    from clnet.serve.node import Node, ServeSettings  # and with it MONAI

    days, day = {"retention": {"days": 20, "free_gb": 1}}, 86400
    node = Node(ServeSettings(folder=tmp_path, model="phantom", **days))
    ledger, spool = node._ledger, node._spool
    first, second, third = finish_studies(ledger, spool, 101, 102, 103)
    monkeypatch.setattr(spool, "free", lambda: 2 * 10**9)
    node._clean(101.5 + 20 * day)
    assert [ledger.study(study) is None for study in (first, second, third)] == [True, False, False]
    frees = iter([0, 2 * 10**9])
    monkeypatch.setattr(spool, "free", lambda: next(frees))
    node._clean(103.5)
    assert [ledger.study(study) is None for study in (first, second, third)] == [True, True, False]
    assert [spool.images_of(study).exists() for study in (first, second, third)] == [False, False, True]
    monkeypatch.setattr(spool, "free", lambda: 2 * 10**9)
    unfinished = spool.accept(bytes_of(copy_of(studies()[0][:1], 104)[0]), "SENDER").study_id
    monkeypatch.setattr(spool, "free", lambda: 0)
    node._clean(1000 * day)
    assert [study.study_id for study in ledger.last_studies(9)] == [unfinished]  # it is never removed
    ledger.close()


def test_status_shows_failed_studies_however_many_came_after_them(tmp_path, capsys):
    ledger = Ledger(f"sqlite:///{tmp_path / 'queue.sqlite'}")
    (tmp_path / "serve.yaml").write_text(f"folder: {tmp_path}")
    for number in range(30):
        ledger.received(f"{number:016}", "image", "SENDER", "MG", 0, now=number)
    ledger.close_quiet(before=0)
    ledger.begin_analysis("0" * 16, 1, again=0)
    ledger.analysis_failed("0" * 16, 1, "no memory", None, now=1)
    ledger.close()
    assert main(["serve", "status", "--config", str(tmp_path / "serve.yaml")]) == 1
    said = capsys.readouterr().out
    assert "no memory" in said
    assert said.count("failed ") == 2  # the number, and the study once


def test_reports_of_an_analysis_that_a_full_disk_ended_are_not_sent(tmp_path):
    from clnet.serve.analysis import report_files  # and with it MONAI

    for name in ("whole", ".half.unfinished"):
        (tmp_path / "studies" / name).mkdir(parents=True)
        (tmp_path / "studies" / name / "picture.dcm").touch()
    assert report_files(tmp_path) == [tmp_path / "studies" / "whole" / "picture.dcm"]


@needs("storescu")
def test_a_study_waits_for_a_full_disk_however_often_it_is_tried(tmp_path):
    retries = {**FAST, "analysis": 1}
    with serving(tmp_path / "node", quiet_seconds=1, retries=retries) as node:
        with full_disk(1_000_000):  # room for images and the queue, and not for a picture
            storescu(node.dicom, write_study(tmp_path / "study", copy_of(studies()[0], 10)))
            wait_for(lambda: len(node.events("analysis failed")) >= 3, seconds=60)
        assert "the disk is full" in node.events("analysis failed")[0]["reason"]
        node.wait_until(done=1)


@needs("storescu", "storescp")
def test_a_destination_that_is_down_gets_the_results_later(tmp_path):
    port = free_port()
    archive = {"name": "archive", "dicom": {"host": "127.0.0.1", "port": port, "ae_title": "STORESCP"}}
    with serving(tmp_path / "node", destinations=[archive]) as node:
        storescu(node.dicom, write_study(tmp_path / "study", copy_of(studies()[0], 9)))
        wait_for(lambda: len(node.events("sending failed")) >= 2)
        assert node.states()["sending"] == 1
        with storescp(tmp_path / "archive", port):
            node.wait_until(done=1)
        assert {report.Modality for report in reports_in(tmp_path / "archive")} == KINDS
