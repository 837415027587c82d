"""Findings as a Measurement Report (TID 1500): what research viewers such as OHIF read.

::

    Imaging Measurement Report
      Image Library            TID 1600: view, breast, orientation, spacing of each image
      Imaging Measurements     if there are lesions
        Measurement Group      TID 1410, one for each box
          Tracking Identifier    "L1 CC"
          Finding, Finding Site  breast mass, left breast
          L1 CC, also in MLO     the detector's score by the name of the box, for viewers that show no comment
          Certainty of Finding   the detector's score
          Certainty of Feature   if both views show the lesion: the linker's score, and the lesion's UID
          Image Region           the box, a closed polyline that bounds the mass
          Comment                "L1 CC 0.87, also in MLO", which OHIF lists as the label of a measurement
      Qualitative Evaluations  for each breast whether a mass was detected, and whether its two views may
                               not be of one breast; the notice

The two boxes of a linked lesion have Tracking Unique Identifiers of their own, since OHIF draws one box for
each identifier. They are one lesion by the identifier of the feature whose certainty both give. OHIF reads
the box of a group from its first measurement: so that one says which region it is inferred from.
"""

import numpy as np
from highdicom.coding_schemes import CodingSchemeIdentificationItem
from highdicom.sr.content import (
    CoordinatesForMeasurement,
    FindingSite,
    ImageRegion,
    SourceImageForRegion,
)
from highdicom.sr.enum import GraphicTypeValues
from highdicom.sr.sop import ComprehensiveSR
from highdicom.sr.templates import (
    AlgorithmIdentification,
    DeviceObserverIdentifyingAttributes,
    Measurement,
    ObserverContext,
    PlanarROIMeasurementsAndQualitativeEvaluations,
    TrackingIdentifier,
)
from highdicom.sr.value_types import ContentSequence, TextContentItem, UIDRefContentItem
from pydicom.dataset import Dataset
from pydicom.sr.codedict import codes
from pydicom.sr.coding import Code

from clnet.reports.maker import ALGORITHM, MANUFACTURER
from clnet.reports.sr_document import (
    CONTAINS,
    CONTEXT,
    DCM,
    MASS,
    MODIFIER,
    PERCENT,
    PROPERTIES,
    SIDES,
    code_item,
    container,
    library_entries,
    make_document,
    node,
    outline,
    percent,
)
from clnet.reports.study import BreastReport, Region, StudyReport, uid_of

SOURCE = Code("260753009", "SCT", "Source")
DETECTED = Code("260373001", "SCT", "Detected")
NOT_DETECTED = Code("260415000", "SCT", "Not detected")
SCHEME = CodingSchemeIdentificationItem("99CLNET", name="clnet: names of boxes")
QUALITATIVE_EVALUATIONS = Code("C0034375", "UMLS", "Qualitative Evaluations")


def measurement_report(report: StudyReport) -> ComprehensiveSR:
    """The document; `save_object` writes it."""
    children = [
        *_device(report),
        code_item(MODIFIER, DCM.ProcedureReported, codes.SCT.Mammography),
        _library(report),
    ]
    if report.regions:  # viewers stumble over an empty list, and over a group without a region
        algorithm = _algorithm(report)
        groups = [_group(region, algorithm) for region in report.regions]
        children.append(container(CONTAINS, DCM.ImagingMeasurements, *groups))
    children.append(_evaluations(report))
    # OHIF draws the boxes of a report with the first title, and fails without any; others it shows as text.
    title = DCM.ImagingMeasurementReport if report.regions else DCM.OncologyMeasurementReport
    document = make_document(report, "measurements", title, "1500", children)
    document.CodingSchemeIdentificationSequence = [SCHEME]
    return document


def _device(report: StudyReport) -> ObserverContext:
    return ObserverContext(
        observer_type=DCM.Device,
        observer_identifying_attributes=DeviceObserverIdentifyingAttributes(
            uid=uid_of("device", report.version), manufacturer_name=MANUFACTURER, model_name=ALGORITHM
        ),
    )


def _library(report: StudyReport) -> Dataset:
    modality = code_item(CONTEXT, DCM.Modality, codes.cid29.Mammography)
    entries = library_entries(report, SOURCE)
    images = container(CONTAINS, DCM.ImageLibraryGroup, modality, *entries)
    return container(CONTAINS, DCM.ImageLibrary, images)


def _group(region: Region, algorithm: AlgorithmIdentification) -> Dataset:
    """One box."""
    points = np.array(outline(region.detection.box))
    image = SourceImageForRegion(region.source.SOPClassUID, region.source.SOPInstanceUID)
    score = percent(region.detection.score)
    named = Measurement(_name(region), score, PERCENT)
    measurements = [named, Measurement(DCM.CertaintyOfFinding, score, PERCENT)]
    if region.lesion.is_linked and region.lesion.link_score is not None:
        link = Measurement(DCM.CertaintyOfFeature, percent(region.lesion.link_score), PERCENT)
        link[0].ContentSequence = ContentSequence(
            [UIDRefContentItem(DCM.TrackingUniqueIdentifier, region.lesion_uid, PROPERTIES)]
        )
        measurements.append(link)
    (group,) = PlanarROIMeasurementsAndQualitativeEvaluations(
        tracking_identifier=TrackingIdentifier(region.uid, f"{region.name} {region.view.upper()}"),
        referenced_region=ImageRegion(GraphicTypeValues.POLYLINE, points, image),
        finding_type=MASS,
        algorithm_id=algorithm,
        finding_sites=[FindingSite(SIDES[region.laterality])],
        measurements=measurements,
        geometric_purpose=codes.cid219.BoundedBy,
    )
    # highdicom's group takes no measurement that says so.
    named[0].ContentSequence = ContentSequence(
        [CoordinatesForMeasurement(GraphicTypeValues.POLYLINE, points, image)]
    )
    group.ContentSequence.append(TextContentItem(DCM.Comment, region.label, CONTAINS))
    return group


def _name(region: Region) -> Code:
    """The name of a box as a code of our own, such as ("L1 CC+MLO", 99CLNET, "L1 CC, also in MLO")."""
    value = region.name_in_view.replace(", also in ", "+").replace(", not seen in ", "-")
    return Code(value, SCHEME.CodingSchemeDesignator, region.name_in_view)


def _algorithm(report: StudyReport) -> AlgorithmIdentification:
    return AlgorithmIdentification(
        name=ALGORITHM, version=report.version, parameters=[report.notice] if report.notice else None
    )


def _evaluations(report: StudyReport) -> Dataset:
    """That the breasts were looked at, and what for."""
    words = [_in_words(breast) for breast in report.breasts]
    comments = [TextContentItem(DCM.Comment, text, CONTAINS) for text in (*words, report.notice) if text]
    return container(CONTAINS, QUALITATIVE_EVALUATIONS, *map(_evaluation, report.breasts), *comments)


def _evaluation(breast: BreastReport) -> Dataset:
    answer = code_item(CONTAINS, MASS, DETECTED if breast.lesions else NOT_DETECTED)
    return node(answer, FindingSite(SIDES[breast.laterality]))


def _in_words(breast: BreastReport) -> str:
    """Such as "Left breast: no masses found in CC and MLO", and the warning, if there is one."""
    views = " and ".join(view.upper() for view in breast.sources)
    found = f"{SIDES[breast.laterality].meaning}: {breast.summary} in {views}"
    return f"{found}; {breast.warning}" if breast.warning else found
