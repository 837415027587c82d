"""Findings as a Mammography CAD report (TID 4000): what mammography workstations read.

::

    Mammography CAD Report
      Image Library                       TID 4020: view, breast, orientation, spacing of each image
      CAD Processing and Findings Summary TID 4001
        Individual Impression/Recommendation      TID 4003, one for each lesion
          Composite Feature: breast mass          TID 4004, if both views show it: the link
            Single Image Finding: breast density  TID 4006, one for each view: centre and outline
      Summary of Detections               TID 4015: the algorithm that ran, and on which images
      Summary of Analyses                 TID 4016: the linking, if there were two views

A single image shows a density, and two of them make a mass: so PS3.17 E.3 words it. The certainty of a
single image finding is the detector's score, that of a composite feature the linker's. Coordinates and
summaries refer to an image by its place in the library; highdicom has no such items and no builder for this
template, so the tree is put together here from its other items.
"""

from collections.abc import Iterator

import numpy as np
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
from pydicom.sequence import Sequence
from pydicom.sr.codedict import codes
from pydicom.sr.coding import Code
from pydicom.uid import MammographyCADSRStorage

from clnet.data.header import spacing_of
from clnet.findings.lesions import Lesion
from clnet.findings.types import Detection
from clnet.reports.sr_document import (
    ALGORITHM,
    CERTAINTY_OF_FEATURE,
    CERTAINTY_OF_FINDING,
    MASS,
    PERCENT,
    SIDES,
    VIEWS,
    BreastReport,
    concept,
    make_document,
    orientation_of,
    outline,
    percent,
)

SERIES_NUMBER = 9002
DCM = codes.DCM
DENSITY = codes.SCT.MammographyBreastDensity
ENGLISH = Code("en", "RFC5646", "English")
SHOW = DCM.PresentationRequiredRenderingDeviceIsExpectedToPresent
MILLIMETRE = codes.UCUM.Millimeter
LIBRARY = 2  # the place of the Image Library among the root's children, counted from 1

CONTAINS = RelationshipTypeValues.CONTAINS
CONTEXT = RelationshipTypeValues.HAS_ACQ_CONTEXT
INFERRED = RelationshipTypeValues.INFERRED_FROM
MODIFIER = RelationshipTypeValues.HAS_CONCEPT_MOD
PROPERTIES = RelationshipTypeValues.HAS_PROPERTIES
SELECTED = RelationshipTypeValues.SELECTED_FROM


def mammography_cad_report(report: BreastReport) -> ComprehensiveSR:
    """The document; `save_report` writes it."""
    root = ContainerContentItem(concept(DCM.MammographyCADReport), template_id="4000")
    language = _code(MODIFIER, DCM.LanguageOfContentItemAndDescendants, ENGLISH)
    root.ContentSequence = ContentSequence([language])
    document = make_document(report, "mammography CAD", root, SERIES_NUMBER)
    document.SOPClassUID = MammographyCADSRStorage
    document.file_meta.MediaStorageSOPClassUID = MammographyCADSRStorage
    document.ContentSequence = Sequence(
        [
            *document.ContentSequence,
            _container(CONTAINS, DCM.ImageLibrary, *(_image(report, view) for view in report.sources)),
            _impressions(report),
            _detections(report),
            _analyses(report),
        ]
    )
    return document


def _image(report: BreastReport, view: str) -> Dataset:
    """An entry of the library (TID 4020); what the file does not say is left out."""
    source = report.sources[view]
    image = ImageContentItem(
        concept(DCM.ImageLibrary), source.SOPClassUID, source.SOPInstanceUID, relationship_type=CONTAINS
    )
    del image.ConceptNameCodeSequence  # highdicom asks for a name where this template has none
    return _node(image, *_facts(report, view))


def _facts(report: BreastReport, view: str) -> Iterator[ContentItem]:
    source = report.sources[view]
    yield _code(CONTEXT, DCM.ImageLaterality, SIDES[report.laterality])
    yield _code(CONTEXT, DCM.ImageView, VIEWS[view])
    orientation = orientation_of(source)
    if orientation:
        yield TextContentItem(DCM.PatientOrientationRow, orientation[0], CONTEXT)
        yield TextContentItem(DCM.PatientOrientationColumn, orientation[1], CONTEXT)
    if source.StudyDate:
        yield DateContentItem(DCM.StudyDate, source.StudyDate, CONTEXT)
    if source.StudyTime:
        yield TimeContentItem(DCM.StudyTime, source.StudyTime, CONTEXT)
    spacing = spacing_of(source)
    if spacing:
        yield NumContentItem(DCM.HorizontalPixelSpacing, spacing[1], MILLIMETRE, relationship_type=CONTEXT)
        yield NumContentItem(DCM.VerticalPixelSpacing, spacing[0], MILLIMETRE, relationship_type=CONTEXT)


