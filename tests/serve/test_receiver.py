"""The DICOM listener among senders of others: dcmtk's storescu and echoscu, plain and by TLS."""

import json
import subprocess
from contextlib import contextmanager

import pydicom
import pytest
from full_disk import full_disk
from pynetdicom import AE
from pynetdicom.sop_class import Verification
from serve_images import copy_of, studies
from servers import free_port
from serving import make_certificate, needs, storescu, write_study

from clnet.serve.intake import Intake
from clnet.serve.journal import Audit
from clnet.serve.ledger import Ledger
from clnet.serve.metrics import Metrics
from clnet.serve.receiver import Receiver
from clnet.serve.settings import Dicom, Sender, Tls
from clnet.serve.spool import Spool

pytestmark = needs("storescu", "echoscu")
SENDERS = (
    Sender(ae_title="STORESCU", address="127.0.0.1", priority=3),
    Sender(ae_title="AWAY", address="10.9.8.7"),
)


class Listening:
    """A receiver and what is behind it."""

    def __init__(self, folder, **settings):
        self.folder, self.is_draining, self.port = folder, False, free_port()
        self.ledger = Ledger(f"sqlite:///{folder / 'queue.sqlite'}")
        self.spool = Spool(folder, self.ledger, most_bytes=10**6, free_bytes=0)
        self.metrics = Metrics()
        intake = Intake(self.spool, self.metrics, Audit(folder / "audit"))
        dicom = Dicom(port=self.port, senders=SENDERS, **settings)
        self.receiver = Receiver(dicom, intake, lambda: self.is_draining)

    def echo(self, called="CLNET", calling="STORESCU", words=()):
        """(exit status, what it says) of echoscu."""
        command = ["echoscu", *words, "-aet", calling, "-aec", called, "127.0.0.1", str(self.port)]
        said = subprocess.run(command, capture_output=True, text=True, check=False)
        return said.returncode, said.stdout + said.stderr


@contextmanager
def listening(folder, **settings):
    node = Listening(folder, **settings)
    node.receiver.start()
    yield node
    node.receiver.stop()
    node.ledger.close()


@pytest.fixture
def node(tmp_path):
    with listening(tmp_path / "node") as node:
        yield node


@pytest.fixture(autouse=True)
def _folder(tmp_path):
    (tmp_path / "node").mkdir()


@pytest.mark.parametrize(
    ("called", "calling", "status", "words"),
    [
        ("CLNET", "STORESCU", 0, ""),
        ("OTHER", "STORESCU", 1, "Called AE Title Not Recognized"),
        ("CLNET", "STRANGER", 1, "Calling AE Title Not Recognized"),
        ("CLNET", "AWAY", 1, "Calling AE Title Not Recognized"),  # a known title from another address
    ],
)
def test_it_answers_those_it_knows_and_tells_others_why_not(node, called, calling, status, words):
    code, said = node.echo(called, calling)
    assert code == status
    assert words in said


def test_a_stranger_is_rejected_even_if_a_full_disk_keeps_that_from_the_audit_log(node):
    with full_disk():
        code, said = node.echo(calling="STRANGER")
    assert code == 1
    assert "Calling AE Title Not Recognized" in said


@pytest.mark.parametrize("room", [0, 30_000], ids=["for nothing", "for the image, not for the queue"])
def test_a_sender_reads_that_the_disk_is_full_whatever_cannot_be_written(node, tmp_path, room):
    study = write_study(tmp_path / "study", copy_of(studies()[0][:1], 9))
    with full_disk(room):
        said = storescu(node.port, study)
    assert "OutOfResources" in said.stdout + said.stderr
    assert node.ledger.last_studies(5) == []
    assert storescu(node.port, study).returncode == 0


def test_one_association_too_many_is_rejected_and_noted(tmp_path):
    with listening(tmp_path / "node", most_associations=1) as node:
        other = AE("STORESCU")
        other.add_requested_context(Verification)
        held = other.associate("127.0.0.1", node.port, ae_title="CLNET")
        code, said = node.echo()
        held.release()
        assert code == 1
        assert "Local Limit Exceeded" in said
        (audit,) = (node.folder / "audit").iterdir()
        (line,) = map(json.loads, audit.read_text().splitlines())
        assert (line["event"], line["reason"]) == ("refused", "too many associations")
        assert line["sender"] == "STORESCU"


