"""How CBIS-DDSM names its films.

There, each film has a study and a PatientID of its own, and the PatientID says which film it is, such as
``Mass-Test_P_00173_LEFT_CC``. So the films of one patient, here P_00173, count as one study. A number at the
end marks a crop or a mask of an abnormality.
"""

import re
from dataclasses import dataclass

from clnet.data.views import Laterality

FILM = re.compile(
    r"(?:Mass|Calc)-(?:Training|Test)_(?P<patient>P_\d{5})_(?P<side>LEFT|RIGHT)_(?P<view>CC|MLO)(?P<number>_\d+)?"
)
CROP_OR_MASK = "crop or mask of an abnormality"


@dataclass(frozen=True)
class FilmName:
    """What a PatientID of CBIS-DDSM says.

    Attributes:
        patient: such as "P_00173".
        laterality: "L" or "R".
        view: "CC" or "MLO".
        is_numbered: it has a number: a crop or a mask, unless the series is described as a full mammogram.
    """

    patient: str
    laterality: Laterality
    view: str
    is_numbered: bool

    @property
    def study(self) -> str:
        """Takes the place of the StudyInstanceUID, of which every film has its own."""
        return f"CBIS-DDSM {self.patient}"


def parse_film_name(patient_id: str) -> FilmName | None:
    """The parts of a PatientID in the manner of CBIS-DDSM; None for any other."""
    match = FILM.fullmatch(patient_id)
    if match is None:
        return None
    laterality: Laterality = "L" if match["side"] == "LEFT" else "R"
    return FilmName(match["patient"], laterality, match["view"], match["number"] is not None)
