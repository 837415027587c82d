"""The commands of the README and of the docs do what the pages say."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
# Pages whose commands have tests of their own: docs/datasets.md, docs/evaluation.md, docs/label.md,
# docs/training.md, bundle/docs/README.md.
PAGES = ["README.md", "CONTRIBUTING.md", "docs/phantom.md", "docs/data.md", "docs/deployment.md"]
# What runs these tests, or needs the network to set up; CI runs them as they are, and the commands of
# ./scripts/deploy in tests/apps/test_deploy.py.
TESTS = ("./scripts/test", "./scripts/test_deploy", "./scripts/test_label")
SET_UP = ("./scripts/demo", "./scripts/deploy", *TESTS)


def commands(page):
    """Every command in the bash blocks of a page, comments and line breaks taken out."""
    text = (ROOT / page).read_text(encoding="utf-8")
    for block in re.findall(r"```bash\n(.*?)```", text, flags=re.DOTALL):
        for line in block.replace("\\\n", " ").splitlines():
            words = shlex.split(line, comments=True)
            if words:
                yield words


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    """A folder in which the paths of the pages are right, and nothing in the real one is touched."""
    folder = tmp_path_factory.mktemp("checkout")
    for name in ("tests", "bundle", "docs"):
        (folder / name).symlink_to(ROOT / name)
    return folder


def test_every_command_of_the_pages_runs(checkout):
    ran = 0
    for page in PAGES:
        for words in commands(page):
            if words[0] in SET_UP:
                assert (ROOT / words[0]).exists()
                continue
            assert words[0] == "clnet", f"{page}: how is {words[0]} to be tested?"
            done = subprocess.run(
                [sys.executable, "-m", "clnet.cli", *words[1:]],
                cwd=checkout,
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.returncode == 0, f"{page}: {shlex.join(words)}\n{done.stderr}"
            ran += 1
    assert ran >= 3
    assert (checkout / "output" / "inspect.png").exists()


@pytest.mark.parametrize(
    "page",
    [
        *PAGES,
        "CHANGELOG.md",
        *(
            f"docs/{name}.md"
            for name in ("network", "evaluation", "datasets", "label", "training", "performance")
        ),
    ],
)
def test_links_and_pictures_of_a_page_are_there(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", text):
        if not target.startswith("http"):
            assert ((ROOT / page).parent / target).exists(), f"{page}: {target}"
