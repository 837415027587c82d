"""The bundle's README as data: its commands and its tables of options."""

import re

import in_process
from bundle_runs import ROOT
from page_commands import commands_of

README = ROOT / "bundle" / "docs" / "README.md"


def readme_commands():
    """The words of every command in the README."""
    return list(commands_of("bundle/docs/README.md"))


def readme_options():
    """What the README's tables give as default of each option, by key; backticks mark a literal."""
    rows = re.findall(r"^\| `--([^`]+)` \| (.*?) \|", README.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(rows) == len(dict(rows)), "an option appears twice in the README"
    return dict(rows)


def run_from_readme(name, *more):
    """Run the one MONAI command of that name as the README has it, with words of our own after it."""
    [words] = [words for words in readme_commands() if words[:4] == ["python", "-m", "monai.bundle", name]]
    return in_process.run_module(*words[2:], *more, folder=ROOT)
