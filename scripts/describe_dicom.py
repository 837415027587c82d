"""Write docs/dicom.md: what is read of DICOM files, and what the reports hold.

Run ``python scripts/describe_dicom.py > docs/dicom.md``.
"""

import sys
import tempfile
from collections.abc import Iterator, Mapping
from itertools import groupby
from pathlib import Path

import numpy as np
from page_text import table
from pydicom.dataset import Dataset
from pydicom.tag import Tag
from pydicom.uid import UID

from clnet.data.decode import DECODERS, MAX_PIXELS, UNCOMPRESSED
from clnet.data.reader import read_image
from clnet.findings.lesions import merge_into_lesions
from clnet.findings.types import Detections, Link, PairFindings
from clnet.phantom import PhantomSettings, make_phantom
from clnet.reports.deidentify import DUMMIES, METHODS, TABLES, TECHNICAL, UIDS
from clnet.reports.dicom import DEFAULT_REPORTS, DICOM_REPORTS
from clnet.reports.objects import SERIES
from clnet.reports.picture import findings_picture
from clnet.reports.study import BreastReport, StudyReport, report_source
from clnet.serve.spool import MAMMOGRAMS, SECONDARY_CAPTURES

READ: Mapping[str, tuple[str, ...]] = {
    "which object it is": (
        *("SOPClassUID", "SOPInstanceUID", "SeriesInstanceUID", "StudyInstanceUID", "PatientID"),
        *("Modality", "NumberOfFrames", "PresentationIntentType"),
    ),
    "which breast and view": (
        *("ImageLaterality", "Laterality", "SharedFunctionalGroupsSequence", "FrameAnatomySequence"),
        *("FrameLaterality", "ViewPosition", "ViewCodeSequence", "CodeValue", "CodeMeaning"),
        "PatientOrientation",
    ),
    "what makes a view a special one": (
        *("ViewModifierCodeSequence", "PaddleDescription", "ImageType", "SeriesDescription"),
        *("BreastImplantPresent", "BurnedInAnnotation"),
    ),
    "size and pixels": (
        *("TransferSyntaxUID", "Rows", "Columns", "SamplesPerPixel", "PhotometricInterpretation"),
        *("BitsAllocated", "BitsStored"),
        *("HighBit", "PixelRepresentation", "PixelData", "ImagerPixelSpacing", "PixelSpacing"),
    ),
    "grey values": (
        *("ModalityLUTSequence", "RescaleIntercept", "RescaleSlope", "VOILUTSequence", "LUTDescriptor"),
        *("LUTData", "LUTExplanation", "WindowCenter", "WindowWidth", "VOILUTFunction"),
        *("PixelPaddingValue", "PixelPaddingRangeLimit"),
    ),
}
WRITTEN = {
    "measurements": (
        "Measurement Report (TID 1500)",
        "Each box is a planar region of TID 1410, with TID 1419 for its scores; the images are an Image "
        "Library (TID 1600), the algorithm is TID 4019, the observer TID 1004. Without lesions the title is "
        "*Oncology Measurement Report*, also of context group 7021, and there are no *Imaging "
        "Measurements*.",
    ),
    "presentation": (
        "Grayscale Softcopy Presentation State",
        "An object for all images of the study; images that cannot share one get one each. A graphic layer, "
        "boxes (closed polylines in pixels) and text per image; modality LUT, VOI LUT or window of the "
        "images; a presentation LUT shape of IDENTITY, or INVERSE for MONOCHROME1; the whole image as "
        "displayed area.",
    ),
    "picture": (
        "Secondary Capture picture",
        "RGB, 8 bits, of all breasts side by side. *Derivation Description* has the notice, *Source Image "
        "Sequence* the images. None is written if no image may be drawn.",
    ),
    "cad": (
        "Mammography CAD Report (TID 4000)",
        "A lesion of both views is a composite feature (TID 4004) of two single image findings (TID 4006), "
        "each with centre and outline (TID 4021).",
    ),
}


def page() -> str:
    """The whole page."""
    report = example()
    documents = {kind: make(report)[0] for kind, make in DICOM_REPORTS.items()}
    parts = [HEAD, READING, syntaxes(), ACCEPTED, tags(), WRITING, objects(documents)]
    for kind, (title, words) in WRITTEN.items():
        parts += [f"### {title}", words]
        if "ContentSequence" in documents[kind]:
            parts.append(f"```\n{tree(documents[kind])}\n```")
        parts.append(f"Attributes of the data set: {attributes(documents[kind])}.")
    air = table(["required", "met", "how, or why not"], AIR_ROWS)
    return "\n\n".join([*parts, deidentified(), network(), AIR, air]) + "\n"


def network() -> str:
    """The services of the node."""
    services = table(["what", "role", "by"], SERVICES)
    return NETWORK.format(services=services, captures=len(SECONDARY_CAPTURES))


