"""The functions that read files of others; each ends without an error, or with a refusal by name."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from clnet.converters.datasets.ddsm_ics import parse_ics
from clnet.converters.datasets.ddsm_ljpeg import decode_ljpeg
from clnet.converters.datasets.ddsm_overlay import parse_overlay
from clnet.data.datalist import read_datalist
from clnet.data.decode import jpeg2000_tiles, stream_size
from clnet.data.header import read_header
from clnet.data.reader import read_image, read_tags
from clnet.data.study import choose_pairs, scan
from clnet.errors import ClnetError
from clnet.findings.types import read_findings

Read = Callable[[Path], object]
LONGEST_MESSAGE = 3000


def read_dicom_file(file: Path) -> object:
    """As `clnet predict` reads it: in a scan of its folder, its tags, and its pixels."""
    choose_pairs(scan(file.parent, workers=1, progress=False).headers)
    for read in (read_header, read_tags):
        with suppress(ClnetError):  # the pixels are refused then, too
            read(file)
    return read_image(file)


def read_picture(file: Path) -> object:
    """Its header, and its pixels."""
    with suppress(ClnetError):
        read_header(file)
    return read_image(file)


def read_datalist_file(file: Path) -> object:
    """A datalist."""
    return read_datalist(file)


def read_findings_file(file: Path) -> object:
    """Findings."""
    return read_findings(file)


def verdict(read: Callable[[Any], object], given: Any, secret: str = "") -> str:
    """The word "read", or the name of the refusal; raises what is no refusal, and a bad message.

    Args:
        read: reads it.
        given: what is read; the name of a file must be in the message.
        secret: what no message may hold.
    """
    try:
        messages, name = getattr(read(given), "warnings", ()), "read"
    except ClnetError as refusal:
        messages, name = (str(refusal),), type(refusal).__name__
        if isinstance(given, Path) and given.name not in messages[0]:
            raise RuntimeError(f"a refusal that does not name the file: {messages[0][:300]!r}") from refusal
    for message in messages:
        if len(message) > LONGEST_MESSAGE or not message.replace("\n", "").isprintable():
            raise RuntimeError(f"a message that cannot be shown: {message[:300]!r}")
        if secret and secret.lower() in message.lower():
            raise RuntimeError("a message that names the patient")
    return name


NAME = Path("file")


def _ljpeg(data: bytes) -> object:
    return decode_ljpeg(data, NAME)


def _overlay(data: bytes) -> object:
    return parse_overlay(data.decode("latin-1"), NAME)


def _ics(data: bytes) -> object:
    return parse_ics(data.decode("latin-1"), NAME)


def _stream(data: bytes) -> object:
    return stream_size(data), jpeg2000_tiles(data)


BYTE_READERS: dict[str, Callable[[bytes], object]] = {
    "ljpeg": _ljpeg,
    "overlay": _overlay,
    "ics": _ics,
    "stream": _stream,
}
"""The readers of bytes that are not those of a library, by name."""
