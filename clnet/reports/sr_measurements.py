"""Findings as a Measurement Report (TID 1500): what research viewers such as OHIF read.

Each box is a planar region (a closed polyline) with its score. The two boxes of a linked lesion share one
Tracking Unique Identifier, and carry the score of the link. A breast without lesions says so.
"""

import numpy as np
from highdicom.sr.content import (
    FindingSite,
    ImageRegion,
    SourceImageForMeasurementGroup,
    SourceImageForRegion,
)
from highdicom.sr.enum import GraphicTypeValues
from highdicom.sr.sop import ComprehensiveSR
from highdicom.sr.templates import (
    AlgorithmIdentification,
    DeviceObserverIdentifyingAttributes,
    Measurement,
    MeasurementReport,
    MeasurementsAndQualitativeEvaluations,
    ObservationContext,
    ObserverContext,
    PlanarROIMeasurementsAndQualitativeEvaluations,
    QualitativeEvaluation,
    TrackingIdentifier,
)
from pydicom.dataset import Dataset
from pydicom.sr.codedict import codes
from pydicom.sr.coding import Code

from clnet.findings.lesions import Lesion
from clnet.reports.sr_document import (
    ALGORITHM,
    CERTAINTY_OF_FEATURE,
    CERTAINTY_OF_FINDING,
    MANUFACTURER,
    MASS,
    PERCENT,
    SIDES,
    BreastReport,
    make_document,
    orientation_of,
    outline,
    percent,
)

NOT_DETECTED = Code("260415000", "SCT", "Not detected")
SERIES_NUMBER = 9001


def measurement_report(report: BreastReport) -> ComprehensiveSR:
    """The document; `save_report` writes it."""
    groups = [
        _group(report, number, lesion, view)
        for number, lesion in enumerate(report.lesions, start=1)
        for view in lesion.views
    ]
    content = MeasurementReport(
        observation_context=ObservationContext(observer_device_context=_device(report)),
        procedure_reported=codes.SCT.Mammography,
        imaging_measurements=groups or [_nothing_found(report)],
        referenced_images=_library(report),
    )
    return make_document(report, "measurements", content[0], SERIES_NUMBER)


def _library(report: BreastReport) -> list[Dataset] | None:
    """The images that are described, besides being evidence: none, unless they say what highdicom asks."""
    sources = list(report.sources.values())
    complete = all(orientation_of(source) and source.get("ImagerPixelSpacing") for source in sources)
    return sources if complete else None


def _device(report: BreastReport) -> ObserverContext:
    return ObserverContext(
        observer_type=codes.DCM.Device,
        observer_identifying_attributes=DeviceObserverIdentifyingAttributes(
            uid=report.uid("device"), manufacturer_name=MANUFACTURER, model_name=ALGORITHM
        ),
    )


def _algorithm(report: BreastReport) -> AlgorithmIdentification:
    return AlgorithmIdentification(
        name=ALGORITHM, version=report.version, parameters=[report.notice] if report.notice else None
    )


def _group(
    report: BreastReport, number: int, lesion: Lesion, view: str
) -> PlanarROIMeasurementsAndQualitativeEvaluations:
    """One box (TID 1410)."""
    detection, source = lesion.views[view], report.sources[view]
    region = ImageRegion(
        graphic_type=GraphicTypeValues.POLYLINE,
        graphic_data=np.array(outline(detection.box)),
        source_image=SourceImageForRegion(source.SOPClassUID, source.SOPInstanceUID),
    )
    scores = [Measurement(CERTAINTY_OF_FINDING, percent(detection.score), PERCENT)]
    if lesion.link_score is not None:
        scores.append(Measurement(CERTAINTY_OF_FEATURE, percent(lesion.link_score), PERCENT))
    return PlanarROIMeasurementsAndQualitativeEvaluations(
        tracking_identifier=TrackingIdentifier(report.uid("lesion", number), f"Lesion {number}"),
        referenced_region=region,
        finding_type=MASS,
        algorithm_id=_algorithm(report),
        finding_sites=[FindingSite(SIDES[report.laterality])],
        measurements=scores,
    )


def _nothing_found(report: BreastReport) -> MeasurementsAndQualitativeEvaluations:
    """That the images were looked at (TID 1501)."""
    return MeasurementsAndQualitativeEvaluations(
        tracking_identifier=TrackingIdentifier(report.uid("no lesion"), "No lesion"),
        algorithm_id=_algorithm(report),
        finding_sites=[FindingSite(SIDES[report.laterality])],
        qualitative_evaluations=[QualitativeEvaluation(MASS, NOT_DETECTED)],
        source_images=[
            SourceImageForMeasurementGroup(source.SOPClassUID, source.SOPInstanceUID)
            for source in report.sources.values()
        ],
    )
