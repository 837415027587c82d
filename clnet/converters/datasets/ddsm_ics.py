"""The `.ics` files of DDSM: a case, its films and their sizes.

::

    filename B-3024-1
    PATIENT_AGE 42
    DENSITY 4
    DIGITIZER LUMISYS LASER
    LEFT_CC LINES 4696 PIXELS_PER_LINE 3024 BITS_PER_PIXEL 12 RESOLUTION 50 OVERLAY
"""

import re
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from clnet.converters.annotated import ConversionError

NUMBER = re.compile("[0-9]{1,9}")
FILM_NAMES = ("LEFT_CC", "LEFT_MLO", "RIGHT_CC", "RIGHT_MLO")


class IcsError(ConversionError):
    """An invalid `.ics` file; the message names file and line."""


@dataclass(frozen=True)
class Film:
    """One digitised film: a line of the file.

    Attributes:
        name: "LEFT_CC", "LEFT_MLO", "RIGHT_CC" or "RIGHT_MLO".
        rows, columns: of the image, in pixels.
        has_overlay: whether it has an `.OVERLAY` file with outlines.
    """

    name: str
    rows: int
    columns: int
    has_overlay: bool


@dataclass(frozen=True)
class Case:
    """The content of an `.ics` file.

    Attributes:
        case_id: letter of the institution, patient and exam, such as "B_3024_1".
        digitizer: its first word, "DBA", "HOWTEK" or "LUMISYS"; "" if the file does not say.
        density: ACR breast density, 1 to 4; None if missing or 0.
        films: in the order of the file.
    """

    case_id: str
    digitizer: str
    density: int | None
    films: tuple[Film, ...]

    @property
    def patient_id(self) -> str:
        """The case id without the number of the exam."""
        return "_".join(self.case_id.split("_")[:2])


def parse_ics(text: str, file: Path) -> Case:
    """Parse the content of an `.ics` file; `file` is named in errors."""
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
        missing = "line 'filename', such as B-3024-1" if films else "line of a film, such as LEFT_CC"
        raise IcsError(f"{file}: has no {missing}. Download it again.")
    if len({film.name for film in films}) < len(films):
        raise IcsError(f"{file}: lists a film twice. Download it again.")
    return Case(
        case_id=case_id,
        digitizer=(facts.get("DIGITIZER") or [""])[0].upper(),
        density=_positive(facts.get("DENSITY")),
        films=tuple(films),
    )


def _film(words: list[str], where: str) -> Film:
    values = dict(pairwise(words))

    def number(key: str) -> int:
        text = values.get(key, "")
        if not NUMBER.fullmatch(text) or int(text) == 0:
            raise IcsError(f"{where}: {key} is {text or 'missing'!r}; expected a number above 0.")
        return int(text)

    return Film(
        name=words[0].upper(),
        rows=number("LINES"),
        columns=number("PIXELS_PER_LINE"),
        has_overlay=words[-1].upper() == "OVERLAY",
    )


def _positive(words: list[str] | None) -> int | None:
    """The number in the words of a line; None if it is missing, 0 or not a number."""
    if not words or not NUMBER.fullmatch(words[0]):
        return None
    return int(words[0]) or None
