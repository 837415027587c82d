"""Structured reports, read back without the code that wrote them; and other people's checkers."""

import os
import shutil
import subprocess

import highdicom
import pydicom
import pytest

LINK, SCORE = "111011", "111012"  # Certainty of Feature, Certainty of Finding


def needs(program, package):
    """Skip a test without a program; in CI it must be there."""
    missing = not shutil.which(program) and not os.environ.get("CI")
    return pytest.mark.skipif(missing, reason=f"needs {program} (Debian: {package})")


def errors_of_dciodvfy(path):
    said = subprocess.run(["dciodvfy", str(path)], capture_output=True, text=True, check=False)
    lines = (said.stdout + said.stderr).splitlines()
    assert any(line.endswith("SR") for line in lines), f"not recognised: {lines}"
    return [line for line in lines if line.startswith(("Error", "E:"))]


# What dcmtk itself cannot do.
EXCUSED = ("Check for template constraints not yet supported", "does not support this Specific Character Set")


def complaints_of_dsrdump(path):
    said = subprocess.run(["dsrdump", str(path)], capture_output=True, text=True, check=False)
    lines = [line for line in said.stderr.splitlines() if not line.endswith(EXCUSED[0])]
    return [line for line in lines if EXCUSED[1] not in line]


def lesions_of_measurements(path):
    """[{SOPInstanceUID: (box, score), "link": …}], a dictionary for each Tracking Unique Identifier."""
    lesions = {}
    for group in highdicom.sr.srread(path).content.get_planar_roi_measurement_groups():
        lesion = lesions.setdefault(group.tracking_uid, {"link": None})
        columns, rows = group.roi.value.T
        box = (columns.min(), rows.min(), columns.max(), rows.max())
        scores = {item.name.value: item.value for item in group.get_measurements()}
        lesion[group.roi.ContentSequence[0].referenced_sop_instance_uid] = (box, scores[SCORE])
        lesion["link"] = scores.get(LINK)
    return list(lesions.values())


def children(item, code):
    return [
        child
        for child in item.get("ContentSequence", ())
        if "ConceptNameCodeSequence" in child and child.ConceptNameCodeSequence[0].CodeValue == code
    ]


def number(item, code):
    found = children(item, code)
    return float(found[0].MeasuredValueSequence[0].NumericValue) if found else None


def lesions_of_cad(path):
    """The same of a Mammography CAD report, a dictionary for each impression."""
    document = pydicom.dcmread(path)
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


def assert_same_lesions(read, lesions, findings, uids, only_linked=False):
    """What was read equals findings: boxes within half a pixel, scores within their last digit."""
    assert len(read) == len(lesions)
    for found, lesion in zip(read, lesions, strict=True):
        link = None if only_linked and not lesion.is_linked else lesion.link_score
        assert found.pop("link") == (None if link is None else pytest.approx(100 * link, abs=1e-4))
        expected = {
            uids[view]: (detections.boxes[seen.index], detections.scores[seen.index])
            for view, detections in findings.views.items()
            if (seen := getattr(lesion, view)) is not None
        }
        assert found.keys() == expected.keys()
        for uid, (box, score) in expected.items():
            assert found[uid][0] == pytest.approx(box.tolist(), abs=0.5)
            assert found[uid][1] == pytest.approx(100 * score, abs=1e-4)