def _impressions(report: BreastReport) -> Dataset:
    """The findings (TID 4001)."""
    found = (
        DCM.AllAlgorithmsSucceededWithFindings
        if report.lesions
        else DCM.AllAlgorithmsSucceededWithoutFindings
    )
    impressions = [
        _container(
            INFERRED,
            DCM.IndividualImpressionRecommendation,
            _code(MODIFIER, DCM.RenderingIntent, SHOW),
            _feature(report, lesion),
        )
        for lesion in report.lesions
    ]
    return _node(_code(CONTAINS, DCM.CADProcessingAndFindingsSummary, found), *impressions)


def _feature(report: BreastReport, lesion: Lesion) -> Dataset:
    """A lesion: a composite of both views (TID 4004), or what one view shows."""
    if not lesion.is_linked:
        ((view, detection),) = lesion.views.items()
        return _single_image_finding(report, detection, view, CONTAINS)
    certainty = [_percent(CERTAINTY_OF_FEATURE, lesion.link_score)] if lesion.link_score is not None else []
    return _node(
        _code(CONTAINS, DCM.CompositeFeature, MASS),
        _code(MODIFIER, DCM.RenderingIntent, SHOW),
        _code(PROPERTIES, DCM.CompositeType, DCM.TargetContentItemsAreRelatedSpatially),
        _code(PROPERTIES, DCM.ScopeOfFeature, DCM.FeatureDetectedOnMultipleImages),
        *_algorithm(report),
        *certainty,
        *(
            _single_image_finding(report, detection, view, INFERRED)
            for view, detection in lesion.views.items()
        ),
    )


def _single_image_finding(
    report: BreastReport, detection: Detection, view: str, relationship: RelationshipTypeValues
) -> Dataset:
    """A box (TID 4006) with its geometry (TID 4021)."""
    x_min, y_min, x_max, y_max = detection.box
    centre = [((x_min + x_max) / 2, (y_min + y_max) / 2)]
    image = _reference(report, view, SELECTED)

    def geometry(name: Code, kind: GraphicTypeValues, points: list[tuple[float, float]]) -> Dataset:
        return _node(ScoordContentItem(name, kind, np.array(points), relationship_type=PROPERTIES), image)

    return _node(
        _code(relationship, DCM.SingleImageFinding, DENSITY),
        _code(MODIFIER, DCM.RenderingIntent, SHOW),
        *_algorithm(report),
        _percent(CERTAINTY_OF_FINDING, detection.score),
        geometry(DCM.Center, GraphicTypeValues.POINT, centre),
        geometry(DCM.Outline, GraphicTypeValues.POLYLINE, outline(detection.box)),
    )


def _detections(report: BreastReport) -> Dataset:
    """What was looked for, and where (TID 4015, 4017)."""
    performed = _performed(report, DCM.DetectionPerformed, DENSITY)
    return _node(
        _code(CONTAINS, DCM.SummaryOfDetections, DCM.Succeeded),
        _container(INFERRED, DCM.SuccessfulDetections, performed),
    )


def _analyses(report: BreastReport) -> Dataset:
    """Whether the views were compared (TID 4016, 4018)."""
    if len(report.sources) == 1:
        return _node(_code(CONTAINS, DCM.SummaryOfAnalyses, DCM.NotAttempted))
    performed = _performed(report, DCM.AnalysisPerformed, codes.SCT.SpatialCollocationAnalysis)
    return _node(
        _code(CONTAINS, DCM.SummaryOfAnalyses, DCM.Succeeded),
        _container(INFERRED, DCM.SuccessfulAnalyses, performed),
    )


def _performed(report: BreastReport, name: Code, what: Code) -> Dataset:
    images = (_reference(report, view, PROPERTIES) for view in report.sources)
    return _node(_code(CONTAINS, name, what), *_algorithm(report), *images)


def _algorithm(report: BreastReport) -> list[ContentItem]:
    """TID 4019."""
    words = [(DCM.AlgorithmName, ALGORITHM), (DCM.AlgorithmVersion, report.version)]
    if report.notice:
        words.append((DCM.AlgorithmParameters, report.notice))
    return [TextContentItem(name, value, PROPERTIES) for name, value in words]


def _percent(name: Code, score: float) -> NumContentItem:
    return NumContentItem(name, percent(score), PERCENT, relationship_type=PROPERTIES)


def _code(relationship: RelationshipTypeValues, name: Code, value: Code) -> CodeContentItem:
    return CodeContentItem(concept(name), concept(value), relationship)


def _container(relationship: RelationshipTypeValues, name: Code, *children: Dataset) -> Dataset:
    return _node(ContainerContentItem(concept(name), relationship_type=relationship), *children)


def _node(item: ContentItem, *children: Dataset) -> Dataset:
    """An item with children; a plain data set, for highdicom's own take no references."""
    plain = Dataset()
    plain.update(item)
    if children:
        plain.ContentSequence = Sequence(children)
    return plain


def _reference(report: BreastReport, view: str, relationship: RelationshipTypeValues) -> Dataset:
    """Points at a view's entry in the library."""
    item = Dataset()
    item.RelationshipType = relationship.value
    item.ReferencedContentItemIdentifier = [1, LIBRARY, 1 + list(report.sources).index(view)]
    return item
