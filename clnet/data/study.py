"""Choose the CC and MLO view of each breast in a folder of DICOM files, and say what was left out and why.

Only tags are read. The two views of a pair come from one study and one breast; films of one CBIS-DDSM patient
count as one study (`clnet.data.film_names`). A view is standard if nothing
makes it special (`why_not_standard`); among several of the same view the better one is taken (`_rank`).
"""

import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tqdm import tqdm

from clnet.data.header import SECONDARY_CAPTURE, TOMOSYNTHESIS, ImageHeader, read_header
from clnet.data.image_errors import ImageError, NotAnImageError
from clnet.data.views import IMPLANT_DISPLACED
from clnet.processes import end_with_parent

FILES_PER_WORKER = 500  # fewer are read sooner than another process starts


@dataclass(frozen=True)
class LeftOut:
    """A file that is not used, and why."""

    file: Path
    reason: str


@dataclass(frozen=True)
class Scan:
    """What a folder holds: the headers of its images, and the files that are none."""

    headers: tuple[ImageHeader, ...]
    refused: tuple[LeftOut, ...]


@dataclass(frozen=True)
class ChosenPair:
    """The views chosen for one breast of one study; at least one is there.

    Attributes:
        study_uid: `ImageHeader.study_uid` of both views.
        laterality: the breast, "L" or "R".
        cc, mlo: the chosen image of each view, or None.
        warnings: why a view is missing, and what is unusual about the chosen ones.
    """

    study_uid: str
    laterality: str
    cc: ImageHeader | None
    mlo: ImageHeader | None
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Selection:
    """The pairs of a folder, ordered by study and breast, and the files left out, ordered by name."""

    pairs: tuple[ChosenPair, ...]
    left_out: tuple[LeftOut, ...]


def find_pairs(
    paths: str | Path | Iterable[str | Path],
    secondary_capture: bool = False,
    workers: int | None = None,
    progress: bool = True,
) -> Selection:
    """`scan` a folder (or files and folders) and `choose_pairs` in it; refused files count as left out."""
    found = scan(paths, workers, progress)
    selection = choose_pairs(found.headers, secondary_capture)
    return Selection(selection.pairs, _by_file([*selection.left_out, *found.refused]))


