"""Which view of which breast a DICOM file shows, and what makes it a special one."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from pydicom.dataset import Dataset

from clnet.data.image_errors import LateralityConflictError
from clnet.data.tags import code_of, text_of

Laterality = Literal["L", "R"]

IMPLANT_DISPLACED = "implant displaced"

# Context groups 4014 (views) and 4015 (modifiers) of PS3.16, by SNOMED CT code and by its older SRT code.
VIEW_CODES: Mapping[str, str] = {
    **dict.fromkeys(("399162004", "R-10242"), "CC"),
    **dict.fromkeys(("399368009", "R-10226"), "MLO"),
    **dict.fromkeys(("399260004", "R-10224"), "ML"),
    **dict.fromkeys(("399352003", "R-10228"), "LM"),
    **dict.fromkeys(("399099002", "R-10230"), "LMO"),
    **dict.fromkeys(("399196006", "R-10244"), "FB"),
    **dict.fromkeys(("399188001", "R-102D0"), "SIO"),
    **dict.fromkeys(("441555000", "R-40AAA"), "ISO"),
    **dict.fromkeys(("399192008", "R-1024A"), "XCCL"),
    **dict.fromkeys(("399101009", "R-1024B"), "XCCM"),
    **dict.fromkeys(("127457009", "G-8310"), "SPECIMEN"),
}
MODIFIER_CODES: Mapping[str, str] = {
    **dict.fromkeys(("399163009", "R-102D6"), "magnification"),
    **dict.fromkeys(("399055006", "R-102D7"), "spot compression"),
    **dict.fromkeys(("399209000", "R-102D5"), IMPLANT_DISPLACED),
    **dict.fromkeys(("441752004", "P2-00161"), "anterior compression"),
    **dict.fromkeys(("442581004", "R-40AB3"), "nipple in profile"),
    **dict.fromkeys(("399110001", "R-102C2"), "tangential"),
    **dict.fromkeys(("399161006", "R-102D2"), "cleavage"),
    **dict.fromkeys(("399011000", "R-102D1"), "axillary tail"),
    **dict.fromkeys(("442580003", "R-40AB2"), "axillary tissue"),
    **dict.fromkeys(("442593008", "R-40ABE"), "infra-mammary fold"),
    **dict.fromkeys(("399197002", "R-102D3"), "rolled lateral"),
    **dict.fromkeys(("399226006", "R-102D4"), "rolled medial"),
    **dict.fromkeys(("414493004", "R-102CA"), "rolled inferior"),
    **dict.fromkeys(("415670009", "R-102C9"), "rolled superior"),
}
# ViewPosition is free enough that machines write "CC SPOT", "MMLO" or "CCID" there: the abbreviations of
# group 4015 before or after the view's, and whole words.
VIEW_WITH_ABBREVIATIONS = re.compile(
    r"(?P<before>[MS]?)(?P<view>CC|MLO|ML|LMO|LM|FB|SIO|ISO|XCCL|XCCM|XCC)(?P<after>ID|RL|RM|RI|RS|TAN|AC|NP|[MS])?"
)
MODIFIER_WORDS: Mapping[str, str] = {
    **dict.fromkeys(("SPOT", "S"), "spot compression"),
    **dict.fromkeys(("MAG", "MAGN", "MAGNIFIED", "MAGNIFICATION", "M"), "magnification"),
    **dict.fromkeys(("ID", "IMPLANT", "DISPLACED", "EKLUND"), IMPLANT_DISPLACED),
    **dict.fromkeys(("AC", "ANTERIOR"), "anterior compression"),
    **dict.fromkeys(("NP", "NIPPLE", "PROFILE"), "nipple in profile"),
    **dict.fromkeys(("TAN", "TANGENTIAL"), "tangential"),
    **dict.fromkeys(("ROLLED", "RL", "RM", "RI", "RS"), "rolled"),
    "STEREO": "stereo",
    "SPECIMEN": "specimen",
}
PADDLES: Mapping[str, re.Pattern[str]] = {
    "spot compression": re.compile("SPOT"),
    "magnification": re.compile("(?<![A-Z])MAG"),
}
SYNTHETIC_2D = re.compile(
    r"GENERATED_2D|SYNTHETIC|SYNTHESI[SZ]ED|(?<![A-Z])[CS]-?VIEW|(?<![A-Z])V-?PREVIEW|INTELLIGENT.?2D|INSIGHT.?2D"
)


def view_of(dataset: Dataset) -> tuple[str | None, list[str]]:
    """The view, and a warning if two tags disagree on it.

    ViewPosition, else ViewCodeSequence, else PatientOrientation, where CBIS-DDSM writes the view.
    """
    position, _ = _view_position(dataset)
    codes = dataset.get("ViewCodeSequence") or []
    coded = VIEW_CODES.get(text_of(codes[0], "CodeValue")) if len(codes) > 0 else None
    orientation = text_of(dataset, "PatientOrientation")
    warnings = []
    if position and coded and position != coded:
        warnings.append(f"ViewPosition says {position}, ViewCodeSequence says {coded}: ViewPosition is used")
    return position or coded or (orientation if orientation in ("CC", "MLO") else None), warnings


def modifiers_of(dataset: Dataset) -> tuple[str, ...]:
    """What makes the view a special one, such as "spot compression"; empty for a standard view."""
    _, found = _view_position(dataset)
    codes = list(dataset.get("ViewModifierCodeSequence") or [])
    for item in dataset.get("ViewCodeSequence") or []:  # where PS3.3 C.8.11.7 puts the modifiers
        codes.extend(item.get("ViewModifierCodeSequence") or [])
    for item in codes:
        value = code_of(item, "CodeValue")
        found.add(MODIFIER_CODES.get(value) or code_of(item, "CodeMeaning").lower() or f"modifier {value}")
    paddle = text_of(dataset, "PaddleDescription")
    found |= {name for name, pattern in PADDLES.items() if pattern.search(paddle)}
    kind = text_of(dataset, "ImageType").split("\\")
    for word in ("STEREO", "SPECIMEN"):
        if any(word in text for text in (*kind, text_of(dataset, "SeriesDescription"))):
            found.add(word.lower())
    if "CAD" in kind:  # not in SeriesDescription, which says "with CAD" of ordinary images
        found.add("CAD result")
    return tuple(sorted(found))


def is_synthetic(dataset: Dataset) -> bool:
    """Whether a 2D image was computed from tomosynthesis; vendors have a name each for it."""
    return any(
        SYNTHETIC_2D.search(text_of(dataset, keyword)) for keyword in ("ImageType", "SeriesDescription")
    )


def laterality_of(dataset: Dataset, file: Path) -> Laterality | None:
    """The breast: ImageLaterality, else Laterality, else the frame's; the first two must agree."""
    image, series = code_of(dataset, "ImageLaterality"), code_of(dataset, "Laterality")
    if image and series and image != series:
        raise LateralityConflictError(
            f"{file}: (0020,0062) ImageLaterality is {image} but (0020,0060) Laterality is {series}; they "
            "must agree (PS3.3 C.8.11.7). Find out which breast it is and correct the tag."
        )
    frame = ""
    for group in dataset.get("SharedFunctionalGroupsSequence") or []:
        for anatomy in group.get("FrameAnatomySequence") or []:
            frame = text_of(anatomy, "FrameLaterality")
    side = image or series or frame
    return side if side in ("L", "R") else None  # type: ignore[return-value]


def _view_position(dataset: Dataset) -> tuple[str | None, set[str]]:
    """Take "CC", "MLO SPOT" or "CCID" apart; a text with an unknown word counts as a view of its own."""
    text = code_of(dataset, "ViewPosition")
    view, modifiers = None, set()
    for word in re.findall("[A-Z]+", text):
        match = VIEW_WITH_ABBREVIATIONS.fullmatch(word)
        if match and view is None:
            view = match["view"]
            modifiers |= {MODIFIER_WORDS[part] for part in (match["before"], match["after"]) if part}
        elif word in MODIFIER_WORDS:
            modifiers.add(MODIFIER_WORDS[word])
        else:
            return text, set()
    return view or text or None, modifiers
