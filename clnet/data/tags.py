"""Values of DICOM tags in one form, whether a tag is missing, empty, or holds one value or several."""

from pydicom.dataset import Dataset


def text_of(dataset: Dataset, keyword: str) -> str:
    """A tag's text in capitals without outer blanks; several values joined by a backslash; "" if missing."""
    value = dataset.get(keyword)
    if value is None:
        return ""
    values = [value] if isinstance(value, str) or not hasattr(value, "__iter__") else value
    return "\\".join(str(part).strip() for part in values).upper()


def numbers_of(dataset: Dataset, keyword: str) -> list[float]:
    """A tag's numbers; [] if missing or empty."""
    value = dataset.get(keyword)
    if value is None or value == "":
        return []
    return [float(number) for number in (value if hasattr(value, "__iter__") else [value])]
