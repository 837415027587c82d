"""The MONAI Deploy app, run by its script in its own venv: the same results as `clnet predict`."""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from contextlib import nullcontext
from pathlib import Path

import in_process
import pydicom
import pytest
import torch
import yaml
from full_disk import full_disk
from page_commands import commands_of
from pins import differing_pins

from clnet.files import only_writer
from clnet.predict.folder_run import PredictSettings, predict

ROOT = Path(__file__).parent.parent.parent
APP = ROOT / "clnet" / "apps" / "deploy"
PAGE = "docs/deployment.md"


@pytest.fixture(scope="module")
def deploy():
    """./scripts/deploy as a function of its arguments, with .venv-deploy set up."""
    made = subprocess.run([ROOT / "scripts" / "setup_deploy"], capture_output=True, text=True, check=False)
    if made.returncode:
        say = pytest.fail if os.environ.get("CI") == "true" else pytest.skip
        say(f".venv-deploy cannot be set up:\n{made.stdout}{made.stderr}")

    def run(*words, **more):
        return finished(ROOT / "scripts" / "deploy", *words, **more)

    return run


def finished(*words, **more):
    return subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False, **more)


@pytest.fixture(scope="module")
def page(deploy, tmp_path_factory):
    """A folder in which every command of the page was run, on a machine whose Docker has no engine."""
    folder = tmp_path_factory.mktemp("page")
    docker = folder / "bin" / "docker"
    docker.parent.mkdir()
    docker.write_text("#!/bin/sh\nexit 1\n")
    docker.chmod(0o755)
    path = f"{docker.parent}{os.pathsep}{os.environ['PATH']}"
    said = {}
    for command, *words in commands_of(PAGE):
        if command == "clnet":
            done = in_process.run_module("clnet.cli", *words, folder=folder)
        else:
            assert command == "./scripts/deploy"
            done = deploy(*words, cwd=folder, env={**os.environ, **in_process.SETTINGS, "PATH": path})
        assert done.returncode == 0, f"{command} {words}\n{done.stdout}{done.stderr}"
        said[words[0]] = done.stdout
    return folder / "output", said


def content(report):
    """The content of a report without the times of writing."""
    written = re.compile(
        "(Content|Series|InstanceCreation|Contribution|PresentationCreation)(Date|Time|DateTime)"
        "|(Date|Time)OfSecondaryCapture"
    )

    def forget(dataset, element):
        if written.fullmatch(element.keyword):
            del dataset[element.tag]

    dataset = pydicom.dcmread(report)
    dataset.walk(forget)
    return dataset.to_json_dict()


def assert_same_results(output, expected, reports):
    for name in ("findings.json", "coco.json", "summary.json"):
        assert json.loads((output / name).read_text()) == json.loads((expected / name).read_text())
    names = sorted(file.relative_to(expected) for file in expected.glob("studies/*/*.dcm"))
    assert names == sorted(file.relative_to(output) for file in output.glob("studies/*/*.dcm"))
    assert len(names) == reports
    for name in names:
        assert content(output / name) == content(expected / name)


def test_the_commands_of_the_page_give_the_findings_and_reports_of_predict(page, tmp_path):
    output, _ = page
    # The page predicts with the phantom's model; the app has the bundle's own.
    predict(output / "try" / "images", tmp_path, PredictSettings(device="cpu"))
    assert_same_results(output / "reports", tmp_path, reports=3 * 3)  # three studies
    assert len(list(output.glob("reports/breasts/*/picture.png"))) == 6


