"""A label is saved whole or not at all, whoever else saves and whenever the server is killed."""

import json
import subprocess

import pytest
from label_client import Client
from label_server import NO_SCORING, PYTHON, ROOT, needs_venv, start_server

from clnet.phantom.dataset import PhantomSettings, make_phantom


@pytest.fixture
def studies(tmp_path):
    make_phantom(tmp_path / "phantom", PhantomSettings(pairs=2, seed=7), workers=1)
    return tmp_path / "phantom" / "images"


def saved(way, studies, number):
    needs_venv()
    script = ROOT / "scripts" / "label_saves.py"
    done = subprocess.run(
        [PYTHON, "-W", "ignore", script, way, studies, str(number)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_a_kill_while_a_label_is_saved_leaves_the_old_or_the_new_one_whole(studies):
    found = saved("kills", studies, 40)
    assert found["old"] + found["newer"] == 40
    assert min(found["old"], found["newer"]) > 2
    assert found["saved afterwards"] == 40
    assert found["killed"] > 30
    assert found["left over"] == 0


def test_labels_of_a_pair_that_are_saved_at_once_never_mix(studies):
    found = saved("together", studies, 12)
    assert (found["whole"], found["mixed"]) == (8 * 12, 0)


def test_a_server_starts_on_damaged_files_sets_them_aside_and_finds_the_other_labels(studies, tmp_path):
    label = {"boxes": [[10, 20, 30, 40]], "lesion_ids": ["1"]}
    final = studies / "labels" / "final"
    final.mkdir(parents=True)
    (final / "00000_L_CC.dcm.json").write_text(json.dumps(label))
    (final / "00000_L_MLO.dcm.json").write_text('{"boxes": [[10, 20,')
    (studies / "datastore_v2.json").write_text('{"name": "new-dataset", "descr')
    (studies / "labels" / "pending.json").write_bytes(b"\x00" * 20)
    with start_server(studies, tmp_path / "app", **NO_SCORING) as address:
        client = Client(address)
        pair = client.pair_of("00000_L_CC.dcm")
        assert client.get(f"/clnet/pairs/{pair['pair_id']}")["label"] == {"cc": label, "mlo": None}
        both = {"cc": label, "mlo": label}
        assert client.good(client.put_label(pair["pair_id"], both))["label"] == both
    damaged = {file.name.split(".json")[0]: file for file in studies.rglob("*.damaged")}
    assert set(damaged) == {"00000_L_MLO.dcm", "datastore_v2", "pending"}
    assert damaged["00000_L_MLO.dcm"].read_text() == '{"boxes": [[10, 20,'
    said = (tmp_path / "app" / "server.txt").read_text()
    for file in damaged.values():
        assert f"it is set aside as {file.name}" in said
