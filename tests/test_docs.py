"""The commands of the README and of the docs do what the pages say; no page can be forgotten."""

import re

import ablation
import benchmark
import compare_links
import federated
import pytest
import robustness
import torture
from page_commands import ROOT, commands_of, made_small, run_command

PAGES = sorted(
    path.relative_to(ROOT).as_posix()
    for pattern in ("*.md", "docs/*.md", "bundle/docs/*.md")
    for path in ROOT.glob(pattern)
)
# Pages whose commands have tests of their own; all others are run here, page by page.
ELSEWHERE = {
    "README.md": ("test_wheel.py",),
    "bundle/docs/README.md": ("bundle/test_exports.py", "bundle/test_bundle_readme.py"),
    "docs/datasets.md": ("converters/test_datasets_page.py",),
    "docs/evaluation.md": ("evaluation/test_evaluation_page.py",),
    "docs/label.md": ("apps/test_label_docs.py",),
    "docs/machines.md": ("bundle/test_machines.py", "bundle/test_slurm.py"),
    "docs/quickstart.md": ("bundle/test_real_data_page.py",),
    "docs/real_data.md": ("bundle/test_real_data_page.py",),
    "docs/serve.md": ("serve/test_serve_page.py",),
    "docs/training.md": ("bundle/test_runs.py",),
}
# What runs these tests, or needs the network to set up; CI runs them as they are, and the commands of
# ./scripts/deploy and ./scripts/label in tests/apps.
SUITES = (
    "test",
    "test_deploy",
    "test_label",
    "test_viewers",
    "test_gpu_kernels",
    "test_serve",
    "test_federated",
)
TESTS = tuple(f"./scripts/{suite}" for suite in SUITES)
SET_UP = ("./scripts/demo", "./scripts/deploy", "./scripts/label", *TESTS)
# Needs an index, or is run by tests/test_supply_chain.py.
BY_HAND = ("./scripts/sbom", ".venv/bin/pip", "pip-audit")
# What takes minutes or hours; tests/scripts runs them with a tiny budget.
LONG = {
    f"./scripts/{script.__name__}": script.options_of
    for script in (ablation, benchmark, compare_links, federated, robustness, torture)
}


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    """A folder in which the paths of the pages are right, and nothing in the real one is touched."""
    folder = tmp_path_factory.mktemp("checkout")
    for name in ("tests", "bundle", "docs"):
        (folder / name).symlink_to(ROOT / name)
    return folder


@pytest.mark.slow
def test_every_command_of_the_pages_runs(checkout):
    ran = 0
    # The phantom's page makes what others look at.
    for page in sorted(set(PAGES) - set(ELSEWHERE), key=lambda page: page != "docs/phantom.md"):
        for words in commands_of(page):
            if words[0] in BY_HAND:
                continue
            if words[0] in SET_UP:
                assert (ROOT / words[0]).exists()
            elif words[0] in LONG:
                assert (ROOT / words[0]).exists()
                LONG[words[0]](words[1:])
            else:
                run_command(made_small(words), checkout)
                ran += 1
    assert ran >= 3
    assert (checkout / "output" / "inspect.png").exists()


@pytest.mark.parametrize("page", ELSEWHERE)
def test_a_page_that_is_tested_elsewhere_is(page):
    name = "bundle_readme" if page == "bundle/docs/README.md" else page.removeprefix("docs/")
    for test in ELSEWHERE[page]:
        assert name in (ROOT / "tests" / test).read_text(encoding="utf-8")


def headings(page):
    """The anchors of a page's headings, as Markdown's readers make them."""
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for heading in re.findall(r"^#+ (.+)$", text, re.MULTILINE):
        yield re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


@pytest.mark.parametrize("page", PAGES)
def test_links_and_pictures_of_a_page_are_there(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    for target, anchor in re.findall(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)", text):
        if target.startswith("http"):
            continue
        file = (ROOT / page).parent / target if target else ROOT / page
        assert file.exists(), f"{page}: {target}"
        if anchor and file.suffix == ".md":
            assert anchor in headings(file), f"{page}: {target}#{anchor}"


def test_the_index_leads_to_every_page():
    index = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    for page in PAGES:
        if page.startswith("docs/") and page != "docs/README.md":
            assert f"]({page.removeprefix('docs/')})" in index, page
