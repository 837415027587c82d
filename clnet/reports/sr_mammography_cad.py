"""Findings as a Mammography CAD report (TID 4000): what mammography workstations read.

::

    Mammography CAD Report
      Image Library                       TID 4020: view, breast, orientation, spacing of each image
      CAD Processing and Findings Summary TID 4001
        Individual Impression/Recommendation      TID 4003, one for each lesion
          Composite Feature: breast mass          TID 4004, if both views show it: the link
            Single Image Finding: breast density  TID 4006, one for each view: centre and outline
      Summary of Detections               TID 4015: the algorithm that ran, and on which images
      Summary of Analyses                 TID 4016: the linking, if a breast had two views

A single image shows a density, and two of them make a mass: so PS3.17 E.3 words it. The certainty of a
single image finding is the detector's score, that of a composite feature the linker's. Coordinates and
summaries refer to an image by its place in the library; highdicom has no such items and no builder for this
template, so the tree is put together here from its other items.
"""

from collections.abc import Iterable
from itertools import groupby

import numpy as np
from highdicom.sr.enum import GraphicTypeValues, RelationshipTypeValues
from highdicom.sr.sop import ComprehensiveSR
from highdicom.sr.value_types import ScoordContentItem
from pydicom.dataset import Dataset
from pydicom.sr.codedict import codes
from pydicom.sr.coding import Code
from pydicom.uid import MammographyCADSRStorage

from clnet.reports.sr_document import (
    CONTAINS,
    DCM,
    INFERRED,
    MASS,
    MODIFIER,
    PROPERTIES,
    SELECTED,
    algorithm_items,
    code_item,
    container,
    library_entries,
    make_document,
    node,
    outline_item,
    percent_item,
)
from clnet.reports.study import Region, StudyReport

DENSITY = codes.SCT.MammographyBreastDensity
SHOW = DCM.PresentationRequiredRenderingDeviceIsExpectedToPresent
LIBRARY = 2  # the place of the Image Library among the root's children, counted from 1


def mammography_cad_report(report: StudyReport) -> ComprehensiveSR:
    """The document; `save_object` writes it."""
    children = [
        container(CONTAINS, DCM.ImageLibrary, *library_entries(report)),
        _impressions(report),
        _detections(report),
        _analyses(report),
    ]
    document = make_document(report, "cad", DCM.MammographyCADReport, "4000", children)
    document.SOPClassUID = MammographyCADSRStorage
    document.file_meta.MediaStorageSOPClassUID = MammographyCADSRStorage
    return document


def _impressions(report: StudyReport) -> Dataset:
    """The findings (TID 4001)."""
    found = (
        DCM.AllAlgorithmsSucceededWithFindings
        if report.regions
        else DCM.AllAlgorithmsSucceededWithoutFindings
    )
    impressions = [
        container(
            INFERRED,
            DCM.IndividualImpressionRecommendation,
            code_item(MODIFIER, DCM.RenderingIntent, SHOW),
            _feature(report, list(regions)),
        )
        for _, regions in groupby(report.regions, key=lambda region: region.lesion_uid)
    ]
    return node(code_item(CONTAINS, DCM.CADProcessingAndFindingsSummary, found), *impressions)


def _feature(report: StudyReport, regions: list[Region]) -> Dataset:
    """A lesion: a composite of both views (TID 4004), or what one view shows."""
    if len(regions) == 1:
        return _single_image_finding(report, regions[0], CONTAINS)
    link_score = regions[0].lesion.link_score
    certainty = (
        [percent_item(PROPERTIES, DCM.CertaintyOfFeature, link_score)] if link_score is not None else []
    )
    return node(
        code_item(CONTAINS, DCM.CompositeFeature, MASS),
        code_item(MODIFIER, DCM.RenderingIntent, SHOW),
        code_item(PROPERTIES, DCM.CompositeType, DCM.TargetContentItemsAreRelatedSpatially),
        code_item(PROPERTIES, DCM.ScopeOfFeature, DCM.FeatureDetectedOnMultipleImages),
        *algorithm_items(report, PROPERTIES),
        *certainty,
        *(_single_image_finding(report, region, INFERRED) for region in regions),
    )


def _single_image_finding(
    report: StudyReport, region: Region, relationship: RelationshipTypeValues
) -> Dataset:
    """A box (TID 4006) with its geometry (TID 4021)."""
    x_min, y_min, x_max, y_max = region.detection.box
    middle = np.array([[(x_min + x_max) / 2, (y_min + y_max) / 2]])
    centre = ScoordContentItem(DCM.Center, GraphicTypeValues.POINT, middle, relationship_type=PROPERTIES)
    image = _reference(report, region.source, SELECTED)
    return node(
        code_item(relationship, DCM.SingleImageFinding, DENSITY),
        code_item(MODIFIER, DCM.RenderingIntent, SHOW),
        *algorithm_items(report, PROPERTIES),
        percent_item(PROPERTIES, DCM.CertaintyOfFinding, region.detection.score),
        node(centre, image),
        node(outline_item(PROPERTIES, DCM.Outline, region.detection.box), image),
    )


def _detections(report: StudyReport) -> Dataset:
    """What was looked for, and where (TID 4015, 4017)."""
    performed = _performed(report, DCM.DetectionPerformed, DENSITY, report.sources)
    return node(
        code_item(CONTAINS, DCM.SummaryOfDetections, DCM.Succeeded),
        container(INFERRED, DCM.SuccessfulDetections, performed),
    )


def _analyses(report: StudyReport) -> Dataset:
    """Which views were compared (TID 4016, 4018)."""
    pairs = [breast.sources.values() for breast in report.breasts if len(breast.sources) == 2]
    if not pairs:
        return node(code_item(CONTAINS, DCM.SummaryOfAnalyses, DCM.NotAttempted))
    performed = [
        _performed(report, DCM.AnalysisPerformed, codes.SCT.SpatialCollocationAnalysis, pair)
        for pair in pairs
    ]
    return node(
        code_item(CONTAINS, DCM.SummaryOfAnalyses, DCM.Succeeded),
        container(INFERRED, DCM.SuccessfulAnalyses, *performed),
    )


def _performed(report: StudyReport, name: Code, what: Code, sources: Iterable[Dataset]) -> Dataset:
    images = (_reference(report, source, PROPERTIES) for source in sources)
    return node(code_item(CONTAINS, name, what), *algorithm_items(report, PROPERTIES), *images)


def _reference(report: StudyReport, source: Dataset, relationship: RelationshipTypeValues) -> Dataset:
    """Points at an image's entry in the library."""
    (place,) = (number for number, other in enumerate(report.sources, start=1) if other is source)
    item = Dataset()
    item.RelationshipType = relationship.value
    item.ReferencedContentItemIdentifier = [1, LIBRARY, place]
    return item
