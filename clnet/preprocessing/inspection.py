"""What reading and preprocessing find in a file: the output of `clnet inspect`.

Each image is inspected alone. In a pair, both views are resized by the smaller of their two scales.
"""

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from PIL import Image, ImageDraw, ImageFont
from torch import Tensor
from tqdm import tqdm

from clnet.data.header import image_format, read_header
from clnet.data.image_errors import ImageError, NotAnImageError
from clnet.data.pictures import ALARM, INK, PAPER, sheet
from clnet.data.reader import Mammogram, read_image
from clnet.errors import ClnetError
from clnet.preprocessing.preprocess import PlacedView, preprocess_views, resize

# The facts about an image before any of them is known.
NO_FACTS: dict[str, Any] = {
    "file": None,
    "view": None,
    "laterality": None,
    "rows": None,
    "columns": None,
    "bits": None,
    "spacing_mm": None,
    "photometric": None,
    "voi": None,
    "breast_box": None,
    "chest_side": None,
    "flipped": None,
    "steps": [],
    "warnings": [],
    "refused": None,
}

TILE = (480, 400)  # pixels (width, height) of one image on the contact sheet
CAPTION = 40  # pixels at the top of a tile
SHEET_COLUMNS = 3
SHEET_TILES = 60  # the first images only: nobody looks at more
ACCENT = "#E69F00"


@dataclass(frozen=True)
class Inspection:
    """The result for one image.

    Attributes:
        facts: as written to JSON; the keys are those of `NO_FACTS`. `breast_box` is [x_min, y_min, x_max,
            y_max] in original pixels, `flipped` is whether the image was mirrored to put the chest wall on
            the left, `refused` is the reason or None.
        tile: its part of the contact sheet, if requested.
    """

    facts: dict[str, Any]
    tile: Image.Image | None = None


def inspect_images(
    paths: Iterable[Path], size: tuple[int, int] = (1024, 512), apply_voi: bool = True, draw: bool = False
) -> list[Inspection]:
    """Inspect files, and all images in folders; a refused file does not stop the others.

    Args:
        paths: files and folders. A file that is not an image is refused if given, and ignored in a folder.
        size: (H, W) of the model's canvas.
        apply_voi: whether to apply the VOI LUT or window of a DICOM file.
        draw: whether to draw the tiles for `contact_sheet`.
    """
    files = [file for path in paths for file in _files_in(path)]
    return [
        inspect_image(file, size, apply_voi, draw=draw and index < SHEET_TILES)
        for index, file in enumerate(tqdm(files, desc="inspect", unit="image", disable=None, leave=False))
    ]


def inspect_image(
    file: Path, size: tuple[int, int] = (1024, 512), apply_voi: bool = True, draw: bool = False
) -> Inspection:
    """Inspect one file; a refusal is a result, not an error."""
    facts = {**NO_FACTS, "file": str(file)}
    try:
        if file.is_dir():
            raise NotAnImageError(
                f"{file}: a folder without any DICOM, PNG, JPEG or NIfTI image. Check the path."
            )
        header = read_header(file)
        facts |= {
            "view": header.view,
            "laterality": header.laterality,
            "rows": header.rows,
            "columns": header.columns,
            "bits": header.bits_stored,
            "spacing_mm": list(header.spacing_mm) if header.spacing_mm else None,
            "photometric": header.photometric,
            "voi": header.voi,
            "warnings": list(header.warnings),
        }
        image = read_image(file, apply_voi)
        (placed,) = preprocess_views([image], size)
    except Exception as error:  # a problem with one file must not hide the others
        reason = str(error) if isinstance(error, ClnetError) else f"{file}: {type(error).__name__}: {error}"
        return Inspection({**facts, "refused": reason}, _refused_tile(file, reason) if draw else None)
    facts |= {
        "breast_box": list(placed.breast.box),
        "chest_side": placed.breast.chest_side,
        "flipped": placed.placement.x_scale < 0,
        "steps": [*image.steps, *placed.steps],
        "warnings": [*image.warnings, *placed.warnings],
    }
    return Inspection(facts, _tile(image, placed) if draw else None)


