"""DICOM reports, read back without the code that wrote them; and other people's checkers."""

import os
import re
import shutil
import subprocess

import highdicom
import numpy as np
import pydicom
import pytest

LINK, SCORE = "111011", "111012"  # Certainty of Feature, Certainty of Finding
TRACKING_UID, COMMENT = "112040", "121106"


def needs(program, package):
    """Skip a test without a program; in CI it must be there."""
    missing = not shutil.which(program) and not os.environ.get("CI")
    return pytest.mark.skipif(missing, reason=f"needs {program} (Debian: {package})")


KINDS_OF_DCIODVFY = ("SR", "GrayscaleSoftcopyPresentationState", "SCImage")


def errors_of_dciodvfy(path):
    said = subprocess.run(["dciodvfy", str(path)], capture_output=True, text=True, check=False)
    lines = (said.stdout + said.stderr).splitlines()
    assert any(line.endswith(KINDS_OF_DCIODVFY) for line in lines), f"not recognised: {lines}"
    return [line for line in lines if line.startswith(("Error", "E:"))]


# What dcmtk itself cannot do.
EXCUSED = ("Check for template constraints not yet supported", "does not support this Specific Character Set")


def complaints_of_dsrdump(path):
    said = subprocess.run(["dsrdump", str(path)], capture_output=True, text=True, check=False)
    lines = [line for line in said.stderr.splitlines() if not line.endswith(EXCUSED[0])]
    return [line for line in lines if EXCUSED[1] not in line]


def complaints_of_dcmpschk(path):
    said = subprocess.run(["dcmpschk", str(path)], capture_output=True, text=True, check=False)
    return [] if "Test passed." in said.stderr else said.stderr.splitlines()


def lesions_of_measurements(folder):
    """[{SOPInstanceUID: (box, score), "link": …, "labels": […]}], a dictionary for each lesion."""
    lesions = {}
    for group in highdicom.sr.srread(folder / "measurements.dcm").content.get_planar_roi_measurement_groups():
        linked = children(group[0], LINK)
        lesion_uid = children(linked[0], TRACKING_UID)[0].UID if linked else group.tracking_uid
        lesion = lesions.setdefault(lesion_uid, {"link": None, "labels": []})
        columns, rows = group.roi.value.T
        box = (columns.min(), rows.min(), columns.max(), rows.max())
        scores = {item.name.value: item.value for item in group.get_measurements()}
        lesion[group.roi.ContentSequence[0].referenced_sop_instance_uid] = (box, scores[SCORE] / 100)
        lesion["link"] = scores[LINK] / 100 if linked else None
        lesion["labels"].append(children(group[0], COMMENT)[0].TextValue)
    return list(lesions.values())


def children(item, code):
    return [
        child
        for child in item.get("ContentSequence", ())
        if "ConceptNameCodeSequence" in child and child.ConceptNameCodeSequence[0].CodeValue == code
    ]


def number(item, code):
    found = children(item, code)
    return float(found[0].MeasuredValueSequence[0].NumericValue) / 100 if found else None


def lesions_of_cad(folder):
    """The same of a Mammography CAD report, which has no labels; a dictionary for each impression."""
    document = pydicom.dcmread(folder / "cad.dcm")
    (library,) = children(document, "111028")
    images = [item.ReferencedSOPSequence[0].ReferencedSOPInstanceUID for item in library.ContentSequence]
    (summary,) = children(document, "111017")
    lesions = []
    for impression in children(summary, "111034"):
        features = children(impression, "111015")
        findings = children(features[0] if features else impression, "111059")
        lesion = {"link": number(features[0], LINK) if features else None}
        for finding in findings:
            (outline,), (centre,) = children(finding, "111041"), children(finding, "111010")
            xs, ys = outline.GraphicData[::2], outline.GraphicData[1::2]
            assert outline.GraphicType == "POLYLINE" and (xs[0], ys[0]) == (xs[-1], ys[-1])
            box = (min(xs), min(ys), max(xs), max(ys))
            middle = ((box[0] + box[2]) / 2, (box[1] + box[3]) / 2)
            assert centre.GraphicType == "POINT"
            assert list(centre.GraphicData) == pytest.approx(middle, abs=0.01)
            root, place, entry = outline.ContentSequence[0].ReferencedContentItemIdentifier
            assert document.ContentSequence[place - 1] == library and root == 1
            lesion[images[entry - 1]] = (box, number(finding, SCORE))
        lesions.append(lesion)
    return lesions


def lesions_of_presentation(folder):
    """The same of the presentation states of a study; scores have two digits, and links have none."""
    lesions = {}
    for path in sorted(folder.glob("presentation*.dcm")):
        for annotation in pydicom.dcmread(path).GraphicAnnotationSequence:
            (image,) = annotation.ReferencedImageSequence
            labels = [text.UnformattedTextValue for text in annotation.TextObjectSequence]
            for graphic in annotation.get("GraphicObjectSequence", ()):
                points = np.array(graphic.GraphicData).reshape(-1, 2)
                assert (points[0] == points[-1]).all() and graphic.GraphicAnnotationUnits == "PIXEL"
                (label,) = (text for text in labels if text.startswith(f"{graphic.TrackingID} "))
                lesion = lesions.setdefault(graphic.TrackingUID, {"labels": []})
                score = float(re.fullmatch(r"[LR]\d+ (CC|MLO) (\d\.\d\d)(, .*)?", label)[2])
                lesion[image.ReferencedSOPInstanceUID] = (*points.min(0), *points.max(0)), score
                lesion["labels"].append(label)
    return list(lesions.values())


READERS = {
    "measurements": lesions_of_measurements,
    "cad": lesions_of_cad,
    "presentation": lesions_of_presentation,
}
DIGITS = {"measurements": 1e-6, "cad": 1e-6, "presentation": 0.005}  # of scores


def assert_same_lesions(kind, folder, breasts):
    """What a report says equals findings: boxes within half a pixel, scores to their last digit.

    breasts: (lesions, findings, {view: SOPInstanceUID}) of each.
    """
    read = READERS[kind](folder)
    expected = [(lesion, findings, uids) for lesions, findings, uids in breasts for lesion in lesions]
    assert len(read) == len(expected)
    by_images = {frozenset(key for key in lesion if "." in key): [] for lesion in read}
    for lesion in read:
        by_images[frozenset(key for key in lesion if "." in key)].append(lesion)
    for lesion, findings, uids in expected:
        boxes = {
            uids[view]: (detections.boxes[seen.index], detections.scores[seen.index])
            for view, detections in findings.views.items()
            if (seen := getattr(lesion, view)) is not None
        }
        found = by_images[frozenset(boxes)].pop(0)  # lesions of the same images are in the same order
        for uid, (box, score) in boxes.items():
            assert found[uid][0] == pytest.approx(box.tolist(), abs=0.5)
            assert found[uid][1] == pytest.approx(score, abs=DIGITS[kind] + 1e-9)
        if "link" in found:
            link = lesion.link_score if lesion.is_linked else None
            assert found["link"] == (None if link is None else pytest.approx(link, abs=1e-6))
