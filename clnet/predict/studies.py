"""The studies of a task: breasts that are reported together, and the folder of their reports.

``studies/<study_id>/`` appears complete or not at all:

================  ==================================================================
study.json        which breasts it is about, its files and warnings: `StudyResult`, and their digests
measurements.dcm  and the other DICOM reports, see `clnet.reports.dicom`
================  ==================================================================

A study is named by a digest, as a breast is.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from clnet.data.header import read_header
from clnet.data.image_errors import ImageError
from clnet.files import whole_folder
from clnet.predict.breasts import BreastImages, digest
from clnet.predict.result_record import read_record, write_record

STUDIES = "studies"
RECORD = "study.json"


@dataclass(frozen=True)
class Study:
    """Breasts that are reported together.

    Attributes:
        study_id: 12 hexadecimal digits.
        breasts: one of each side at most, the left one first.
    """

    study_id: str
    breasts: tuple[BreastImages, ...]


@dataclass(frozen=True)
class StudyResult:
    """The reports that were written for a study.

    Attributes:
        study_id: which.
        key: changes with the files, the model and the settings that the reports came from.
        breasts: the breast_ids of those that the reports are about.
        reports: the names of the files.
        warnings: what is unusual about them.
    """

    study_id: str
    key: str
    breasts: tuple[str, ...]
    reports: tuple[str, ...]
    warnings: tuple[str, ...] = ()


def group_by_study(breasts: Iterable[BreastImages]) -> list[Study]:
    """The studies of breasts, in the order in which they first appear.

    Films of one CBIS-DDSM patient count as one study, see `clnet.data.film_names`. Where a datalist has
    several pairs of one side and study, each further one begins another group.
    """
    groups: dict[tuple[str, int], dict[str, BreastImages]] = defaultdict(dict)
    for breast in breasts:
        study, side, number = study_of(breast), breast.pair.laterality, 0
        while side in groups[study, number]:
            number += 1
        groups[study, number][side] = breast
    return [
        Study(digest(f"{study} {number}"), tuple(of_side[side] for side in sorted(of_side)))
        for (study, number), of_side in groups.items()
    ]


def study_of(breast: BreastImages) -> str:
    """Identifies the study of a breast: the StudyInstanceUID, or what takes its place."""
    if breast.study:
        return breast.study
    for view in breast.pair.views.values():
        try:
            study = read_header(view.image).study_uid
        except ImageError:
            continue  # it is refused when it is read
        if study:
            return study
    return breast.breast_id


def write_study(output: Path, study_id: str, write: Callable[[Path], StudyResult]) -> StudyResult:
    """Write a study's folder.

    Args:
        output: of the run.
        study_id: which.
        write: writes the reports into a folder, and says what it wrote.
    """
    with whole_folder(output / STUDIES / study_id) as folder:
        result = write(folder)
        write_record(folder / RECORD, asdict(result))
    return result


def read_study(output: Path, study_id: str, key: str) -> StudyResult | None:
    """What was written for a study; None if there is nothing with this key, or if it is damaged."""
    record = read_record(output / STUDIES / study_id / RECORD, key)
    if record is None:
        return None
    lists = {name: tuple(record[name]) for name in ("breasts", "reports", "warnings")}
    return StudyResult(record["study_id"], key, **lists)
