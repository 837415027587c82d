"""Several nodes on one queue in a real PostgreSQL: no study twice, none lost when one of them is killed."""

import json
import os
import pwd
import shutil
import subprocess
import threading
from pathlib import Path

import pydicom
import pytest
from serve_images import copy_of, studies
from servers import free_port, wait_for
from serving import ServedNode, needs, storescu, write_study

from clnet.serve.ledger import Ledger
from clnet.serve.shared_workers import SharedWorkers

PROGRAMS = next(iter(sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)), None)
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(PROGRAMS is None and not os.environ.get("CI"), reason="needs PostgreSQL"),
]


@pytest.fixture(scope="module")
def database(tmp_path_factory):
    """The address of a database of a PostgreSQL of our own; it refuses to be run by root."""
    folder, port = tmp_path_factory.mktemp("postgres"), free_port()
    user = {}
    if os.geteuid() == 0:
        account = pwd.getpwnam("postgres")
        user = {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
        shutil.chown(folder, "postgres")
        for parent in folder.parents[:2]:
            parent.chmod(0o755)
    data = folder / "data"
    initdb = [PROGRAMS / "initdb", "-D", data, "-U", "clnet", "-A", "trust", "--no-sync"]
    subprocess.run(initdb, check=True, capture_output=True, cwd=folder, **user)
    command = [PROGRAMS / "postgres", "-D", data, "-p", str(port), "-k", folder, "-h", "127.0.0.1"]
    server = subprocess.Popen(
        command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **user
    )
    ready = [PROGRAMS / "pg_isready", "-h", "127.0.0.1", "-p", str(port)]
    wait_for(lambda: subprocess.run(ready, check=False, capture_output=True).returncode == 0)
    yield f"postgresql://clnet@127.0.0.1:{port}/postgres"
    server.terminate()
    server.wait()


def test_the_ledger_takes_the_same_steps_in_postgresql(database):
    ledger = Ledger(database)
    assert ledger.received("0" * 16, "1", "S", "MG", 0, 1.0)
    assert not ledger.received("0" * 16, "1", "S", "MG", 0, 1.0)
    assert ledger.close_quiet(before=1) == 1
    assert ledger.begin_analysis("0" * 16, 1, again=0)
    assert ledger.analysed("0" * 16, 1, 2, "", ["x", "y"], now=2)
    x, y = ledger.due_deliveries(now=3)
    ledger.delivered(x, now=3)
    ledger.delivery_failed(y, "away", None, now=4)
    assert ledger.study("0" * 16).reason == "y: away"
    assert ledger.retry() == 1
    ledger.delivered(ledger.due_deliveries(now=5)[0], now=5)
    assert ledger.counts()["done"] == 1
    assert ledger.sent_before("0" * 16, 2) == 1
    assert ledger.forget("0" * 16, 1)
    ledger.set_note("a", "1"), ledger.set_note("a", "2")
    assert ledger.note("a") == "2"
    ledger.close()


@needs("storescu")
def test_two_nodes_share_the_work_and_one_takes_over_from_the_other(database, tmp_path):
    number = 10
    common = {
        "folder": str(tmp_path / "common"),
        "queue": database,
        "destinations": [{"name": "share", "folder": str(tmp_path / "share")}],
    }
    first, second = (ServedNode(tmp_path / name, **common) for name in ("first", "second"))
    try:
        first.start()
        second.start("--worker", wait=False)
        for n in range(number):
            folder = write_study(tmp_path / f"study{n}", copy_of(studies()[0], 20 + n))
            assert storescu(first.dicom, folder).returncode == 0
        wait_for(lambda: second.events("analysed"))
        wait_for(lambda: first.states()["analysing"] == 2)  # one by each node
        second.kill()
        first.wait_until(done=number)
        done = [event["study"] for node in (first, second) for event in node.events("analysed")]
        assert sorted(done) == sorted(set(done))
        taken_over = [event["study"] for event in first.events("job of a node that died")]
        # It may have been sending one study while it analysed another.
        assert 1 <= len(taken_over) == len(set(taken_over)) <= 2
        audit = (tmp_path / "common" / "audit").glob("*.jsonl")
        lines = [json.loads(line) for file in audit for line in file.read_text().splitlines()]
        # A node that is killed right after it has sent reports may have noted them; then they are sent again.
        assert len({line["SOPInstanceUID"] for line in lines if line["event"] == "sent"}) == 3 * number
        shared = list((tmp_path / "share").iterdir())
        assert len(shared) == number
        assert all(len(list(folder.glob("*.dcm"))) == 3 for folder in shared)
        reports = [pydicom.dcmread(folder / "measurements.dcm") for folder in shared]
        assert {report.StudyInstanceUID for report in reports} == {f"2.25.77{20 + n}" for n in range(number)}
    finally:
        first.stop()
        second.kill()


def test_workers_that_are_stopped_as_soon_as_they_have_started_end(database):
    ledger = Ledger(database)
    workers = SharedWorkers(ledger, None, database)
    workers.start()
    stopping = threading.Thread(target=workers.stop, daemon=True)
    stopping.start()
    stopping.join(60)
    assert not stopping.is_alive()
    assert not workers.is_alive()
    workers.stop()  # once more, which has nothing left to stop
    ledger.close()
