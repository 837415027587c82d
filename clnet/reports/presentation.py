"""Findings as a Grayscale Softcopy Presentation State: boxes and labels that any workstation draws.

One object for all images of a study, with a layer per view. Images that differ in polarity, modality LUT or
study cannot share an object, and get one each. Grey values stay as they are: the VOI LUT or window of each
image is copied.
"""

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from highdicom.color import CIELabColor
from highdicom.content import PresentationLUTTransformation
from highdicom.enum import PresentationLUTShapeValues
from highdicom.pr.content import GraphicLayer, GraphicObject, TextObject
from highdicom.pr.enum import AnnotationUnitsValues, GraphicTypeValues, TextJustificationValues
from highdicom.pr.sop import GrayscaleSoftcopyPresentationState
from pydicom.dataset import Dataset
from pydicom.sequence import Sequence as Items

from clnet.data.tags import text_of
from clnet.reports.objects import identity, quiet, references
from clnet.reports.sr_document import outline
from clnet.reports.study import BreastReport, Region, StudyReport

MODALITY_LUT = ("ModalityLUTSequence", "RescaleIntercept", "RescaleSlope", "RescaleType")
VOI_LUT = (
    *("VOILUTSequence", "VOILUTFunction"),
    *("WindowCenter", "WindowWidth", "WindowCenterWidthExplanation"),
)
LINES = 45  # of text that fit below each other in an image
LETTER = 0.6  # the width of a letter over its height
SKY_BLUE = CIELabColor(70.0, -11.0, -37.0)


def presentation_states(report: StudyReport) -> list[GrayscaleSoftcopyPresentationState]:
    """The objects, one if all images can share it; `save_object` writes them."""
    shared: dict[tuple[str, ...], list[Dataset]] = defaultdict(list)
    for source in report.sources:
        keywords = ("StudyInstanceUID", "PhotometricInterpretation", *MODALITY_LUT)
        shared[tuple(str(source.get(keyword, "")) for keyword in keywords)].append(source)
    return [_state(report, images, number) for number, images in enumerate(shared.values(), start=1)]


def _state(report: StudyReport, images: Sequence[Dataset], number: int) -> GrayscaleSoftcopyPresentationState:
    layers: list[GraphicLayer] = []
    annotations = []
    for breast in report.breasts:
        for view, source in breast.sources.items():
            if any(source is image for image in images):
                layer = f"{breast.laterality}_{view.upper()}"
                layers.append(GraphicLayer(layer, len(layers) + 1, display_color=SKY_BLUE))
                annotations.append(_annotation(report, breast, source, layers[-1]))
    inverse = text_of(images[0], "PhotometricInterpretation") == "MONOCHROME1"
    shape = PresentationLUTShapeValues.INVERSE if inverse else PresentationLUTShapeValues.IDENTITY
    with quiet():
        state = GrayscaleSoftcopyPresentationState(
            [_reference(image) for image in images],
            content_label="MASSES",
            content_description=report.notice or None,
            presentation_lut_transformation=PresentationLUTTransformation(shape),
            **identity(report, "presentation", images[0], number),
        )
        _copy_grey_values(state, images)
    state.Laterality = None  # images of both sides
    state.GraphicAnnotationSequence, state.GraphicLayerSequence = Items(annotations), Items(layers)
    state.DisplayedAreaSelectionSequence = Items(map(_whole_area, images))
    return state


def _annotation(report: StudyReport, breast: BreastReport, source: Dataset, layer: GraphicLayer) -> Dataset:
    """The boxes of an image, their labels, and a line at its top that says what they are."""
    regions = [region for region in report.regions if region.source is source]
    heading = f"CL-Net: {breast.summary}"
    top = TextObject(
        f"{heading}. {report.notice}" if report.notice else heading,
        AnnotationUnitsValues.DISPLAY,
        bounding_box=(0.01, 0.01, 0.99, 0.03),
        text_justification=TextJustificationValues.LEFT,
    )
    annotation = Dataset()
    annotation.ReferencedImageSequence = references([source])
    annotation.GraphicLayer = layer.GraphicLayer
    annotation.TextObjectSequence = Items([top, *map(_label, regions)])
    if regions:
        annotation.GraphicObjectSequence = Items(map(_box, regions))
    return annotation


def _box(region: Region) -> GraphicObject:
    return GraphicObject(
        GraphicTypeValues.POLYLINE,
        np.array(outline(_inside(region))),
        AnnotationUnitsValues.PIXEL,
        tracking_id=region.name,
        tracking_uid=region.lesion_uid,
    )


def _label(region: Region) -> TextObject:
    """Right of the box, or left of it where there is no room."""
    x_min, y_min, x_max, _ = _inside(region)
    height = region.source.Rows / LINES
    width = min(LETTER * height * len(region.label), region.source.Columns)
    gap = height / 4
    left = x_max + gap if x_max + gap + width <= region.source.Columns else max(x_min - gap - width, 0)
    top = min(y_min, region.source.Rows - height)
    return TextObject(
        region.label,
        AnnotationUnitsValues.PIXEL,
        bounding_box=(left, top, left + width, top + height),
        text_justification=TextJustificationValues.LEFT,
    )


def _inside(region: Region) -> list[float]:
    """The box within its image, as DICOM demands of graphics."""
    limits = 2 * [float(region.source.Columns), float(region.source.Rows)]
    return np.clip(region.detection.box, 0, limits).tolist()


def _reference(image: Dataset) -> Dataset:
    """The tags of an image without those that highdicom demands to be the same in all of them."""
    reference = Dataset(dict(image.items()))
    for keyword in (*MODALITY_LUT, *VOI_LUT, "Rows", "Columns"):
        reference.pop(keyword, None)
    reference.Rows = reference.Columns = 1
    return reference


def _copy_grey_values(state: Dataset, images: Sequence[Dataset]) -> None:
    """Copy the modality LUT, which all images share, and the VOI LUT of each."""
    _copy(images[0], state, MODALITY_LUT)
    items = []
    for image in images:
        item = Dataset()
        _copy(image, item, VOI_LUT)
        if item:
            item.ReferencedImageSequence = references([image])
            items.append(item)
    if items:
        state.SoftcopyVOILUTSequence = Items(items)


def _copy(source: Dataset, target: Dataset, keywords: Sequence[str]) -> None:
    for keyword in keywords:
        if source.get(keyword) not in (None, ""):
            target[keyword] = source[keyword]


def _whole_area(image: Dataset) -> Dataset:
    area = Dataset()
    area.ReferencedImageSequence = references([image])
    area.PixelOriginInterpretation = "FRAME"
    area.DisplayedAreaTopLeftHandCorner = [1, 1]
    area.DisplayedAreaBottomRightHandCorner = [image.Columns, image.Rows]
    area.PresentationSizeMode = "SCALE TO FIT"
    area.PresentationPixelAspectRatio = [1, 1]
    return area