def test_films_give_the_findings_and_reports_of_predict(deploy, tmp_path):
    films = tmp_path / "films"
    films.mkdir()
    for film in (ROOT / "tests" / "data" / "cbis-ddsm").glob("*.dcm"):
        shutil.copy(film, films)  # without the datalist, which would name the pairs
    config = yaml.safe_load((APP / "app.yaml").read_text())
    config["clnet"]["secondary_capture"] = True
    (tmp_path / "films.yaml").write_text(yaml.safe_dump(config))
    done = deploy("--config", "films.yaml", "films", "app", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    predict(films, tmp_path / "predict", PredictSettings(device="cpu", secondary_capture=True))
    assert_same_results(tmp_path / "app", tmp_path / "predict", reports=1 + 4 + 1)  # a state for each film


def test_the_package_runs_by_itself_and_names_a_bad_file_as_predict_does(page, tmp_path):
    output, _ = page
    context = output / "deploy" / "context"
    study = tmp_path / "study"
    study.mkdir()
    for image in sorted((output / "try" / "images").glob("00000_*")):
        shutil.copy(image, study)
    damaged = study / "00000_R_MLO.dcm"
    damaged.write_bytes(damaged.read_bytes()[: damaged.stat().st_size // 2])
    venv = ROOT / ".venv-deploy"
    (cuda,) = venv.glob("lib/python3*/site-packages/nvidia/cu13/lib")
    container = {  # the variables that the Dockerfile sets
        "PATH": os.environ["PATH"],
        "LD_LIBRARY_PATH": str(cuda),
        "OMP_NUM_THREADS": str(torch.get_num_threads()),  # another number, another rounding
        "HOLOSCAN_INPUT_PATH": str(study),
        "HOLOSCAN_OUTPUT_PATH": str(tmp_path / "app"),
        "HOLOSCAN_MODEL_PATH": str(context / "models"),
        "HOLOSCAN_CONFIG_PATH": str(context / "app.config"),
    }
    done = finished(venv / "bin" / "python", context / "app", cwd=tmp_path, env=container)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "refused   00000_R_MLO.dcm: " in done.stdout
    predict(study, tmp_path / "predict", PredictSettings(device="cpu"))
    assert_same_results(tmp_path / "app", tmp_path / "predict", reports=3)


def test_an_app_that_is_killed_leaves_whole_results_and_the_next_one_writes_all(page, deploy, tmp_path):
    output, _ = page
    study, results = output / "try" / "images", tmp_path / "app"
    with (tmp_path / "log.txt").open("w") as log:
        words = [ROOT / "scripts" / "deploy", study, results]
        app = subprocess.Popen([str(word) for word in words], stdout=log, stderr=log)
    deadline = time.monotonic() + 500
    while not list(results.glob("breasts/[!.]*")):
        assert app.poll() is None and time.monotonic() < deadline, (tmp_path / "log.txt").read_text()
        time.sleep(0.01)
    app.kill()
    app.wait()
    for file in results.glob("breasts/[!.]*/*"):
        assert file.read_bytes() == (output / "reports" / file.relative_to(results)).read_bytes()
    (results / "breasts" / ".half.unfinished").mkdir()
    done = deploy(study, results)
    assert done.returncode == 0, done.stdout + done.stderr
    assert_same_results(results, output / "reports", reports=3 * 3)
    assert list(results.rglob("*.unfinished")) == []


@pytest.mark.parametrize(
    ("around", "make", "status", "words"),
    [
        (only_writer, Path.mkdir, 2, "another process is writing there"),
        (lambda _: nullcontext(), Path.touch, 2, "is not a directory"),
        (lambda _: full_disk(4096), Path.mkdir, 3, "the disk is full"),
    ],
    ids=["another writer", "a file", "full"],
)
def test_an_output_that_cannot_be_written_is_told_in_words(
    page, deploy, tmp_path, around, make, status, words
):
    output, _ = page
    make(tmp_path / "app")
    with around(tmp_path / "app"):
        done = deploy(output / "try" / "images", tmp_path / "app")
    assert (done.returncode, words in done.stderr) == (status, True), done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def test_the_package_contains_what_holoscan_expects(page):
    output, _ = page
    context = output / "deploy" / "context"
    app = json.loads((context / "map" / "app.json").read_text())
    assert json.loads(app["command"]) == ["python3", "/opt/holoscan/app"]
    assert app["sdk"] == "monai-deploy"
    assert app["sdkVersion"] == "4.0.0"
    pkg = json.loads((context / "map" / "pkg.json").read_text())
    assert pkg["models"] == {"clnet": "/opt/holoscan/models/clnet"}
    dockerfile = (context / "Dockerfile").read_text().splitlines()
    assert any(line.startswith("FROM nvidia/cuda:13.") for line in dockerfile)
    assert dockerfile[-1] == 'ENTRYPOINT ["/var/holoscan/tools"]'
    assert (context / "pip" / "requirements.txt").read_text() == (APP / "requirements.txt").read_text()


def test_without_a_docker_engine_the_package_is_prepared_and_the_missing_engine_reported(page):
    _, said = page
    assert "No image was built. Missing: a Docker engine" in said["--package"]
    assert "holoscan package --sdk monai-deploy" in said["--package"]


def test_a_folder_that_is_no_package_is_not_replaced(tmp_path, monkeypatch):
    """The packager itself is in .venv-deploy alone, and is not reached."""
    parts = ("arguments", "container_builder", "packager", "parameters")
    for name in ("", ".__main__", ".packager", *(f".packager.{part}" for part in parts)):
        monkeypatch.setitem(sys.modules, f"holoscan_cli{name}", AnyNames())
    from clnet.apps.deploy.package import PackageError, prepare

    (tmp_path / "precious").touch()
    with pytest.raises(PackageError, match="Give a new folder"):
        prepare(tmp_path)
    assert (tmp_path / "precious").is_file()


class AnyNames:
    """A module from which any class can be imported."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return object


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--model", ".", ".", "../elsewhere"], "neither a bundle (configs/inference.yaml is missing)"),
        (["--model", ROOT / "docs", "--package"], "neither a bundle (configs/inference.yaml is missing)"),
        (["one", "two", "three"], "./scripts/deploy [--config FILE]"),
    ],
)
def test_wrong_usage_is_reported_with_status_2(deploy, tmp_path, words, message):
    (tmp_path / "here").mkdir()
    done = deploy(*words, cwd=tmp_path / "here")
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_the_app_pins_the_same_versions_except_where_the_sdk_needs_others():
    differing = differing_pins(ROOT / "constraints.txt", APP / "requirements.txt")
    assert differing == {"ml_dtypes", "packaging", "protobuf"}
