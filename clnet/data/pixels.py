"""From stored values to grey: every pointwise step of the DICOM grey scale as one lookup table.

The steps, in the order of PS3.3 and PS3.4: modality LUT or rescale, VOI LUT or window, inversion of
MONOCHROME1, padding. None of them looks at neighbours, and a stored value has at most 16 bits. So the steps
are computed once for every value that *could* be stored, and the millions of pixels are looked up: the
result is the same number, at a fraction of the time.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydicom.dataset import Dataset

try:
    from pydicom.pixels.processing import apply_windowing
except ImportError:  # pydicom 2, which MONAI Label still needs
    from pydicom.pixel_data_handlers.util import apply_windowing  # type: ignore[no-redef]

from clnet.data.tags import code_of, numbers_of, text_of


def describe_voi(dataset: Dataset) -> str:
    """What the file offers as VOI transform, in words; of several, the first is the one that is used."""
    luts = _voi_luts(dataset)
    if luts:
        name = code_of(luts[0], "LUTExplanation")
        return f"VOI LUT{' ' + name if name else ''}" + _first_of(len(luts))
    centres, widths = numbers_of(dataset, "WindowCenter"), numbers_of(dataset, "WindowWidth")
    if centres and widths:
        function = (code_of(dataset, "VOILUTFunction") or "LINEAR").lower()
        return f"window {centres[0]:g}/{widths[0]:g} {function}" + _first_of(len(centres))
    return "none"


def to_grey(
    stored: NDArray[Any], dataset: Dataset, apply_voi: bool
) -> tuple[NDArray[Any], list[str], list[str]]:
    """Turn decoded pixels into grey values in which bright is dense.

    Args:
        stored: [H, W] of 8 or 16-bit integers, as `Dataset.pixel_array` gives them.
        dataset: the tags that say what the stored values mean.
        apply_voi: whether to apply the file's (first) VOI LUT or window.

    Returns:
        The grey values [H, W] float32; the steps that led there, in words; warnings.
    """
    bits, signed = int(dataset.BitsStored), bool(dataset.PixelRepresentation)
    index = stored.view(f"u{stored.dtype.itemsize}")
    if bits < 8 * stored.dtype.itemsize:
        # Bits beside the stored ones may hold anything (once, overlays); they are no part of the value.
        index = (index >> max(0, int(dataset.get("HighBit", bits - 1)) + 1 - bits)) & (2**bits - 1)

    possible = np.arange(2**bits, dtype=np.int64)
    if signed:
        possible[2 ** (bits - 1) :] -= 2**bits

    values, steps = _modality(possible, dataset)
    values, voi_step, warnings = _voi(values, dataset, apply_voi)
    steps.append(voi_step)
    if text_of(dataset, "PhotometricInterpretation") == "MONOCHROME1":
        # Within the range that this file can express: 12 bits without VOI invert as 4095 - value.
        values = values.max() + values.min() - values
        steps.append("MONOCHROME1 inverted")
    padding = _padding(possible, dataset)
    if padding.any() and not padding.all():
        values[padding] = values[~padding].min()
        steps.append("padding set to the darkest grey")

    if not np.isfinite(values).all():
        raise ValueError("the modality LUT gives values that are no finite numbers")
    if np.array_equal(values, np.arange(2**bits)):  # nothing to look up: a plain cast is four times faster
        return index.astype(np.float32), steps, warnings
    return values.astype(np.float32)[index], steps, warnings


def _modality(stored: NDArray[Any], dataset: Dataset) -> tuple[NDArray[Any], list[str]]:
    luts = dataset.get("ModalityLUTSequence") or []
    if len(luts) > 0:
        return _look_up(stored, luts[0], dataset), ["modality LUT applied"]
    slopes, intercepts = numbers_of(dataset, "RescaleSlope"), numbers_of(dataset, "RescaleIntercept")
    if not slopes or not intercepts:
        return stored.astype(np.float64), ["no modality LUT"]
    slope, intercept = slopes[0], intercepts[0]
    return stored * slope + intercept, [f"modality LUT: slope {slope:g}, intercept {intercept:g}"]


def _voi(values: NDArray[Any], dataset: Dataset, apply_voi: bool) -> tuple[NDArray[Any], str, list[str]]:
    offer = describe_voi(dataset)
    if offer == "none":
        return values, "no VOI in the file", []
    if not apply_voi:
        return values, f"VOI not applied, by setting (the file offers {offer})", []
    try:
        luts = _voi_luts(dataset)
        changed = _look_up(values, luts[0], dataset) if luts else apply_windowing(values, dataset)
    except (ValueError, TypeError, AttributeError, IndexError):
        return values, f"VOI not applied, it is invalid ({offer})", [f"invalid VOI, not applied: {offer}"]
    return changed, f"{offer} applied", []


def _voi_luts(dataset: Dataset) -> list[Dataset]:
    """The items of the VOI LUT Sequence; an empty first one does not hide the window."""
    items = list(dataset.get("VOILUTSequence") or [])
    return items if items and "LUTDescriptor" in items[0] and "LUTData" in items[0] else []


def _look_up(values: NDArray[Any], item: Dataset, dataset: Dataset) -> NDArray[Any]:
    """Apply one item of a Modality or VOI LUT Sequence to `values` [n]; result float64 [n].

    pydicom's own functions index with an array of the LUT's output type, so that 8-bit LUTs of more than
    256 entries wrap around, and know no modality LUT of 10 to 15 bits. Both exist in mammography.
    """
    entries, first, _ = (int(number) for number in item.LUTDescriptor)
    entries = entries or 2**16  # the descriptor has 16 bits itself
    data = item.LUTData
    if isinstance(data, bytes):
        order = "<" if dataset.file_meta.TransferSyntaxUID.is_little_endian else ">"
        data = np.frombuffer(data, dtype="u1" if len(data) == entries else f"{order}u2")
    table = np.atleast_1d(np.asarray(data, dtype=np.float64))[:entries]
    if len(table) < entries:
        raise ValueError(f"a LUT of {entries} entries holds {len(table)}")
    return table[np.clip(np.rint(values).astype(np.int64) - first, 0, entries - 1)]


def _padding(stored: NDArray[Any], dataset: Dataset) -> NDArray[np.bool_]:
    """Which stored values mean "no image here": PixelPaddingValue, or the range up to its limit."""
    start = numbers_of(dataset, "PixelPaddingValue")
    if not start:
        return np.zeros(len(stored), dtype=bool)
    end = numbers_of(dataset, "PixelPaddingRangeLimit") or start
    low, high = sorted((start[0], end[0]))
    return (stored >= low) & (stored <= high)


def _first_of(count: int) -> str:
    return f", the first of {count}" if count > 1 else ""
