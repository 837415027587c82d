"""What both structured reports of a study share: the document, its codes, and the items of its tree.

highdicom checks each item as it is made. Its document would copy and search the whole tree, which takes most
of the time; so it gets the root alone, and the tree when it is done.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from highdicom.sr.coding import CodedConcept
from highdicom.sr.enum import GraphicTypeValues, RelationshipTypeValues
from highdicom.sr.sop import ComprehensiveSR
from highdicom.sr.value_types import (
    CodeContentItem,
    ContainerContentItem,
    ContentItem,
    ContentSequence,
    DateContentItem,
    ImageContentItem,
    NumContentItem,
    ScoordContentItem,
    TextContentItem,
    TimeContentItem,
)
from pydicom.dataset import Dataset
from pydicom.sequence import Sequence as Items
from pydicom.sr.codedict import codes
from pydicom.sr.coding import Code

from clnet.data.header import spacing_of
from clnet.data.tags import text_of
from clnet.reports.maker import ALGORITHM
from clnet.reports.objects import identity, quiet
from clnet.reports.study import StudyReport

DCM = codes.DCM
MASS = codes.SCT.MammographicBreastMass
VIEWS: Mapping[str, Code] = {
    "cc": codes.cid4014.CranioCaudal,
    "mlo": codes.cid4014.MedioLateralObliqueProjection,
}
SIDES: Mapping[str, Code] = {"L": codes.SCT.LeftBreast, "R": codes.SCT.RightBreast}
ENGLISH = Code("en", "RFC5646", "English")
MILLIMETRE = codes.UCUM.Millimeter
PERCENT = codes.UCUM.Percent

CONTAINS = RelationshipTypeValues.CONTAINS
CONTEXT = RelationshipTypeValues.HAS_ACQ_CONTEXT
INFERRED = RelationshipTypeValues.INFERRED_FROM
MODIFIER = RelationshipTypeValues.HAS_CONCEPT_MOD
PROPERTIES = RelationshipTypeValues.HAS_PROPERTIES
SELECTED = RelationshipTypeValues.SELECTED_FROM


def make_document(
    report: StudyReport, kind: str, title: Code, template: str, children: Sequence[Dataset]
) -> ComprehensiveSR:
    """A document of the patient and the study of the first image, with all images in its evidence.

    Args:
        report: what it says.
        kind: a key of `clnet.reports.objects.SERIES`.
        title: the code of its root.
        template: the number of the root's template.
        children: of the root, after its language.
    """
    root = ContainerContentItem(concept(title), is_content_continuous=False, template_id=template)
    language = code_item(MODIFIER, DCM.LanguageOfContentItemAndDescendants, ENGLISH)
    root.ContentSequence = ContentSequence([language])
    with quiet():
        document = ComprehensiveSR(
            report.sources, root, is_complete=True, **identity(report, kind, report.sources[0])
        )
    document.ContentSequence = Items([language, *children])
    document.SeriesDate, document.SeriesTime = document.ContentDate, document.ContentTime
    return document


def library_entries(report: StudyReport, name: Code | None = None) -> list[Dataset]:
    """The images of the library (TID 1601, 4020); what their files do not say is left out.

    Args:
        report: about these images.
        name: of each entry. The templates have none, but OHIF needs one where it shows a report as text.
    """
    return [
        _library_entry(source, breast.laterality, view, name)
        for breast in report.breasts
        for view, source in breast.sources.items()
    ]


def _library_entry(source: Dataset, side: str, view: str, name: Code | None) -> Dataset:
    image = ImageContentItem(
        concept(name or DCM.ImageLibrary),
        source.SOPClassUID,
        source.SOPInstanceUID,
        relationship_type=CONTAINS,
    )
    if name is None:
        del image.ConceptNameCodeSequence  # highdicom always asks for one
    return node(image, *_image_facts(source, side, view))


def _image_facts(source: Dataset, side: str, view: str) -> Iterator[ContentItem]:
    yield code_item(CONTEXT, DCM.ImageLaterality, SIDES[side])
    yield code_item(CONTEXT, DCM.ImageView, VIEWS[view])
    directions = text_of(source, "PatientOrientation").split("\\")
    if len(directions) == 2:  # CBIS-DDSM has something else there
        yield TextContentItem(DCM.PatientOrientationRow, directions[0], CONTEXT)
        yield TextContentItem(DCM.PatientOrientationColumn, directions[1], CONTEXT)
    if source.StudyDate:
        yield DateContentItem(DCM.StudyDate, source.StudyDate, CONTEXT)
    if source.StudyTime:
        yield TimeContentItem(DCM.StudyTime, source.StudyTime, CONTEXT)
    spacing = spacing_of(source)
    if spacing:
        yield NumContentItem(DCM.HorizontalPixelSpacing, spacing[1], MILLIMETRE, relationship_type=CONTEXT)
        yield NumContentItem(DCM.VerticalPixelSpacing, spacing[0], MILLIMETRE, relationship_type=CONTEXT)


def algorithm_items(report: StudyReport, relationship: RelationshipTypeValues) -> list[ContentItem]:
    """The algorithm, its version, and the notice as its parameter (TID 4019)."""
    words = [(DCM.AlgorithmName, ALGORITHM), (DCM.AlgorithmVersion, report.version)]
    if report.notice:
        words.append((DCM.AlgorithmParameters, report.notice))
    return [TextContentItem(name, value, relationship) for name, value in words]


def percent_item(relationship: RelationshipTypeValues, name: Code, score: float) -> NumContentItem:
    """A score in [0, 1] as a number."""
    return NumContentItem(name, percent(score), PERCENT, relationship_type=relationship)


def percent(score: float) -> float:
    """A score in [0, 1] in percent, with as many digits as DICOM's decimal strings take."""
    return round(100 * score, 6)


def outline_item(relationship: RelationshipTypeValues, name: Code, box: Any) -> ScoordContentItem:
    """The closed polyline of an xyxy box; DICOM's pixel edges are ours."""
    points = np.array(outline(box))
    return ScoordContentItem(name, GraphicTypeValues.POLYLINE, points, relationship_type=relationship)


def outline(box: Any) -> list[tuple[float, float]]:
    """The corners [(column, row), …] of an xyxy box, the first one twice."""
    x_min, y_min, x_max, y_max = (float(edge) for edge in box)
    return [(x_min, y_min), (x_max, y_min), (x_max, y_max), (x_min, y_max), (x_min, y_min)]


def code_item(relationship: RelationshipTypeValues, name: Code, value: Code) -> CodeContentItem:
    """A coded answer to a coded question."""
    return CodeContentItem(concept(name), concept(value), relationship)


def container(relationship: RelationshipTypeValues, name: Code, *children: Dataset) -> Dataset:
    """A heading with its children."""
    heading = ContainerContentItem(concept(name), is_content_continuous=False, relationship_type=relationship)
    return node(heading, *children)


def node(item: ContentItem, *children: Dataset) -> Dataset:
    """An item with children; a plain data set, for highdicom's own take no references."""
    plain = Dataset()
    plain.update(item)
    if children:
        plain.ContentSequence = Items(children)
    return plain


def concept(code: Code) -> CodedConcept:
    """A code in the form of highdicom; pydicom's tables hide a blank of no width after some slashes."""
    return CodedConcept(code.value, code.scheme_designator, code.meaning.replace("\u200b", ""))
