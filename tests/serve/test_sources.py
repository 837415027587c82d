"""Archives that are asked for studies: Orthanc by its changes, and by QIDO-RS; by TLS: test_web.py."""

import time
import tracemalloc
from contextlib import contextmanager
from functools import partial

import pytest
from pydicom.uid import DeflatedExplicitVRLittleEndian
from serve_images import SECRETS, bytes_of, copy_of, studies
from servers import ask_orthanc, free_port, start_orthanc
from serving import needs

from clnet.data import deflated
from clnet.serve.destinations import http_session, web_client
from clnet.serve.intake import Intake
from clnet.serve.journal import Audit
from clnet.serve.ledger import Ledger
from clnet.serve.metrics import Metrics
from clnet.serve.settings import Poll
from clnet.serve.sources import Source, SourceError, studies_in
from clnet.serve.spool import Spool

pytestmark = needs("Orthanc")


class Polling:
    """What a node has to poll with, and no model."""

    def __init__(self, folder, most_bytes=10**6, **poll):
        folder.mkdir()
        self.ledger, self.metrics = Ledger(f"sqlite:///{folder / 'queue.sqlite'}"), Metrics()
        spool = Spool(folder, self.ledger, most_bytes, free_bytes=0)
        intake = Intake(spool, self.metrics, Audit(folder / "audit"))
        self.source = Source(Poll(name="archive", **poll), intake, self.ledger)

    def images(self):
        """The number of images of each study that was taken."""
        return [study.images for study in self.ledger.last_studies(100)]

    def refused(self):
        """The number of images that were refused for their size."""
        return self.metrics.refused.labels("0xA700")._value.get()


@contextmanager
def orthanc_with(folder, *sets, port=None, **settings):
    """An Orthanc in which there are these studies."""
    folder.mkdir()
    with start_orthanc(folder, HttpPort=port or free_port(), StableAge=1, **settings) as address:
        for study in sets:
            put(address, study)
        yield address


def put(address, study):
    """Put a study of today into an Orthanc, and wait until it calls it stable."""
    stable = changes(address)
    for image in study:
        image.StudyDate = time.strftime("%Y%m%d")
        ask_orthanc(address, "/instances", bytes_of(image))
    while changes(address) == stable:
        time.sleep(0.1)


def changes(address):
    """How many studies have become stable."""
    return sum(c["ChangeType"] == "StableStudy" for c in ask_orthanc(address, "/changes")["Changes"])


@pytest.mark.parametrize("way", ["orthanc", "qido"])
def test_what_is_refused_for_ever_is_fetched_once(way, tmp_path):
    with orthanc_with(tmp_path / "orthanc", copy_of(studies()[0], 70)) as address:
        where = {"orthanc": address, "qido": f"{address}/dicom-web"}[way]
        polling = Polling(tmp_path / "node", most_bytes=1000, **{way: where})
        for _ in range(3):
            polling.source.poll()
        assert polling.refused() == 4
        assert polling.images() == []


def test_a_deflated_bomb_is_refused_before_it_fills_the_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(deflated, "MOST_INFLATED", 64 * 2**20)
    bomb, *others = copy_of(studies()[0], 71)
    bomb.file_meta.TransferSyntaxUID = DeflatedExplicitVRLittleEndian
    bomb.private_block(0x0011, "clnet test", create=True).add_new(0x01, "OB", bytes(400 * 2**20))
    with orthanc_with(tmp_path / "orthanc", [bomb, *others]) as address:
        polling = Polling(tmp_path / "node", qido=f"{address}/dicom-web")
        tracemalloc.start()
        polling.source.poll()
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert polling.images() == [3]
    assert peak < 32 * 2**20


def test_an_archive_that_lists_few_studies_at_a_time_is_asked_for_the_others(tmp_path):
    """Here Orthanc is told to list two; with a filter by modality, version 1.10 skips the wrong ones."""
    sets = [copy_of(studies()[0][:1], 76 + number) for number in range(3)]
    with orthanc_with(tmp_path / "orthanc", *sets) as address:
        client = web_client(f"{address}/dicom-web", http_session(None, None, None))
        client.search_for_studies = partial(client.search_for_studies, limit=2)
        found = list(studies_in(client, {"StudyDate": time.strftime("%Y%m%d")}))
    assert sorted(found) == ["2.25.7776", "2.25.7777", "2.25.7778"]


def test_an_orthanc_that_was_set_up_anew_is_followed_from_its_first_change(tmp_path):
    port = free_port()
    with orthanc_with(
        tmp_path / "old", copy_of(studies()[0], 71), copy_of(studies()[1], 72), port=port
    ) as address:
        polling = Polling(tmp_path / "node", orthanc=address)
        polling.source.poll()
        assert polling.images() == [4, 4]
    with orthanc_with(tmp_path / "new", copy_of(studies()[0][:1], 73), port=port):
        for _ in range(2):
            polling.source.poll()
        assert sorted(polling.images()) == [1, 4, 4]


@pytest.mark.parametrize("way", ["orthanc", "qido"])
def test_a_node_that_is_to_end_takes_no_further_study_and_the_next_one_takes_the_others(way, tmp_path):
    sets = [copy_of(studies()[0], 74), copy_of(studies()[1], 75)]
    with orthanc_with(tmp_path / "orthanc", *sets) as address:
        where = {"orthanc": address, "qido": f"{address}/dicom-web"}[way]
        polling = Polling(tmp_path / "node", **{way: where})
        polling.source._is_over = lambda: polling.images() != []
        polling.source.poll()
        assert polling.images() == [4]
        polling.source._is_over = lambda: False
        polling.source.poll()
        assert polling.images() == [4, 4]


@pytest.mark.parametrize("way", ["orthanc", "qido"])
def test_an_archive_that_fails_is_quoted_by_its_status_alone(way, tmp_path):
    """Its address names the study, so that a library's words about it must not be in the log."""
    uncached = {"MaximumStorageCacheSize": 0}
    with orthanc_with(tmp_path / "orthanc", copy_of(studies()[0], 75), **uncached) as address:
        for file in (tmp_path / "orthanc" / "storage").glob("??/??/*"):
            file.unlink()
        where = {"orthanc": address, "qido": f"{address}/dicom-web"}[way]
        polling = Polling(tmp_path / "node", **{way: where})
        with pytest.raises(SourceError) as failed:
            polling.source.poll()
        assert str(failed.value).startswith("the server answered HTTP ")
        assert not any(secret in str(failed.value) for secret in (*SECRETS, "2.25"))