def example() -> StudyReport:
    """A lesion in both views of the left breast, one in CC alone, and a right breast without findings."""
    cc = Detections(np.array([[10.0, 20, 30, 40], [50, 60, 70, 80]]), np.array([0.9, 0.7]))
    found = {
        "L": PairFindings("L", cc, Detections(cc.boxes[:1], cc.scores[:1]), (Link(0, 0, 0.9),)),
        "R": PairFindings("R", Detections(), Detections()),
    }
    with tempfile.TemporaryDirectory() as folder:
        make_phantom(Path(folder), PhantomSettings(2, rows=128, columns=96), workers=1)
        images = [read_image(file) for file in sorted(Path(folder, "images").glob("*.dcm"))]
    breasts = []
    for side, findings in found.items():
        of_side = [image for image in images if image.header.laterality == side]
        sources = {
            str(image.header.view).lower(): report_source(image.tags, "example")
            for image in of_side
            if image.tags is not None
        }
        lesions = tuple(merge_into_lesions(findings, 0.5))
        pixels = {str(image.header.view).lower(): image.pixels for image in of_side}
        breasts.append(BreastReport(side, lesions, sources, findings_picture(pixels, lesions, "", side=side)))
    return StudyReport(tuple(breasts), "1.0", "Research model, not for patients", 0.5)


def syntaxes() -> str:
    """The transfer syntaxes that are read."""
    decoders = dict.fromkeys(UNCOMPRESSED, "pydicom") | {
        uid: package for uid, (package, _) in DECODERS.items()
    }
    return table(
        ["transfer syntax", "UID", "decoded by"],
        [[UID(uid).name, f"`{uid}`", package] for uid, package in decoders.items()],
    )


def tags() -> str:
    """The attributes that reading relies on."""
    return table(
        ["tag", "attribute", "says"],
        [
            [f"({Tag(keyword).group:04X},{Tag(keyword).element:04X})", keyword, "" if number else purpose]
            for purpose, keywords in READ.items()
            for number, keyword in enumerate(keywords)
        ],
    )


def objects(documents: Mapping[str, Dataset]) -> str:
    """The kinds of reports."""
    rows = []
    for kind, document in documents.items():
        number, what = SERIES[kind]
        rows.append(
            [
                f"`{kind}`{'' if kind in DEFAULT_REPORTS else ' (if asked for)'}",
                f"{document.SOPClassUID.name} `{document.SOPClassUID}`",
                document.Modality or "",
                f"{number}, *CL-Net {what}: …*",
                document.file_meta.TransferSyntaxUID.name,
            ]
        )
    heads = ["`--reports`", "SOP class", "modality", "series number, description", "transfer syntax"]
    return table(heads, rows)


def tree(document: Dataset) -> str:
    """The content tree of the example; items that are alike but for their values are one line."""
    root = document.ConceptNameCodeSequence[0]
    return "\n".join([f"CONTAINER {_code(root)}", *_branches(document, 1)])


def _branches(item: Dataset, depth: int) -> Iterator[str]:
    children = list(item.get("ContentSequence", ()))
    for _, alike in groupby(children, key=_line):
        first, *others = alike
        times = f"  × {1 + len(others)}" if others else ""
        yield f"{'  ' * depth}{_line(first)}{times}"
        yield from _branches(first, depth + 1)


def _line(item: Dataset) -> str:
    """What an item is, without what differs between boxes."""
    relationship = item.RelationshipType.lower()
    if "ReferencedContentItemIdentifier" in item:
        return f"{relationship}: by reference to an entry of the Image Library"
    name = _code(item.ConceptNameCodeSequence[0]) if "ConceptNameCodeSequence" in item else ""
    value = ""
    if item.ValueType == "CODE":
        value = f" = {_code(item.ConceptCodeSequence[0])}"
    elif item.ValueType == "NUM":
        value = f" in {item.MeasuredValueSequence[0].MeasurementUnitsCodeSequence[0].CodeValue}"
    elif item.ValueType == "SCOORD":
        value = f" {item.GraphicType}"
    return f"{relationship}: {item.ValueType} {name}{value}".replace("  ", " ")


def _code(code: Dataset) -> str:
    if code.CodingSchemeDesignator.startswith("99"):
        return f"the name of the box ({code.CodingSchemeDesignator})"
    return f"{code.CodeMeaning} ({code.CodeValue}, {code.CodingSchemeDesignator})"


def attributes(document: Dataset) -> str:
    """The keywords of a document's own attributes."""
    return ", ".join(f"`{element.keyword}`" for element in document)


