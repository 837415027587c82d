"""Writes constraints-hashed.txt: the versions of constraints.txt with the SHA-256 of their files.

The files are wheels for Linux on x86-64, or the source where there is none, as PyPI lists them. PyTorch is
left out: its builds for CPUs and GPUs are different files under one version, from different indexes.

    .venv/bin/python scripts/hash_constraints.py
"""

import html.parser
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import unquote, urlsplit

from packaging.requirements import Requirement
from packaging.utils import (
    InvalidSdistFilename,
    InvalidWheelFilename,
    canonicalize_name,
    parse_sdist_filename,
    parse_wheel_filename,
)
from packaging.version import Version

ROOT = Path(__file__).parent.parent
SOURCE, HASHED = ROOT / "constraints.txt", ROOT / "constraints-hashed.txt"
INDEX = "https://pypi.org/simple"
LEFT_OUT = ("torch",)
INTERPRETERS = ("cp310", "cp311", "cp312", "py3", "py2")
HEAD = """\
# The versions of constraints.txt with the SHA-256 of each, by scripts/hash_constraints.py: SECURITY.md.
# PyTorch is not among them: its builds for CPUs and GPUs are different files under one version.
"""


class Links(html.parser.HTMLParser):
    """The files of a page of the index: name and SHA-256."""

    def __init__(self) -> None:
        super().__init__()
        self.files: list[tuple[str, str]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note a link to a file."""
        parts = urlsplit(dict(attrs).get("href") or "")
        if tag == "a" and parts.fragment.startswith("sha256="):
            self.files.append((unquote(Path(parts.path).name), parts.fragment.removeprefix("sha256=")))


def pinned() -> list[Requirement]:
    """The lines of constraints.txt but those that are left out."""
    lines = (line.partition("#")[0].strip() for line in SOURCE.read_text(encoding="utf-8").splitlines())
    return [one for one in map(Requirement, filter(None, lines)) if one.name not in LEFT_OUT]


def version_of(requirement: Requirement) -> Version:
    """The one version that it allows."""
    (specifier,) = requirement.specifier
    return Version(specifier.version)


def hashes_of(requirement: Requirement) -> list[str]:
    """Of the files that pip may take, sorted."""
    address = f"{INDEX}/{canonicalize_name(requirement.name)}/"
    with urllib.request.urlopen(address, timeout=60) as answer:  # noqa: S310  of an address that stands here
        links = Links()
        links.feed(answer.read().decode())
    version = version_of(requirement)
    wheels = [digest for name, digest in links.files if _fits(name, version)]
    sources = [digest for name, digest in links.files if _is_source(name, version)]
    return sorted(set(wheels or sources))


def _fits(name: str, version: Version) -> bool:
    try:
        _, its_version, _, tags = parse_wheel_filename(name)
    except InvalidWheelFilename:
        return False
    return its_version == version and any(
        tag.interpreter in INTERPRETERS or (tag.abi == "abi3" and tag.interpreter.startswith("cp3"))
        for tag in tags
        if tag.platform == "any" or (tag.platform.endswith("x86_64") and "linux" in tag.platform)
    )


def _is_source(name: str, version: Version) -> bool:
    try:
        return parse_sdist_filename(name)[1] == version
    except InvalidSdistFilename:  # a wheel, or what was uploaded before there were rules for names
        return False


def lines() -> Iterator[str]:
    """The file, line by line."""
    requirements = pinned()
    with ThreadPoolExecutor(8) as pool:
        for requirement, hashes in zip(requirements, pool.map(hashes_of, requirements), strict=True):
            if not hashes:
                raise SystemExit(f"{INDEX} has no file of {requirement}")
            marker = f"; {requirement.marker}" if requirement.marker else ""
            pin = f"{requirement.name}{requirement.specifier}{marker}"
            yield " \\\n    ".join([pin, *(f"--hash=sha256:{digest}" for digest in hashes)])


if __name__ == "__main__":
    HASHED.write_text(HEAD + "\n".join(lines()) + "\n", encoding="utf-8")
    print(f"written to {HASHED}")