def test_a_study_is_in_the_queue_when_it_has_been_sent(node, tmp_path):
    study = copy_of(studies()[0], 1)
    said = storescu(node.port, write_study(tmp_path / "study", study))
    assert said.returncode == 0
    (found,) = node.ledger.last_studies(5)
    assert (found.state, found.images, found.sender, found.priority) == ("receiving", 4, "STORESCU", 3)
    files = node.spool.images_of(found.study_id).iterdir()
    assert {pydicom.dcmread(file).SOPInstanceUID for file in files} == {i.SOPInstanceUID for i in study}
    assert storescu(node.port, write_study(tmp_path / "again", study)).returncode == 0
    assert node.ledger.last_studies(5) == [found]


def test_refusals_are_in_the_log_of_the_sender(node, tmp_path):
    (image,) = copy_of(studies()[0][:1], 2)
    storescu(node.port, write_study(tmp_path / "image", [image]))
    image.Rows = 7
    said = storescu(node.port, write_study(tmp_path / "other", [image]))
    assert "0x111" in said.stdout + said.stderr
    (image,) = copy_of(studies()[0][:1], 3)
    image.add_new(0x00091010, "OB", b"\0" * 10**6)
    said = storescu(node.port, write_study(tmp_path / "large", [image]))
    assert "OutOfResources" in said.stdout + said.stderr
    image.SOPClassUID = image.file_meta.MediaStorageSOPClassUID = "1.2.840.10008.5.1.4.1.1.88.33"
    said = storescu(node.port, write_study(tmp_path / "report", [image]))
    assert "No presentation context" in said.stdout + said.stderr
    node.spool.free_bytes = 10**18
    said = storescu(node.port, write_study(tmp_path / "full", copy_of(studies()[0][:1], 4)))
    assert "OutOfResources" in said.stdout + said.stderr
    (audit,) = (node.folder / "audit").iterdir()
    statuses = [json.loads(line).get("status") for line in audit.read_text().splitlines()]
    assert statuses == [None, "0x0111", "0xA700", "0xA700"]


def test_no_more_of_an_object_is_held_than_shows_that_it_is_too_large(node, tmp_path, monkeypatch):
    (image,) = copy_of(studies()[0][:1], 7)
    image.add_new(0x00091010, "OB", b"\0" * 50 * 10**6)
    held, accept = [], node.spool.accept
    monkeypatch.setattr(
        node.spool, "accept", lambda data, *words: held.append(len(data)) or accept(data, *words)
    )
    said = storescu(node.port, write_study(tmp_path / "huge", [image]))
    assert "OutOfResources" in said.stdout + said.stderr
    (bytes_held,) = held
    assert 10**6 < bytes_held < 1.2 * 10**6
    study = write_study(tmp_path / "next", copy_of(studies()[0], 8))
    assert storescu(node.port, study).returncode == 0  # and the node goes on


def test_half_an_object_leaves_nothing(node, tmp_path):
    """A sender that is killed in the middle of an object: dcmtk's, whose connection is cut."""
    images = copy_of(studies()[0][:1], 5)
    images[0].PixelData = bytes(900_000)
    images[0].Rows, images[0].Columns = 500, 900
    folder = write_study(tmp_path / "study", images)
    sender = subprocess.Popen(
        ["storescu", "-aet", "STORESCU", "-aec", "CLNET", "-pdu", "4096", "127.0.0.1", str(node.port)]
        + [str(file) for file in folder.iterdir()]
    )
    sender.kill()
    sender.wait()
    files = list(node.folder.glob("incoming/*/*"))
    assert all(file.suffix == ".dcm" for file in files)
    assert len(files) == sum(study.images for study in node.ledger.last_studies(5))
    assert node.echo()[0] == 0  # and the node goes on


def test_a_node_that_drains_tells_senders_to_come_later(node):
    node.is_draining = True
    code, said = node.echo()
    assert code == 1
    assert "Rejected Transient" in said


@needs("openssl")
def test_with_tls_only_those_with_a_certificate_get_in(tmp_path):
    key, certificate = make_certificate(tmp_path, "node")
    sender_key, sender_certificate = make_certificate(tmp_path, "sender")
    stranger_key, stranger_certificate = make_certificate(tmp_path, "stranger")
    tls = Tls(certificate=certificate, key=key, authority=sender_certificate)
    with listening(tmp_path / "node", tls=tls) as node:

        def words(key, certificate):
            return ["+tls", str(key), str(certificate), "+cf", str(tmp_path / "node.pem")]

        assert node.echo(words=words(sender_key, sender_certificate))[0] == 0
        assert node.echo(words=words(stranger_key, stranger_certificate))[0] != 0
        assert node.echo()[0] != 0
        study = write_study(tmp_path / "study", copy_of(studies()[0][:1], 6))
        assert storescu(node.port, study, words=words(sender_key, sender_certificate)).returncode == 0
        assert len(node.ledger.last_studies(5)) == 1