def describe(facts: Mapping[str, Any]) -> str:
    """The facts about one image as a few lines of text."""
    if facts["refused"]:
        return f"{facts['file']}\n  refused    {facts['refused']}"
    spacing = facts["spacing_mm"]
    pixel = f"{spacing[0]:g} × {spacing[1]:g} mm per pixel" if spacing else "spacing unknown"
    x_min, y_min, x_max, y_max = facts["breast_box"]
    side = f"chest wall {facts['chest_side']}, {'' if facts['flipped'] else 'not '}mirrored"
    lines = [
        facts["file"],
        f"  view       {facts['view'] or 'unknown'}, laterality {facts['laterality'] or 'unknown'}",
        f"  image      {facts['rows']} rows × {facts['columns']} columns, {facts['bits']} bits, {pixel}",
        f"  grey       {facts['photometric']}, VOI {facts['voi']}",
        f"  breast     x {x_min} to {x_max}, y {y_min} to {y_max}, {side}",
        *(f"  step {number}     {step}" for number, step in enumerate(facts["steps"], start=1)),
        *(f"  warning    {warning}" for warning in facts["warnings"]),
    ]
    return "\n".join(lines)


def contact_sheet(inspections: Sequence[Inspection]) -> Image.Image:
    """All tiles on one picture: each image as stored, with the breast box, and as the model sees it."""
    tiles = [inspection.tile for inspection in inspections if inspection.tile]
    left_out = len(inspections) - len(tiles)
    if left_out or not tiles:
        last = Image.new("RGB", TILE, PAPER)
        _write(last, (10, 4), f"and {left_out} more" if left_out else "no images")
        tiles.append(last)
    return sheet(tiles, SHEET_COLUMNS)


def _files_in(path: Path) -> list[Path]:
    """The file itself, or all images in a folder and its subfolders; the folder if there are none."""
    images = [file for file in sorted(path.rglob("*")) if file.is_file() and _is_image(file)]
    return images or [path]


def _is_image(file: Path) -> bool:
    try:
        image_format(file)
    except ImageError:
        return False
    return True


def _tile(image: Mammogram, placed: PlacedView) -> Image.Image:
    """The stored image with its breast box, next to the image that the model sees."""
    tile = Image.new("RGB", TILE, PAPER)
    header, breast = image.header, placed.breast
    _write(tile, (10, 4), header.file.name)
    words = f"{header.laterality or '?'} {header.view or '?'}   chest wall {breast.chest_side}"
    _write(tile, (10, 20), words + (", mirrored" if breast.chest_side == "right" else ""))
    if image.warnings or placed.warnings:
        _write(tile, (300, 20), f"{len(image.warnings) + len(placed.warnings)} warning(s)", ALARM)

    room = (TILE[0] // 2 - 15, TILE[1] - CAPTION - 10)
    low, high = breast.brightness
    stored, scale = _fit(torch.from_numpy(image.pixels), room)
    original = _grey((stored - low) / ((high - low) or 1))
    ImageDraw.Draw(original).rectangle([edge * scale for edge in breast.box], outline=ACCENT, width=2)
    tile.paste(original, (10, CAPTION))
    model, _ = _fit(placed.image[0], room)
    tile.paste(_grey(model), (TILE[0] // 2 + 5, CAPTION))
    return tile


def _refused_tile(file: Path, reason: str) -> Image.Image:
    tile = Image.new("RGB", TILE, PAPER)
    _write(tile, (10, 4), file.name)
    words = textwrap.fill(reason.replace(str(file), file.name), 68)
    _write(tile, (10, CAPTION), f"refused\n\n{words}", ALARM)
    return tile


def _fit(image: Tensor, room: tuple[int, int]) -> tuple[Tensor, float]:
    """An image [h, w] resized to fit into `room` (width, height), and the scale."""
    scale = min(room[0] / image.shape[1], room[1] / image.shape[0])
    return resize(image, scale, scale), scale


def _grey(image: Tensor) -> Image.Image:
    """An image [h, w], clipped to [0, 1], as a picture; brightened to show faint skin lines."""
    return Image.fromarray((image.clamp(0, 1).sqrt() * 255).to(torch.uint8).numpy()).convert("RGB")


def _write(image: Image.Image, where: tuple[int, int], words: str, colour: str = INK) -> None:
    ImageDraw.Draw(image).text(where, words, fill=colour, font=ImageFont.load_default(13))
