"""The `.OVERLAY` files of DDSM: the abnormalities outlined on a film.

::

    TOTAL_ABNORMALITIES 1
    ABNORMALITY 1
    LESION_TYPE MASS SHAPE IRREGULAR MARGINS SPICULATED
    ASSESSMENT 5
    SUBTLETY 4
    PATHOLOGY MALIGNANT
    TOTAL_OUTLINES 1
    BOUNDARY
    1200 800 4 4 3 2 1 0 0 … #

An outline starts at (column, row) and moves in steps to one of the eight neighbours: 0 is up, the others
follow clockwise. Wrong counts in a file are warned of; the outlines that are there are used.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from clnet.converters.annotated import ConversionError

# (column, row) of each step: up, up right, right, down right, down, down left, left, up left.
STEPS: NDArray[np.int64] = np.array([(0, -1), (1, -1), (1, 0), (1, 1), (0, 1), (-1, 1), (-1, 0), (-1, -1)])

_DESCRIPTORS = ("ASSESSMENT", "SUBTLETY", "PATHOLOGY")
_NUMBER = re.compile("-?[0-9]{1,9}")
_KEYWORD = re.compile("[A-Z_]{4,}")


class OverlayError(ConversionError):
    """An invalid `.OVERLAY` file; the message names the file and the keyword."""


@dataclass
class Abnormality:
    """One lesion on one film.

    Attributes:
        number: in the file.
        lesion_types: the words of each LESION_TYPE line; a lesion may have several.
        descriptors: assessment, subtlety, pathology, and shape and margins of a mass, in lower case.
        boundary: the points (column, row) [n, 2] of the outline; None if there is none.
        problem: why the boundary cannot be used, or "".
    """

    number: str
    lesion_types: list[list[str]] = field(default_factory=list)
    descriptors: dict[str, str] = field(default_factory=dict)
    boundary: NDArray[np.int64] | None = None
    problem: str = "it has no BOUNDARY"

    @property
    def is_mass(self) -> bool:
        """Whether any of its LESION_TYPE lines says MASS."""
        return any("MASS" in words for words in self.lesion_types)


@dataclass(frozen=True)
class Overlay:
    """The abnormalities of a film, warnings about the file, and how many abnormalities it lacks."""

    abnormalities: tuple[Abnormality, ...] = ()
    warnings: tuple[str, ...] = ()
    missing: int = 0


def parse_overlay(text: str, file: Path) -> Overlay:
    """Parse the content of an `.OVERLAY` file; `file` is named in errors and warnings."""
    found: list[Abnormality] = []
    warnings: list[str] = []
    announced: dict[str, int] = {}
    outlines = 0

    def check_outlines() -> None:
        expected = announced.pop("TOTAL_OUTLINES", outlines)
        if found and expected != outlines:
            warnings.append(
                f"{file}: abnormality {found[-1].number} has {outlines} outlines, but TOTAL_OUTLINES is "
                f"{expected}; the outlines in the file are used"
            )

    for keyword, words in _entries(text):
        if keyword == "ABNORMALITY":
            check_outlines()
            outlines = 0
            is_numbered = bool(words) and _NUMBER.fullmatch(words[0])
            found.append(Abnormality(words[0] if is_numbered else str(len(found) + 1)))
        elif keyword.startswith("TOTAL_"):
            announced[keyword] = int(words[0]) if words and _NUMBER.fullmatch(words[0]) else -1
        elif not found:
            raise OverlayError(f"{file}: {keyword} comes before the first ABNORMALITY.")
        elif keyword in ("BOUNDARY", "CORE"):
            outlines += 1
            if keyword == "BOUNDARY" and found[-1].boundary is None:
                _set_boundary(found[-1], words)
        else:
            _describe(found[-1], keyword, words)
    check_outlines()
    expected = announced.get("TOTAL_ABNORMALITIES")
    if expected is None:
        raise OverlayError(f"{file}: has no TOTAL_ABNORMALITIES: not a DDSM overlay, or damaged.")
    if expected < len(found):
        warnings.append(
            f"{file}: has {len(found)} abnormalities, but TOTAL_ABNORMALITIES is {expected}; those in the "
            "file are used"
        )
    return Overlay(tuple(found), tuple(warnings), max(expected - len(found), 0))


def trace(start: tuple[int, int], codes: Sequence[int]) -> NDArray[np.int64]:
    """The points (column, row) [1 + number of codes, 2] of a chain of steps from `start`."""
    steps = STEPS[np.asarray(codes, dtype=np.int64)]
    return np.concatenate([[start], np.asarray(start) + np.cumsum(steps, axis=0)])


def _entries(text: str) -> Iterator[tuple[str, list[str]]]:
    """Each keyword at the start of a line, with all words up to the next keyword."""
    keyword, words = "", list[str]()
    for line in text.upper().splitlines():
        first, *others = line.split() or [""]
        if _KEYWORD.fullmatch(first):
            if keyword:
                yield keyword, words
            keyword, words = first, others
        else:
            words += [first, *others] if first else []
    if keyword:
        yield keyword, words


def _set_boundary(abnormality: Abnormality, words: list[str]) -> None:
    numbers = words[: words.index("#")] if "#" in words else words
    codes = numbers[2:]
    if "#" not in words or len(numbers) < 3:
        problem = f"its BOUNDARY is cut off: it has {len(numbers)} numbers and {words.count('#')} '#'"
    elif not all(_NUMBER.fullmatch(number) for number in numbers[:2]):
        problem = f"its BOUNDARY begins at {' '.join(numbers[:2])!r}; expected a column and a row"
    elif wrong := [code for code in codes if code not in set("01234567")]:
        problem = f"its BOUNDARY has the chain code {wrong[0]!r}; expected 0 to 7"
    else:
        abnormality.boundary = trace((int(numbers[0]), int(numbers[1])), [int(code) for code in codes])
        problem = ""
    abnormality.problem = problem


def _describe(abnormality: Abnormality, keyword: str, words: list[str]) -> None:
    if keyword == "LESION_TYPE":
        abnormality.lesion_types.append(words)
        if words[:1] == ["MASS"]:
            pairs = zip(words[1::2], words[2::2], strict=False)
            abnormality.descriptors.update({key.lower(): value.lower() for key, value in pairs})
    elif keyword in _DESCRIPTORS and words:
        abnormality.descriptors[keyword.lower()] = words[0].lower()
