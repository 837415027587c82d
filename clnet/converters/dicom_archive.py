"""A folder of DICOM files of one's own: views by their headers, boxes from a file, if there is one.

Nothing of a patient goes into the datalist: `Workspace.headers` has pseudonyms for patients and studies.
"""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from clnet.converters.annotations import Annotations, Marks, read_annotations
from clnet.converters.marked import MarkedView, Skipped, Source
from clnet.converters.workspace import Workspace
from clnet.data.header import ImageHeader
from clnet.data.study import why_not_standard

NAME = "DICOM archive"


def read(workspace: Workspace, boxes: Path | None = None, secondary_capture: bool = False) -> Source:
    """The standard views of an archive with the boxes of a file.

    Args:
        workspace: where the archive is.
        boxes: COCO JSON or CSV (see `annotations`).
        secondary_capture: accept Secondary Capture images, for archives known to store mammograms so.
    """
    annotations = read_annotations(boxes) if boxes else Annotations({}, names_all=False)
    skipped = list(annotations.skipped)
    headers, refused = workspace.headers(workspace.files(without=[boxes] if boxes else []))
    skipped += refused
    warnings = [] if boxes else ["no boxes were given: this datalist is for inference, not for training"]
    marks_of, unmatched = _match(annotations.images, headers, workspace)
    skipped += [Skipped(f"{boxes.name}: {key}", "image not found") for key in unmatched if boxes]
    views = []
    for file, header in headers.items():
        reason = why_not_standard(header, secondary_capture)
        if reason is not None:
            skipped.append(Skipped(workspace.name(file), "no standard CC or MLO view", reason))
        elif annotations.names_all and file not in marks_of:
            skipped.append(Skipped(workspace.name(file), "image that is not in the annotations"))
        else:
            views.append(_view(header, marks_of.get(file, Marks()), workspace, warnings))
    return Source(NAME, views, skipped, warnings)


def _match(
    images: Mapping[str, Marks], headers: Mapping[Path, ImageHeader], workspace: Workspace
) -> tuple[dict[Path, Marks], list[str]]:
    """The marks of each file, and the keys that fit none. A bare name counts only if one file has it."""
    bare = Counter(file.name for file in headers)
    found: dict[Path, Marks] = {}
    matched = set()
    for file, header in headers.items():
        for key in (header.sop_instance_uid, workspace.name(file), file.name if bare[file.name] == 1 else ""):
            if key in images:
                found[file] = images[key]
                matched.add(key)
                break
    return found, sorted(set(images) - matched)


def _view(header: ImageHeader, marks: Marks, workspace: Workspace, warnings: list[str]) -> MarkedView:
    ids = [mass.lesion_id for mass in marks.masses]
    repeated = len(set(ids)) < len(ids) and None not in ids
    if repeated:
        warnings.append(
            f"{workspace.name(header.file)}: a lesion id stands at two boxes; its ids are not used as links"
        )
    # Both are there: `why_not_standard` refuses images without.
    laterality, view = header.laterality or "L", header.view or ""
    return MarkedView(
        image=header.file,
        size=(header.rows, header.columns),
        patient_id=header.patient_id or header.study_uid,
        study_id=header.study_uid,
        laterality=laterality,
        view=view.lower(),
        masses=tuple(marks.masses),
        unplaced=tuple(marks.unplaced),
        links_annotated=None not in ids and not repeated,
    )
