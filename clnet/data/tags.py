"""Values of DICOM tags in one form, whether a tag is missing, empty, or holds one value or several."""

from pydicom.dataset import Dataset

LONGEST_CODE = 64  # characters, of the longest that DICOM allows


def text_of(dataset: Dataset, keyword: str) -> str:
    """A tag's text in capitals without outer blanks; several values joined by a backslash; "" if missing.

    Characters that cannot be printed, with which a file could write to a terminal, are escaped.
    """
    value = dataset.get(keyword)
    if value is None:
        return ""
    values = [value] if isinstance(value, str) or not hasattr(value, "__iter__") else value
    text = "\\".join(str(part).strip() for part in values).upper()
    return text if text.isprintable() else text.encode("unicode_escape").decode()


def code_of(dataset: Dataset, keyword: str) -> str:
    """`text_of` a tag that holds a code, short enough for a message, whatever a file puts there."""
    text = text_of(dataset, keyword)
    return text if len(text) <= LONGEST_CODE else f"{text[: LONGEST_CODE - 1]}…"


def numbers_of(dataset: Dataset, keyword: str) -> list[float]:
    """A tag's numbers; [] if missing or empty."""
    value = dataset.get(keyword)
    if value is None or value == "":
        return []
    return [float(number) for number in (value if hasattr(value, "__iter__") else [value])]
