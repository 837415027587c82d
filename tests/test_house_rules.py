"""What holds for the whole tree: style, types, and the one direction of imports."""

import ast
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
# Each room may import from itself and from those before it.
ROOMS = [
    "errors",
    "boxes",
    "files",
    "processes",
    "distributed",
    "data",
    "phantom",
    "preprocessing",
    "converters",
    "ops",
    "losses",
    "networks",
    "findings",
    "reports",
    "predict",
    "evaluation",
    "runs",
    "serve",
    "apps",
    "cli",
]


def room(path):
    return path.relative_to(ROOT / "clnet").parts[0].removesuffix(".py")


def imported_names(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            assert node.level == 0, f"{path}: relative imports hide where things come from"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        yield from (name for name in names if name.startswith("clnet."))


def imported_rooms(path):
    rooms = (name.split(".")[1] for name in imported_names(path))
    return [room for room in rooms if room != "__version__"]


MODULES = sorted((ROOT / "clnet").rglob("*.py"))


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_go_one_way(path):
    here = room(path)
    if here == "__init__":  # the public API, which may name any room, and loads it when it is used
        return
    for there in imported_rooms(path):
        assert ROOMS.index(there) <= ROOMS.index(here), f"{path.name} of {here} imports {there}"


def test_importing_clnet_imports_none_of_its_rooms():
    code = "import clnet, sys; print([name for name in sys.modules if name.startswith(('clnet.', 'torch'))])"
    command = [sys.executable, "-c", code]
    assert subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout == "[]\n"


def test_copying_the_bundle_needs_no_pytorch():
    code = "import clnet.predict.shipped, sys; print({'torch', 'monai'} & set(sys.modules))"
    command = [sys.executable, "-c", code]
    assert subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout == "set()\n"


@pytest.mark.parametrize(
    "path", [p for p in MODULES if "networks" in p.parts], ids=lambda path: str(path.relative_to(ROOT))
)
def test_networks_know_no_data(path):
    assert not {"data", "preprocessing"} & set(imported_rooms(path))


def test_there_are_no_import_cycles():
    names = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
        for path in MODULES
        if path.parent != ROOT / "clnet" or path.name != "__init__.py"  # every import runs that one
    }
    graph = {}
    for module, path in names.items():
        imported = {name if name in names else name.rpartition(".")[0] for name in imported_names(path)}
        graph[module] = imported & names.keys()
    TopologicalSorter(graph).prepare()  # raises a CycleError that names the modules


FORBIDDEN_BUILTINS = {"eval", "exec", "compile", "__import__"}
FORBIDDEN_METHODS = {"extractall", "unpack_archive"}  # write wherever an archive says
FORBIDDEN_MODULES = {"dill", "cloudpickle", "joblib", "shelve", "marshal"}
FORBIDDEN_ARGUMENTS = {("allow_pickle", True), ("weights_only", False)}


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_data_from_outside_is_never_run_unpickled_or_unpacked(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        where = f"{path}:{getattr(node, 'lineno', 0)}"
        if isinstance(node, ast.Name):
            assert node.id not in FORBIDDEN_BUILTINS | FORBIDDEN_METHODS, where
        elif isinstance(node, ast.Attribute):
            assert node.attr not in FORBIDDEN_METHODS, where
            of_pickle = isinstance(node.value, ast.Name) and node.value.id == "pickle"
            assert not of_pickle or node.attr == "UnpicklingError", where  # its error may be caught
        elif isinstance(node, ast.keyword):
            assert (node.arg, getattr(node.value, "value", None)) not in FORBIDDEN_ARGUMENTS, where
        elif isinstance(node, ast.Import):
            assert not {alias.name.split(".")[0] for alias in node.names} & FORBIDDEN_MODULES, where
            assert not any(alias.name == "pickle" and alias.asname for alias in node.names), where
        elif isinstance(node, ast.ImportFrom):
            assert (node.module or "").split(".")[0] not in FORBIDDEN_MODULES | {"pickle"}, where


@pytest.mark.parametrize(
    "command",
    [["ruff", "check"], ["ruff", "format", "--check"], pytest.param(["mypy"], marks=pytest.mark.slow)],
    ids=" ".join,
)
def test_the_tree_is_clean_for(command):
    said = subprocess.run(
        [sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert said.returncode == 0, said.stdout + said.stderr
