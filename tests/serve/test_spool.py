"""Images on disk: what is accepted is there whenever the process is killed, and what is refused says why."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from serve_images import SECRETS, bytes_of, copy_of, studies

from clnet.serve import spool as spool_module
from clnet.serve.ledger import Ledger
from clnet.serve.spool import RefusedError, Spool, study_id_of


@pytest.fixture
def spool(tmp_path):
    ledger = Ledger(f"sqlite:///{tmp_path / 'queue.sqlite'}")
    yield Spool(tmp_path, ledger, most_bytes=10**6, free_bytes=0)
    ledger.close()


def finish(spool, study_id):
    ledger, images = spool.ledger, spool.ledger.study(study_id).images
    ledger.close_quiet(before=time.time())
    ledger.begin_analysis(study_id, images, again=0)
    ledger.analysed(study_id, images, 0, "", [], now=1)
    return ledger.study(study_id)


def test_an_accepted_image_is_on_disk_as_it_was_sent(spool):
    data = bytes_of(studies()[0][0])
    accepted = spool.accept(data, "SENDER")
    (file,) = spool.images_of(accepted.study_id).iterdir()
    assert file.read_bytes() == data
    assert spool.ledger.study(accepted.study_id).images == 1


def test_the_same_image_is_accepted_again_and_counted_once(spool):
    image = studies()[0][0]
    first = spool.accept(bytes_of(image), "SENDER")
    implicit = copy_of([image], 1)[0]
    for keyword in ("StudyInstanceUID", "SeriesInstanceUID", "SOPInstanceUID", "PatientID"):
        setattr(implicit, keyword, image[keyword].value)
    implicit.file_meta.MediaStorageSOPInstanceUID = image.SOPInstanceUID
    implicit.file_meta.TransferSyntaxUID = "1.2.840.10008.1.2"
    again = spool.accept(bytes_of(implicit), "OTHER")
    assert (first.is_new, again.is_new) == (True, False)
    assert spool.ledger.study(first.study_id).images == 1


def changed(**values):
    (image,) = copy_of(studies()[0][:1], 5)
    for keyword, value in values.items():
        setattr(image, keyword, value)
    return bytes_of(image)


@pytest.mark.parametrize(
    ("make", "status", "words"),
    [
        (lambda: b"nothing" * 100, 0xC000, "not a readable DICOM object"),
        (lambda: changed()[:140], 0xC000, "not a readable|missing"),
        (lambda: changed(StudyInstanceUID=""), 0xC000, "StudyInstanceUID is missing"),
        (lambda: changed(StudyInstanceUID="../../etc"), 0xC000, "StudyInstanceUID is missing or not valid"),
        (lambda: changed(SOPClassUID="1.2.840.10008.5.1.4.1.1.88.33"), 0x0122, "Comprehensive SR"),
        (lambda: changed() + b"\0" * 10**6, 0xA700, "larger than 1 MB"),
    ],
    ids=["no DICOM", "cut off", "no study", "a path as a UID", "a report", "too large"],
)
def test_what_cannot_be_used_is_refused(spool, make, status, words):
    with pytest.raises(RefusedError, match=words) as refused:
        spool.accept(make(), "SENDER")
    assert refused.value.status == status
    assert not any(secret in str(refused.value) for secret in SECRETS)
    assert list(spool.root.glob("incoming/*")) == []


def test_secondary_captures_are_accepted_if_asked_for_but_not_our_own(tmp_path, spool):
    capture = "1.2.840.10008.5.1.4.1.1.7"
    with pytest.raises(RefusedError, match="Secondary Capture Image Storage is not accepted"):
        spool.accept(changed(SOPClassUID=capture), "SENDER")
    films = Spool(tmp_path, spool.ledger, 10**6, 0, secondary_capture=True)
    own = changed(SOPClassUID=capture, Manufacturer="clnet", ManufacturerModelName="CL-Net")
    with pytest.raises(RefusedError, match="a report of clnet, which came back"):
        films.accept(own, "SENDER")
    assert films.accept(changed(SOPClassUID=capture), "SENDER").is_new


def test_another_image_of_the_same_name_is_refused(spool):
    spool.accept(changed(), "SENDER")
    with pytest.raises(RefusedError, match="another object") as refused:
        spool.accept(changed(Rows=7), "SENDER")
    assert refused.value.status == 0x0111


def test_an_object_that_was_not_announced_is_refused(spool):
    with pytest.raises(RefusedError, match="announced") as refused:
        spool.accept(changed(), "SENDER", expected=("1.2.840.10008.5.1.4.1.1.1.2", "1.2.3"))
    assert refused.value.status == 0xA900


def test_a_full_disk_refuses_before_it_is_full(tmp_path, spool):
    spool.free_bytes = 10**18
    with pytest.raises(RefusedError, match="the disk is full") as refused:
        spool.accept(changed(), "SENDER")
    assert refused.value.status == 0xA700


def test_a_removed_study_leaves_nothing(spool):
    accepted = spool.accept(changed(), "SENDER")
    results = spool.results_of(accepted.study_id, 1)
    results.mkdir(parents=True)
    assert not spool.remove(spool.ledger.study(accepted.study_id))  # it is not finished
    assert len(list(spool.images_of(accepted.study_id).iterdir())) == 1
    assert spool.remove(finish(spool, accepted.study_id))
    assert not results.exists()
    assert list(spool.root.glob("*/*")) == []


@pytest.mark.parametrize(
    "moment", ["before it is put aside", "before it is forgotten", "after it was forgotten"]
)
def test_an_image_that_comes_while_its_study_is_removed_is_not_lost(spool, moment, monkeypatch):
    first, second = copy_of(studies()[0][:2], 6)
    accepted = spool.accept(bytes_of(first), "SENDER")
    study = finish(spool, accepted.study_id)
    forget = spool.ledger.forget

    def accept():
        spool.accept(bytes_of(second), "SENDER")

    def forget_with_company(study_id, images):
        if moment == "before it is forgotten":
            accept()
        done = forget(study_id, images)
        if moment == "after it was forgotten":
            accept()
        return done

    if moment == "before it is put aside":
        accept()
    monkeypatch.setattr(spool.ledger, "forget", forget_with_company)
    removed = spool.remove(study)
    assert removed == (moment == "after it was forgotten")
    names = {file.name for file in spool.images_of(accepted.study_id).iterdir()}
    assert len(names) == (1 if removed else 2)
    assert spool.ledger.study(accepted.study_id).images == len(names)


def test_a_removal_that_was_killed_is_undone_or_finished(spool, monkeypatch):
    accepted = [spool.accept(bytes_of(copy_of(studies()[0][:1], n)[0]), "S").study_id for n in (7, 8)]
    forget = spool.ledger.forget
    for study_id, forgotten in zip(accepted, (False, True), strict=True):
        study = finish(spool, study_id)

        def killed(*words, forgotten=forgotten):
            if forgotten:
                forget(*words)
            raise KeyboardInterrupt

        monkeypatch.setattr(spool.ledger, "forget", killed)
        with pytest.raises(KeyboardInterrupt):
            spool.remove(study)
    spool.clean(age=0)
    assert [len(list(spool.images_of(study_id).glob("*"))) for study_id in accepted] == [1, 0]
    assert list(spool.root.glob("trash/*")) == []


def test_a_study_that_two_nodes_remove_at_the_same_time_leaves_nothing(spool, monkeypatch):
    accepted = spool.accept(changed(), "SENDER")
    study, forget = finish(spool, accepted.study_id), spool.ledger.forget

    def forget_after_the_other_node(*words):
        monkeypatch.setattr(spool.ledger, "forget", forget)
        assert forget(*words)  # the other node found no images to put aside
        return forget(*words)

    monkeypatch.setattr(spool.ledger, "forget", forget_after_the_other_node)
    assert not spool.remove(study)
    assert list(spool.root.glob("*/*")) == []
    assert not spool.remove(study)  # it comes to this study only now


@pytest.mark.parametrize(
    "place", ["trash/0123456789abcdef-4", "incoming/0123456789abcdef/image.dcm.unfinished"]
)
def test_what_another_node_removes_while_it_is_looked_at_is_left_to_that_node(spool, place, monkeypatch):
    file, stat = spool.root / place, Path.stat
    file.parent.mkdir(exist_ok=True)
    file.touch()

    def stat_too_late(path, **options):
        if path == file:
            file.unlink(missing_ok=True)
        return stat(path, **options)

    monkeypatch.setattr(Path, "stat", stat_too_late)
    spool.clean(age=3600)
    assert not file.exists()


RECEIVER = """
import sys
sys.path[:0] = {paths!r}
from pathlib import Path
from clnet.serve.ledger import Ledger
from clnet.serve.spool import Spool
folder = Path({folder!r})
spool = Spool(folder, Ledger(f"sqlite:///{{folder}}/queue.sqlite"), 10**6, 0)
for file in sorted((folder / "sent").iterdir())[{start}:]:
    spool.accept(file.read_bytes(), "SENDER")
    print(file.stem, flush=True)
