"""The commands of docs/label.md, run on the server that the first of them starts."""

import json
import os
import re
import subprocess

import pytest
from label_client import Client
from label_server import NO_SCORING, PYTHON, ROOT, TOKEN, needs_venv
from page_commands import commands_of
from servers import free_port, running

PAGE = "docs/label.md"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder in which the paths of the page exist."""
    folder = tmp_path_factory.mktemp("docs")
    (folder / "bundle").symlink_to(ROOT / "bundle")
    return folder


@pytest.fixture(scope="module")
def address(folder):
    needs_venv()
    first, *_ = commands_of(PAGE)
    assert first == ["./scripts/label"]
    port = free_port()
    address = f"http://127.0.0.1:{port}"
    start = [ROOT / "scripts" / "label", "--port", port]
    env = {**NO_SCORING, "CLNET_LABEL_TOKEN": TOKEN}
    with running(start, folder / "server.txt", f"{address}/clnet/", env, cwd=folder):
        yield address


def test_the_server_prints_the_address_of_the_page(address, folder):
    assert f"Annotation page: {address}/clnet/#token={TOKEN}\n" in (folder / "server.txt").read_text()
    assert "<html" in Client(address).ask("GET", "/clnet/").text


def test_every_command_runs(address, folder, tmp_path):
    (tmp_path / "output").symlink_to(folder / "output")
    (tmp_path / "bundle").symlink_to(ROOT / "bundle")
    ran = []
    for command in list(commands_of(PAGE))[1:]:
        settings = dict(word.split("=", 1) for word in command if re.match("[A-Z_]+=", word))
        program, *words = command[len(settings) :]
        if program == "curl":
            words = [word.replace("http://127.0.0.1:8000", address) for word in words]
            words = [word.replace("$CLNET_LABEL_TOKEN", TOKEN) for word in words]
            words = ["--silent", "--show-error", "--fail-with-body", *words]
        elif program == "./scripts/label" or "start_server" in words:
            words.append("--dryrun")  # all but the server itself, which runs above and in other tests
        if program.startswith((".venv-label/", "./scripts/")):
            program = str(ROOT / program)
        done = subprocess.run(
            [program, *words],
            cwd=tmp_path,
            env={**os.environ, **settings},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
        ran.append(program)
    assert ran.count("curl") == 8
    assert (tmp_path / "report.dcm").read_bytes()[128:132] == b"DICM"


def test_the_response_shown_is_the_real_one(address):
    text = (ROOT / PAGE).read_text()
    shown = json.loads(re.search(r"```json\n(.*?)```", text, re.DOTALL)[1].replace("{…}", "{}"))
    answer = Client(address).infer("00002_R_CC.dcm").json()
    for key in ("model", "notice", "pair_id", "image", "view", "partner", "warnings"):
        assert shown[key] == answer[key]
    for said, box in zip(shown["boxes"], answer["boxes"], strict=False):
        assert said["box"] == [round(edge, 1) for edge in box["box"]]
        assert said["score"] == round(box["score"], 2)
        assert said["partner"]["link_score"] == round(box["partner"]["link_score"], 2)


def test_the_variables_named_exist_in_monai_label(address):
    names = set(re.findall(r"MONAI_LABEL_[A-Z_]+", (ROOT / PAGE).read_text()))
    code = "from monailabel.config import Settings; print(*Settings.model_fields)"
    known = subprocess.run([PYTHON, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert len(names) >= 6
    assert names <= set(known)
