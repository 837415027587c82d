"""DDSM's `.ics` file: one case, its films and their sizes.

::

    filename B-3024-1
    PATIENT_AGE 42
    DENSITY 4
    DIGITIZER LUMISYS LASER
    LEFT_CC LINES 4696 PIXELS_PER_LINE 3024 BITS_PER_PIXEL 12 RESOLUTION 50 OVERLAY
"""

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from clnet.converters.marked import ConversionError

FILM_NAMES = ("LEFT_CC", "LEFT_MLO", "RIGHT_CC", "RIGHT_MLO")
_NUMBERS = ("LINES", "PIXELS_PER_LINE", "BITS_PER_PIXEL")


class IcsError(ConversionError):
    """An `.ics` file that does not say what it must; the message names file and line."""


@dataclass(frozen=True)
class Film:
    """A line of the file: one digitised film.

    Attributes:
        name: "LEFT_CC", "LEFT_MLO", "RIGHT_CC" or "RIGHT_MLO".
        rows, columns: of the image, in pixels.
        bits: of a pixel, as the file says.
        has_overlay: an `.OVERLAY` file with outlines belongs to it.
    """

    name: str
    rows: int
    columns: int
    bits: int
    has_overlay: bool


@dataclass(frozen=True)
class Case:
    """What an `.ics` file says.

    Attributes:
        case_id: letter of the institution, patient and exam, such as "B_3024_1".
        digitizer: the first word of it: "DBA", "HOWTEK" or "LUMISYS"; "" if the file does not say.
        density: ACR breast density, 1 to 4; None if missing or 0.
        films: as many as there are lines.
    """

    case_id: str
    digitizer: str
    density: int | None
    films: tuple[Film, ...]

    @property
    def patient_id(self) -> str:
        """The case without the number of the exam."""
        return "_".join(self.case_id.split("_")[:2])


def parse_ics(text: str, file: Path) -> Case:
    """Take the content of an `.ics` file apart; `file` is named in errors."""
    facts: dict[str, list[str]] = {}
    films: list[Film] = []
    for number, line in enumerate(text.splitlines(), start=1):
        words = line.split()
        if not words:
            continue
        if words[0].upper() in FILM_NAMES:
            films.append(_film(words, f"{file}, line {number}"))
        else:
            facts[words[0].upper()] = words[1:]
    case_id = " ".join(facts.get("FILENAME", [])).replace("-", "_").upper().removesuffix(".ICS")
    if len(case_id.split("_")) < 2 or not films:
        missing = "a line 'filename', such as B-3024-1" if films else "any line of a film, such as LEFT_CC"
        raise IcsError(f"{file}: has not {missing}. Fetch it again from its source.")
    if len({film.name for film in films}) < len(films):
        raise IcsError(f"{file}: names a film twice. Fetch it again from its source.")
    return Case(
        case_id=case_id,
        digitizer=(facts.get("DIGITIZER") or [""])[0].upper(),
        density=_positive(facts.get("DENSITY")),
        films=tuple(films),
    )


def _film(words: list[str], place: str) -> Film:
    values = dict(pairwise(words))
    numbers = {}
    for key in _NUMBERS:
        text = values.get(key, "")
        if not text.isdecimal() or int(text) == 0:
            raise IcsError(f"{place}: {key} is {text or 'missing'!r}; a number above 0 is expected.")
        numbers[key] = int(text)
    return Film(
        name=words[0].upper(),
        rows=numbers["LINES"],
        columns=numbers["PIXELS_PER_LINE"],
        bits=numbers["BITS_PER_PIXEL"],
        has_overlay=words[-1].upper() == "OVERLAY",
    )


def _positive(words: list[str] | None) -> int | None:
    """The number of a line whose value may be missing, 0 or no number."""
    if not words or not words[0].isdecimal():
        return None
    return int(words[0]) or None
