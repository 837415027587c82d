"""The commands and examples of docs/serve.md, and its trial in a small form."""

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pydicom
import pytest
import serve_trial
import yaml
from page_commands import ROOT, commands_of
from pydantic import BaseModel
from serving import ServedNode, needs

from clnet.cli.main import main
from clnet.reports.predecessor import refer_to_predecessor
from clnet.serve.settings import ServeSettings, read_settings

PAGE = "docs/serve.md"
EXAMPLES = ROOT / "docs" / "serve"


def test_every_command_of_the_page_runs(tmp_path, monkeypatch, capsys):
    commands = list(commands_of(PAGE))
    serve = [words[1:] for words in commands if words[0] == "clnet"]
    scripts = [words for words in commands if words[0].startswith("./scripts/")]
    assert [words[0] for words in commands if words not in scripts] == ["pip", *["clnet"] * len(serve)]
    node = ServedNode(tmp_path)  # its settings are in serve.yaml there
    monkeypatch.chdir(tmp_path)
    assert serve[0] == ["serve", "--config", "serve.yaml"]
    node.start()
    for words, expected in zip(serve[1:], ("receiving 0", "tried again: 0", "0 are left"), strict=True):
        assert main(words) == 0
        assert expected in capsys.readouterr().out
    node.process.join(120)  # drained
    assert node.process.exitcode == 0
    for script, *words in scripts:
        assert (ROOT / script).exists()
        if script == "./scripts/serve_trial":
            serve_trial.options_of(words)


def settings_in(model, place=""):
    """(place, names) of all settings of a model, and of the models in it."""
    yield place, set(model.model_fields)
    for name, one in model.model_fields.items():
        for kind in (one.annotation, *get_args(one.annotation)):
            if isinstance(kind, type) and issubclass(kind, BaseModel):
                yield from settings_in(kind, f"{place}.{name}".strip("."))


def test_every_setting_is_on_the_page():
    text = (ROOT / PAGE).read_text(encoding="utf-8")
    table = text[text.index("| setting |") : text.index("## What happens")].splitlines()
    for place, names in settings_in(ServeSettings):
        top = place.partition(".")[0]
        rows = " ".join(row for row in table if f"`{top}" in row or (".tls`" in row and "tls" in place))
        words = set(re.findall(r"\w+", " ".join(re.findall("`[^`]+`", rows))))
        assert names - words == set(), place


def test_the_example_settings_are_valid():
    settings = read_settings(EXAMPLES / "serve.yaml")
    assert settings.dicom.senders[0].ae_title == "ORTHANC"
    compose = yaml.safe_load((EXAMPLES / "compose.yaml").read_text())
    network = {name: one["networks"]["hospital"]["ipv4_address"] for name, one in compose["services"].items()}
    assert settings.destinations[0].dicom.host == settings.dicom.senders[0].address == network["orthanc"]
    assert network["clnet"] in compose["services"]["orthanc"]["environment"]["ORTHANC__DICOM_MODALITIES"]


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="needs systemd-analyze")
def test_systemd_understands_the_unit(tmp_path):
    unit = (EXAMPLES / "clnet.service").read_text().replace("/opt/clnet/bin/clnet", sys.executable)
    (tmp_path / "clnet.service").write_text(unit)
    said = subprocess.run(
        ["systemd-analyze", "verify", tmp_path / "clnet.service"], capture_output=True, text=True, check=False
    )
    assert "clnet.service" not in said.stderr


def test_a_node_that_was_drained_is_not_started_again():
    """It ends with status 0, after which systemd's `on-failure` leaves it alone and `always` does not."""
    assert "\nRestart=on-failure\n" in (EXAMPLES / "clnet.service").read_text()


@pytest.mark.slow
@needs("storescu", "storescp")
def test_nothing_is_lost_while_the_node_is_killed(tmp_path):
    trial = serve_trial.run(tmp_path, studies=12, kills=4, seed=1)
    assert len(trial.kills) == 4
    assert len(trial.whole) == 12
    assert (trial.lost, trial.twice, trial.torn, dict(trial.failed), trial.identities) == (0, 0, 0, {}, 0)
    assert len(serve_trial.latencies(tmp_path / "log.jsonl")) > 0


def test_a_report_names_the_one_that_it_replaces(tmp_path):
    source = next(iter((ROOT / "tests" / "data" / "cbis-ddsm").glob("*.dcm")))
    for name, number in (("old", "1"), ("new", "2")):
        report = pydicom.dcmread(source, stop_before_pixels=True)
        report.SOPInstanceUID = report.file_meta.MediaStorageSOPInstanceUID = f"2.25.{number}"
        report.SeriesInstanceUID = f"2.25.9{number}"
        report.save_as(tmp_path / f"{name}.dcm", enforce_file_format=True)
    refer_to_predecessor(tmp_path / "new.dcm", tmp_path / "old.dcm")
    (study,) = pydicom.dcmread(tmp_path / "new.dcm").PredecessorDocumentsSequence
    (series,) = study.ReferencedSeriesSequence
    (item,) = series.ReferencedSOPSequence
    assert (series.SeriesInstanceUID, item.ReferencedSOPInstanceUID) == ("2.25.91", "2.25.1")
    assert not list(Path(tmp_path).glob("*.unfinished"))
