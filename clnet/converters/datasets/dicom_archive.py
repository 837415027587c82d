"""Your own folder of DICOM files: views by their headers, boxes from a file, if there is one.

The datalist has no patient data: `Workspace.headers` replaces patients and studies by pseudonyms.
"""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from clnet.converters.annotated import AnnotatedDataset, AnnotatedView
from clnet.converters.datasets.dicom_archive_boxes import BoxFile, ImageBoxes, read_box_file
from clnet.converters.links import ids_are_links
from clnet.converters.workspace import Workspace
from clnet.data.header import ImageHeader
from clnet.data.study import why_not_standard


def read(
    workspace: Workspace, boxes: Path | None = None, secondary_capture: bool = False
) -> AnnotatedDataset:
    """Read the standard views of an archive, with the boxes in a file.

    Args:
        workspace: the archive and where to write.
        boxes: COCO JSON or CSV (see `dicom_archive_boxes`).
        secondary_capture: accept Secondary Capture images, for archives known to store mammograms as such.
    """
    box_file = read_box_file(boxes) if boxes else BoxFile({}, lists_all_images=False)
    workspace.skipped.extend(box_file.skipped)
    if not boxes:
        workspace.warn("no boxes were given: the datalist is for inference, not for training")
    headers = workspace.headers(workspace.files(without=[boxes] if boxes else []))
    boxes_of, unmatched = _match(box_file.images, headers, workspace)
    for key in unmatched:
        workspace.skip(f"{boxes.name if boxes else ''}: {key}", "image not found")
    views = []
    for file, header in headers.items():
        reason = why_not_standard(header, secondary_capture)
        if reason is not None:
            workspace.skip(file, "not a standard CC or MLO view", reason)
        elif box_file.lists_all_images and file not in boxes_of:
            workspace.skip(file, "image not in the annotations")
        else:
            views.append(_view(header, boxes_of.get(file, ImageBoxes()), workspace))
    return AnnotatedDataset("DICOM archive", views)


def _match(
    images: Mapping[str, ImageBoxes], headers: Mapping[Path, ImageHeader], workspace: Workspace
) -> tuple[dict[Path, ImageBoxes], list[str]]:
    """The boxes of each file, and the keys without a file. A bare file name must be unique to match."""
    bare = Counter(file.name for file in headers)
    found: dict[Path, ImageBoxes] = {}
    matched = set()
    for file, header in headers.items():
        for key in (header.sop_instance_uid, workspace.name(file), file.name if bare[file.name] == 1 else ""):
            if key in images:
                found[file] = images[key]
                matched.add(key)
                break
    return found, sorted(set(images) - matched)


def _view(header: ImageHeader, boxes: ImageBoxes, workspace: Workspace) -> AnnotatedView:
    # Neither is missing: `why_not_standard` rejects such images.
    laterality, view = header.laterality or "L", header.view or ""
    return AnnotatedView(
        image=header.file,
        size=(header.rows, header.columns),
        patient_id=header.patient_id or header.study_uid,
        study_id=header.study_uid,
        laterality=laterality,
        view=view.lower(),
        masses=tuple(boxes.masses),
        unlocated=tuple(boxes.unlocated),
        links_annotated=ids_are_links(boxes.masses, workspace.name(header.file), workspace),
    )