"""


@pytest.mark.slow
def test_what_was_accepted_is_there_after_the_process_was_killed(tmp_path):
    (tmp_path / "sent").mkdir()
    for number in range(60):
        (image,) = copy_of(studies()[0][:1], 100 + number)
        (tmp_path / "sent" / f"{number:03}").write_bytes(bytes_of(image))
    accepted, chance = set(), random.Random(4)
    for start in range(0, 60, 10):
        code = RECEIVER.format(paths=[p for p in sys.path if p], folder=str(tmp_path), start=start)
        process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
        accepted.add(process.stdout.readline().strip())  # it has begun
        time.sleep(chance.uniform(0, 0.3))
        os.kill(process.pid, signal.SIGKILL)
        accepted |= {line for line in process.communicate()[0].split("\n") if len(line) == 3}
    ledger = Ledger(f"sqlite:///{tmp_path / 'queue.sqlite'}")
    assert len(accepted) >= 6
    for name in accepted:
        study_id = study_id_of(f"2.25.77{100 + int(name)}")
        assert ledger.study(study_id).images == 1
        (file,) = (tmp_path / "incoming" / study_id).glob("*.dcm")
        assert file.read_bytes() == (tmp_path / "sent" / name).read_bytes()
    ledger.close()


def test_an_image_is_synced_before_it_is_accepted(spool, monkeypatch):
    """The order of system calls: the file, its name, then the queue."""
    calls = []
    fsync, received = os.fsync, spool.ledger.received

    def watched(descriptor):
        calls.append(str(Path(f"/proc/self/fd/{descriptor}").readlink()))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", watched)
    monkeypatch.setattr(spool.ledger, "received", lambda *words: calls.append("queue") or received(*words))
    accepted = spool.accept(changed(), "SENDER")
    study = str(spool.images_of(accepted.study_id))
    assert calls[0].startswith(f"{study}/{accepted.image_id}.dcm.")
    assert calls[1:] == [study, str(spool.root / "incoming"), "queue"]


def test_a_disk_that_refuses_in_the_middle_leaves_nothing(spool, monkeypatch):
    usage = SimpleNamespace(free=10**12)
    monkeypatch.setattr(spool_module.shutil, "disk_usage", lambda _: usage)
    limited = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000)); "
        "import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); "
        f"sys.path[:0] = {[p for p in sys.path if p]!r}; "
        "from pathlib import Path; from clnet.serve.spool import Spool, RefusedError; "
        "ledger = type('Ledger', (), {})(); "
        f"spool = Spool(Path({str(spool.root)!r}), ledger, 10**6, 0)\n"
        "try: spool.accept(sys.stdin.buffer.read(), 'SENDER')\n"
        "except RefusedError as refusal: print(hex(refusal.status), refusal)"
    )
    said = subprocess.run(
        [sys.executable, "-c", limited], input=changed(), capture_output=True, check=True
    ).stdout.decode()
    assert said == "0xa700 the disk refuses it (File too large)\n"
    assert list(spool.root.glob("incoming/*/*")) == []