def scan(paths: str | Path | Iterable[str | Path], workers: int | None = None, progress: bool = True) -> Scan:
    """Read the header of every file in a folder, in subfolders too, or of the files and folders given.

    Args:
        paths: a folder, a file, or several. Hidden files are passed over.
        workers: processes to read with; by default as many as there are processors, fewer for few files.
        progress: show a bar, if there is a terminal to show it on.
    """
    files = sorted(set(files_in(paths)))
    workers = workers or min(os.cpu_count() or 1, 1 + len(files) // FILES_PER_WORKER)
    with tqdm(
        total=len(files), desc="Reading headers", unit="file", disable=None if progress else True
    ) as bar:
        results = []
        for result in _read_all(files, workers):
            results.append(result)
            bar.update()
    return Scan(
        headers=tuple(result for result in results if isinstance(result, ImageHeader)),
        refused=tuple(result for result in results if isinstance(result, LeftOut)),
    )


def choose_pairs(headers: Iterable[ImageHeader], secondary_capture: bool = False) -> Selection:
    """Choose the pairs among these images; the order in which they come does not matter.

    Args:
        headers: of the images, as `scan` gives them.
        secondary_capture: accept Secondary Capture images, for data sets known to store mammograms so.
    """
    left_out: list[LeftOut] = []
    standard: dict[tuple[str, str], dict[str, list[ImageHeader]]] = defaultdict(lambda: defaultdict(list))
    special: dict[tuple[str, str], list[tuple[ImageHeader, str]]] = defaultdict(list)
    for header in sorted(headers, key=_rank):
        reason = why_not_standard(header, secondary_capture)
        breast = (header.study_uid, header.laterality or "")
        if reason is None:
            standard[breast][header.view or ""].append(header)
        else:
            left_out.append(LeftOut(header.file, reason))
            special[breast].append((header, reason))

    pairs = []
    for (study, laterality), views in sorted(standard.items()):
        for chosen, *others in views.values():
            left_out.extend(LeftOut(other.file, _why_second(other, chosen)) for other in others)
        cc, mlo = (views[name][0] if name in views else None for name in ("CC", "MLO"))
        warnings = _pair_warnings(cc, mlo, special[study, laterality])
        pairs.append(ChosenPair(study, laterality, cc, mlo, warnings))
    return Selection(tuple(pairs), _by_file(left_out))


def why_not_standard(header: ImageHeader, secondary_capture: bool = False) -> str | None:
    """The reason why an image is no standard CC or MLO mammogram; None if it is one."""
    special = [name for name in header.modifiers if name != IMPLANT_DISPLACED]
    checks = (
        (
            header.frames > 1,
            f"multi-frame image of {header.frames} frames (tomosynthesis), not a 2D mammogram",
        ),
        (
            header.sop_class_uid == TOMOSYNTHESIS and not header.synthetic,
            "tomosynthesis image, not a 2D mammogram",
        ),
        (header.modality != "MG", f"Modality is {header.modality or 'missing'}, not MG"),
        (
            header.samples > 1 or not header.photometric.startswith("MONOCHROME"),
            f"colour image ({header.photometric})",
        ),
        (
            header.sop_class_uid.startswith(SECONDARY_CAPTURE) and not secondary_capture,
            "secondary capture, not an original mammogram (--secondary-capture accepts these)",
        ),
        (header.for_processing, "FOR PROCESSING, not for presentation"),
        (bool(special), f"special view: {', '.join(special)}"),
        (header.view is None, "the view is unknown: no ViewPosition and no ViewCodeSequence"),
        (header.view not in ("CC", "MLO"), f"the view is {header.view}, not CC or MLO"),
        (header.laterality is None, "the breast is unknown: no ImageLaterality L or R"),
        (not header.study_uid, "the study is unknown: no StudyInstanceUID"),
    )
    return next((reason for holds, reason in checks if holds), None)


def _rank(header: ImageHeader) -> tuple[bool, bool, int, str, str]:
    """Sorts the better of two images of one view first; the last two only make the order certain."""
    return (
        IMPLANT_DISPLACED in header.modifiers,
        header.synthetic,
        -header.rows * header.columns,
        header.sop_instance_uid,
        str(header.file),
    )


def _why_second(other: ImageHeader, chosen: ImageHeader) -> str:
    reasons = (
        "it shows the implant displaced",
        "it is synthetic 2D",
        "it is smaller",
        "its SOPInstanceUID comes later",
        "it is a copy with the same SOPInstanceUID",
    )
    differs = [a != b for a, b in zip(_rank(other), _rank(chosen), strict=True)]
    return f"second {other.view} of this breast, {chosen.file.name} is used: {reasons[differs.index(True)]}"


def _pair_warnings(
    cc: ImageHeader | None, mlo: ImageHeader | None, special: Sequence[tuple[ImageHeader, str]]
) -> tuple[str, ...]:
    warnings = []
    for name, header, partner in (("CC", cc, "MLO"), ("MLO", mlo, "CC")):
        if header is None:
            instead = [f"{other.file.name}: {why}" for other, why in special if other.view != partner]
            found = f" (left out: {'; '.join(instead)})" if instead else ""
            warnings.append(f"no standard {name} view in this study{found}")
        elif IMPLANT_DISPLACED in header.modifiers:
            warnings.append(f"{name} shows the implant displaced")
        elif header.synthetic:
            warnings.append(f"{name} is a synthetic 2D image")
    if cc and mlo and cc.patient_id != mlo.patient_id:
        warnings.append(
            "CC and MLO are of one study but have different PatientIDs: check that they belong together"
        )
    return tuple(warnings)


def files_in(paths: str | Path | Iterable[str | Path]) -> Iterator[Path]:
    """Every file; and every folder that cannot be listed, to be refused like a file that cannot be read."""
    unreadable: list[str] = []
    for path in [Path(paths)] if isinstance(paths, (str, Path)) else map(Path, paths):
        if path.is_dir():
            for folder, subfolders, names in os.walk(path, onerror=lambda e: unreadable.append(e.filename)):
                subfolders[:] = [name for name in subfolders if not name.startswith(".")]
                yield from (Path(folder, name) for name in names if not name.startswith("."))
        elif path.exists():
            yield path
        else:
            raise NotAnImageError(f"{path}: no such file or folder. Check the path.")
    yield from map(Path, unreadable)


def _read_all(files: Sequence[Path], workers: int) -> Iterator[ImageHeader | LeftOut]:
    if workers == 1:
        yield from map(_read_or_refuse, files)
        return
    # Processes, not threads: taking tags apart is Python code, of which a process runs one thread at a time.
    with ProcessPoolExecutor(workers, initializer=end_with_parent) as pool:
        yield from pool.map(_read_or_refuse, files, chunksize=50)


def _read_or_refuse(file: Path) -> ImageHeader | LeftOut:
    try:
        return read_header(file)
    except ImageError as error:
        return LeftOut(file, str(error))


def _by_file(left_out: Iterable[LeftOut]) -> tuple[LeftOut, ...]:
    return tuple(sorted(left_out, key=lambda item: str(item.file)))
