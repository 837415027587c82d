"""The MONAI Deploy app, run as its users run it, in its own venv: the same results as `clnet predict`."""

import json
import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pydicom
import pytest
import yaml

from clnet.data.phantom import PhantomSettings, make_phantom
from clnet.inference.predict import PredictSettings, predict

ROOT = Path(__file__).parent.parent.parent
APP = ROOT / "clnet" / "apps" / "deploy"
FILMS = ROOT / "tests" / "data" / "cbis-ddsm"


@pytest.fixture(scope="module")
def deploy():
    """./scripts/deploy as a function of its arguments, with .venv-deploy set up."""
    made = subprocess.run([ROOT / "scripts" / "setup_deploy"], capture_output=True, text=True, check=False)
    if made.returncode:
        say = pytest.fail if os.environ.get("CI") == "true" else pytest.skip
        say(f".venv-deploy cannot be made:\n{made.stdout}{made.stderr}")

    def run(*words, cwd=ROOT, **variables):
        return subprocess.run(
            [ROOT / "scripts" / "deploy", *map(str, words)],
            cwd=cwd,
            env={**os.environ, **variables},
            capture_output=True,
            text=True,
            check=False,
        )

    return run


@pytest.fixture(scope="module")
def phantom(tmp_path_factory):
    """The images of two breasts, without the datalist that would name the pairs."""
    folder = tmp_path_factory.mktemp("phantom")
    make_phantom(folder, PhantomSettings(2), workers=1)
    return folder / "images"


@pytest.fixture(scope="module")
def films(tmp_path_factory):
    folder = tmp_path_factory.mktemp("films")
    for film in FILMS.glob("*.dcm"):
        shutil.copy(film, folder)
    return folder


@pytest.fixture(scope="module")
def film_config(tmp_path_factory):
    """The app's configuration, but for Secondary Capture."""
    config = yaml.safe_load((APP / "app.yaml").read_text())
    config["clnet"]["secondary_capture"] = True
    file = tmp_path_factory.mktemp("config") / "films.yaml"
    file.write_text(yaml.safe_dump(config))
    return file


def content(report):
    """All that a report says, but for when it was written."""
    dataset = pydicom.dcmread(report)
    for when in ("Content", "Series", "InstanceCreation"):
        for kind in ("Date", "Time"):
            if f"{when}{kind}" in dataset:
                del dataset[f"{when}{kind}"]
    return dataset.to_json_dict()


def check_same_results(output, expected, breasts):
    for name in ("findings.json", "coco.json", "summary.json"):
        assert json.loads((output / name).read_text()) == json.loads((expected / name).read_text())
    reports = sorted(file.relative_to(expected) for file in expected.glob("breasts/*/*.dcm"))
    assert len(reports) == 2 * breasts
    assert reports == sorted(file.relative_to(output) for file in output.glob("breasts/*/*.dcm"))
    for report in reports:
        assert content(output / report) == content(expected / report)
    assert len(list(output.glob("breasts/*/picture.png"))) == breasts


def test_the_phantom_gets_the_findings_and_reports_of_predict(deploy, phantom, tmp_path):
    done = deploy(phantom, tmp_path / "app")
    assert done.returncode == 0, done.stdout + done.stderr
    predict(phantom, tmp_path / "predict", PredictSettings(device="cpu"))
    check_same_results(tmp_path / "app", tmp_path / "predict", breasts=2)
    assert json.loads((tmp_path / "app" / "findings.json").read_text())["pairs"]


def test_films_get_the_findings_and_reports_of_predict(deploy, films, film_config, tmp_path):
    done = deploy("--config", film_config, films, tmp_path / "app")
    assert done.returncode == 0, done.stdout + done.stderr
    settings = PredictSettings(device="cpu", secondary_capture=True)
    predict(films, tmp_path / "predict", settings)
    breasts = len(json.loads((tmp_path / "predict" / "summary.json").read_text())["analysed"])
    assert breasts >= 2
    check_same_results(tmp_path / "app", tmp_path / "predict", breasts)