def deidentified() -> str:
    """What a report for sharing keeps of the images."""
    kept = ", ".join(f"`{name}`" for name in (*TECHNICAL, *TABLES))
    methods = ", ".join(f"{method.meaning} ({method.value}, DCM)" for method in METHODS)
    dummies = ", ".join(f"{vr} {value}" for vr, value in DUMMIES.items())
    return (
        "### With `--deidentify`\n\n"
        f"From the images, {kept} are kept. {', '.join(f'`{name}`' for name in UIDS)} are replaced, and so "
        f"is what follows from them; dates become {dummies}. Stated as methods: {methods}. "
        "`tests/reports/test_deidentify.py` checks the attributes of each report against Table E.1-1 of "
        "PS3.15."
    )


HEAD = """# DICOM conformance statement

What clnet reads and writes of DICOM. [Reports in viewers](viewers.md) says which programs have read the
reports, and [From a folder to a report](deployment.md#the-reports-of-a-study) what they mean. `python
scripts/describe_dicom.py > docs/dicom.md` writes this page from the code."""

READING = """## What is read

DICOM files (PS3.10) in a folder; the names of the files do not matter."""

ACCEPTED = f"""The SOP class is not checked. An image is analysed if its Modality is MG, it has one frame and
one sample per pixel, MONOCHROME1 or MONOCHROME2, 8 or 16 bits allocated, at most {MAX_PIXELS:,} pixels, and
shows CC or MLO of a breast that it names. So these are read: Digital Mammography X-Ray Image Storage – For
Presentation, Computed Radiography Image Storage, Digital X-Ray Image Storage – For Presentation, and
Breast Tomosynthesis Image Storage if it is a synthetic 2D image. Secondary Capture Image Storage needs
`--secondary-capture`. Left out, with the reason in `summary.json`: images for processing, tomosynthesis
stacks, special views and second images of a view. Refused: what is damaged."""

WRITING = """## What is written

Patient and study are copied from the first image; attributes with invalid values become empty. Every
object is new: the images are not changed. The same images, model and settings give the same SOP
Instance UIDs, below the root 2.25. Character sets are those of the images. Structured reports are
COMPLETE, UNVERIFIED and PRELIMINARY. The trees below are of a study with a lesion in both views and one
in CC alone in the left breast, and none in the right breast; × counts items that differ only in their
values, of which the first is shown."""

NETWORK = """## Network

`clnet predict` reads and writes files. [`clnet serve`](serve.md) takes images and sends what is written:

{services}

With `secondary_capture`, the {captures} SOP classes of Secondary Capture are taken as well. Images come in
any transfer syntax; reports are offered in the one in which they are written. A refused object gets
[a status](serve.md#what-happens-to-a-study). Not offered: storage commitment, C-FIND, C-MOVE, worklists.

The Label app reads images by DICOMweb (QIDO-RS, WADO-RS), see [Annotate pairs](label.md)."""
SERVICES = (
    ("Verification", "SCP", "C-ECHO"),
    *((UID(uid).name, "SCP", "C-STORE, STOW-RS") for uid in MAMMOGRAMS),
    ("the reports above", "SCU", "C-STORE, STOW-RS"),
    (
        "Query and retrieve",
        "user agent",
        "QIDO-RS and WADO-RS, or the REST API of Orthanc, if `poll` asks for it",
    ),
)

AIR = """## IHE AI Results

What the IHE Radiology profile AI Results (AIR) requires of an Evidence Creator, as we understand its
published summary. This was never tested at a Connectathon, and **we claim no conformance**."""

AIR_ROWS = (
    (
        "results are DICOM objects in the study of the images",
        "yes",
        "patient and study are copied; all images are evidence",
    ),
    ("structured results as TID 1500, one tree per study", "yes", "`measurements`"),
    (
        "its SOP class",
        "not known",
        "Comprehensive SR, as regions are 2D. The full text, which we have not read, may ask for "
        "Comprehensive 3D SR",
    ),
    (
        "which algorithm, which version",
        "yes",
        "TID 4019 with the digest of the weights; observer is a device",
    ),
    (
        "qualitative findings, also negative ones",
        "yes",
        "*Mammographic breast mass: Detected* or *Not detected* per breast",
    ),
    ("measurements with units", "yes", "scores in percent; sizes are not measured"),
    (
        "locations and regions",
        "in part",
        "2D regions on images, by TID 1410. No 3D, no segmentation: boxes are all there is",
    ),
    (
        "tracking identifiers",
        "in part",
        "each box has its own; those of a linked lesion share the UID of its link",
    ),
    ("references to images", "yes", "Image Library, source image of each region"),
    ("parametric maps", "no", "the networks make none"),
    ("results are marked as unverified", "yes", "VerificationFlag UNVERIFIED, PreliminaryFlag PRELIMINARY"),
    ("store by C-STORE or STOW-RS", "yes", "`clnet serve`; `clnet predict` writes files"),
    (
        "title Imaging Measurement Report",
        "in part",
        "without lesions it is *Oncology Measurement Report*, which OHIF shows as text",
    ),
)

if __name__ == "__main__":
    sys.stdout.write(page())
