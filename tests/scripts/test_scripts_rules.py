"""Rules that hold for every script."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPTS = sorted((ROOT / "scripts").rglob("*.py"))
OF_TESTS = {path.stem for path in (ROOT / "tests").rglob("*.py")} | {"tests"}


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.relative_to(ROOT / "scripts").as_posix())
def test_a_script_imports_nothing_from_the_tests(script):
    text = script.read_text(encoding="utf-8")
    imported = {
        name.split(".")[0]
        for node in ast.walk(ast.parse(text))
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }
    assert not imported & OF_TESTS
    assert "sys.path" not in text  # a script finds what is beside it without help
