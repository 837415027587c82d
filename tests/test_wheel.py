"""The wheel, installed in a new environment and used in an empty folder, far from any checkout."""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

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
LINES = """
import clnet

print(clnet.__file__)
model = clnet.load()
for breast in model.predict("data/images"):
    print(breast.laterality, breast.lesions)
    breast.draw().save("breast.png")
"""
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
    pip = [sys.executable, "-m", "pip", "--python", python]
    subprocess.run([*pip, "install", "--no-deps", "--no-index", wheel], check=True)
    (site_packages,) = environment.glob("lib/python*/site-packages")
    # The .pth files in there, such as that of an editable clnet, have no effect: only the folder is added.
    (site_packages / "dependencies.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}

    def run(command, *words):
        done = subprocess.run(
            [environment / "bin" / command, *map(str, words)],
            cwd=folder,
            env={**variables, "OMP_NUM_THREADS": "1", "MLFLOW_TRACKING_URI": ""},
            capture_output=True,
            text=True,
            check=False,
            timeout=500,
        )
        assert done.returncode == 0, done.stderr[-4000:]
        return done.stdout

    run.folder, run.environment = folder, environment
    run("clnet", "phantom", "--output", "data", "--pairs", 2, "--workers", 1)
    return run


def test_predict_writes_reports_of_a_folder(run):
    said = run("clnet", "predict", "data/images", "--output", "out", "--workers", 0)
    assert "2 breasts analysed, 2 of them now" in said
    assert len(list((run.folder / "out").rglob("*.dcm"))) == 4
    assert len(list((run.folder / "out").rglob("picture.png"))) == 2


def test_the_lines_of_the_readme(run):
    file, *breasts = run("python", "-c", LINES).splitlines()
    assert Path(file).is_relative_to(run.environment)
    assert len(breasts) == 2
    assert any("Lesion(score=" in breast for breast in breasts)
    assert (run.folder / "breast.png").read_bytes().startswith(b"\x89PNG")


def test_a_copy_of_the_bundle_trains_evaluates_and_gives_a_model(run):
    run("clnet", "bundle", "--copy", "mine")
    for name in ("configs", "models", "docs"):
        assert sorted(path.name for path in (run.folder / "mine" / name).iterdir()) == sorted(
            path.name for path in (ROOT / "bundle" / name).iterdir() if path.suffix not in (".ts", ".onnx")
        )
    options = [word for key, value in SMALL.items() for word in (f"--{key}", value)]
    train = "mine/configs/train.yaml"
    run("python", "-m", "monai.bundle", "run", "training", "--config_file", train, *options)
    assert json.loads((run.folder / "output/clnet-seed0/run.json").read_text())["status"] == "finished"
    loaded = "import clnet; print(clnet.load('output/clnet-seed0').name)"
    assert run("python", "-c", loaded).startswith("clnet clnet-seed0 ")
    shutil.copy(run.folder / "output/clnet-seed0/model.pt", run.folder / "mine/models/model.pt")
    files = str([train, "mine/configs/evaluate.yaml"])
    run("python", "-m", "monai.bundle", "run", "evaluating", "--config_file", files, *options)
    digest = weights_digest(run.folder / "output/clnet-seed0/model.pt")  # the weights of the copy are used
    assert read_findings(run.folder / "output/evaluate-clnet/findings.json").model.endswith(digest)
    assert (run.folder / "output/evaluate-clnet/metrics.json").is_file()
