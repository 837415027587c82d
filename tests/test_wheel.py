"""The wheel in a new environment and an empty folder: README.md, command by command and line by line."""

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from page_commands import commands_of

from clnet.findings.types import read_findings
from clnet.predict.model_name import weights_digest

ROOT = Path(__file__).parent.parent
SOURCES = ("bundle", "clnet", "LICENSE", "README.md", "pyproject.toml", "setup.py")
SMALL = {
    "phantom_pairs": "8",
    "size": "[64, 48]",
    "batch_size": "2",
    "max_epochs": "1",
    "val_interval": "1",
    "warmup_iterations": "2",
}
SMALL_OPTIONS = [word for key, value in SMALL.items() for word in (f"--{key}", value)]
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Built from a copy: an old `build/` beside the sources would get into it."""
    source, folder = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    for name in SOURCES:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, source / name)
    pip = [sys.executable, "-m", "pip"]
    subprocess.run(
        [*pip, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", folder, source], check=True
    )
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="module")
def run(wheel, tmp_path_factory):
    """Runs a command of the new environment in an empty folder; its dependencies are those of the tests."""
    environment, folder = tmp_path_factory.mktemp("environment"), tmp_path_factory.mktemp("empty")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    python = environment / "bin" / "python"
    variables = {**os.environ, "PYTHONPATH": str(ROOT / "tests" / "without_transformers")}
    pip = [sys.executable, "-m", "pip", "--python", python]
    # A checkout in the developer's PYTHONPATH would be taken for an installed clnet.
    subprocess.run([*pip, "install", "--no-deps", "--no-index", wheel], env=variables, check=True)
    (site_packages,) = environment.glob("lib/python*/site-packages")
    # The .pth files in there, such as that of an editable clnet, have no effect: only the folder is added.
    (site_packages / "dependencies.pth").write_text(f"{sysconfig.get_path('purelib')}\n")

    def run(command, *words):
        done = subprocess.run(
            [environment / "bin" / command, *map(str, words)],
            cwd=folder,
            env={**variables, "OMP_NUM_THREADS": "1", "MLFLOW_TRACKING_URI": ""},
            capture_output=True,
            text=True,
            check=False,
            timeout=1800,
        )
        assert done.returncode == 0, done.stderr[-4000:]
        return done.stdout

    run.folder, run.environment = folder, environment
    return run


@pytest.fixture(scope="module")
def done(run):
    """The folder, after every command of the page; trainings are made small."""
    for command, *words in commands_of("README.md"):
        if command != "pip":
            run(command, *words, *(SMALL_OPTIONS if "monai.bundle" in words else ()))
    return run.folder


def test_predict_writes_reports_and_pictures(done):
    predictions = done / "output" / "predictions"
    assert len(read_findings(predictions / "findings.json")) == 6
    assert len(list(predictions.rglob("*.dcm"))) == 3 * 3  # three reports of each of three studies
    assert len(list(predictions.rglob("picture.png"))) == 6


def test_the_lines_of_python_run(done, run):
    (lines,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    (done / "study_folder").symlink_to(done / "output" / "try" / "images")
    *breasts, file = run("python", "-c", f"{lines}\nprint(clnet.__file__)").splitlines()
    assert Path(file).is_relative_to(run.environment)
    assert len(breasts) == 6
    assert any("Lesion(score=" in breast for breast in breasts)
    assert (done / "breast.png").read_bytes().startswith(b"\x89PNG")


def test_the_copy_of_the_bundle_is_whole(done):
    for name in ("configs", "models", "docs"):
        expected = {file.name for file in (ROOT / "bundle" / name).iterdir()}
        assert expected - {"model.ts", "model.onnx"} == {
            file.name for file in (done / "output" / "mine" / name).iterdir()
        }


def test_the_training_of_the_copy_gives_a_model_to_load_and_to_evaluate(done, run):
    trained = done / "output" / "geometric-seed0"
    assert json.loads((trained / "run.json").read_text())["status"] == "finished"
    name = run("python", "-c", "import clnet; print(clnet.load('output/geometric-seed0').name)").strip()
    assert name == f"geometric geometric-seed0 {weights_digest(trained / 'model.pt')}"
    shutil.copy(trained / "model.pt", done / "output" / "mine" / "models" / "phantom.pt")
    files = str([f"output/mine/configs/{name}.yaml" for name in ("train", "evaluate")])
    run("python", "-m", "monai.bundle", "run", "evaluating", "--config_file", files, *SMALL_OPTIONS)
    evaluated = done / "output" / "evaluate-geometric"
    assert (evaluated / "metrics.json").is_file()
    # The weights are those of the copy, not those of the installed bundle.
    assert read_findings(evaluated / "findings.json").model.endswith(weights_digest(trained / "model.pt"))
