"""Pictures of pairs: CC and MLO side by side, with boxes, and lines that link the same mass."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from clnet.data.counted import counted
from clnet.data.pair import VIEW_NAMES, Pair
from clnet.data.reader import read_image

# Okabe and Ito's palette, safe for colour-blind readers; labels identify boxes without colour.
COLOURS = ("#56B4E9", "#E69F00", "#009E73", "#CC79A7", "#F0E442", "#D55E00")
GAP = 10  # pixels between the two views
PAPER, INK, ALARM = "#16181c", "#d5d9e0", "#FF6E5A"
Box = tuple[float, float, float, float]
"""x_min, y_min, x_max, y_max in pixels of the picture."""
Point = tuple[float, float]
"""x, y in pixels of the picture."""


@dataclass(frozen=True)
class Mark:
    """A box in a view.

    Attributes:
        box: (x_min, y_min, x_max, y_max) in pixels of the image.
        label: the text next to it.
        lesion: the number of its lesion; the marks of a lesion in both views are linked and share a colour.
            None draws a dashed white box without a link, for comparison.
    """

    box: tuple[float, ...]
    label: str
    lesion: int | None


def pair_picture(
    images: Mapping[str, NDArray[Any] | None],
    marks: Mapping[str, Sequence[Mark]],
    title: str,
    height: int = 520,
    letter: int | None = None,
    warning: str = "",
) -> Image.Image:
    """Draw a pair.

    Args:
        images: grey values [H, W] by view ("cc", "mlo"), shown from darkest to brightest; None if missing.
        marks: the boxes in each view.
        title: the line above the views and their names.
        height: of the views in the picture, in pixels.
        letter: size of the letters in pixels, which lines follow; by default it follows `height`.
        warning: a line below the title; "" for none.
    """
    letter = letter or max(height // 34, 11)
    line = max(letter // 7, 1)
    font = ImageFont.load_default(size=letter)
    names = int((3.6 if warning else 2) * letter)  # where the names of the views are
    header = names + int(1.5 * letter)
    shown = {name: _to_height(images[name], height, font) for name in VIEW_NAMES}
    picture = Image.new("RGB", (sum(v.width for v in shown.values()) + GAP, height + header), PAPER)
    draw = ImageDraw.Draw(picture)
    draw.text((8, letter * 0.4), title, fill=INK, font=font)
    draw.text((8, letter * 2), warning, fill=ALARM, font=font)
    lefts = {"cc": 0, "mlo": shown["cc"].width + GAP}
    for name, left in lefts.items():
        picture.paste(shown[name], (left, header))
        draw.text((left + 8, names), name.upper(), fill=INK, font=font)
    boxes: dict[str, list[Box]] = {}
    ends: dict[int, list[Box]] = {}  # the boxes of each lesion
    for name, left in lefts.items():
        image = images[name]
        factor = height / image.shape[0] if image is not None else 1.0
        boxes[name] = [_moved(mark.box, factor, left, header) for mark in marks.get(name, ())]
        for mark, box in zip(marks.get(name, ()), boxes[name], strict=True):
            if mark.lesion is None:
                _dashed_box(draw, box, line)
                continue
            ends.setdefault(mark.lesion, []).append(box)
            draw.rectangle(box, outline=COLOURS[mark.lesion % len(COLOURS)], width=line)
    links = {lesion: _link(*both) for lesion, both in ends.items() if len(both) == 2}
    for lesion, (start, end) in links.items():
        _dashed_line(draw, start, end, COLOURS[lesion % len(COLOURS)], line)
    crossed = [dot for start, end in links.values() for dot in _dots(start, end, letter / 4)]
    for name, left in lefts.items():  # above all lines
        view = (left, header, left + shown[name].width, header + height)
        taken = list(boxes[name])
        for mark, box in zip(marks.get(name, ()), boxes[name], strict=True):
            if mark.lesion is None:
                continue
            length = draw.textlength(mark.label, font)
            x, y = _beside(box, (length, float(letter)), view, taken, crossed)
            taken.append((x, y, x + length, y + letter))
            colour = COLOURS[mark.lesion % len(COLOURS)]
            draw.text((x, y), mark.label, fill=colour, font=font, stroke_width=1, stroke_fill=PAPER)
    return picture


def datalist_picture(pair: Pair, height: int = 520) -> Image.Image:
    """Draw a pair of a datalist with its annotated lesions."""
    images = {name: read_image(view.image).pixels for name, view in pair.views.items()}
    ids = sorted({i for view in pair.views.values() for i in view.lesion_ids})
    marks = {
        name: [
            Mark(tuple(box), lesion_id, ids.index(lesion_id))
            for box, lesion_id in zip(view.boxes.tolist(), view.lesion_ids, strict=True)
        ]
        for name, view in pair.views.items()
    }
    title = f"{pair.pair_id}   {counted(len(ids), 'mass')}, {len(pair.links)} linked"
    return pair_picture({name: images.get(name) for name in VIEW_NAMES}, marks, title, height)


def sheet(pictures: Sequence[Image.Image], columns: int) -> Image.Image:
    """Arrange pictures in rows of `columns`."""
    columns = min(columns, len(pictures))
    width = max(p.width for p in pictures) + 2 * GAP
    height = max(p.height for p in pictures) + 2 * GAP
    page = Image.new("RGB", (width * columns, height * math.ceil(len(pictures) / columns)), PAPER)
    for number, picture in enumerate(pictures):
        page.paste(picture, (number % columns * width + GAP, number // columns * height + GAP))
    return page


def to_grey(pixels: NDArray[Any]) -> Image.Image:
    """Grey values [H, W] as an 8-bit picture, from darkest to brightest."""
    low, high = float(pixels.min()), float(pixels.max())
    return Image.fromarray(((pixels - low) * (255 / max(high - low, 1e-6))).astype(np.uint8))


def _to_height(
    pixels: NDArray[Any] | None, height: int, font: ImageFont.FreeTypeFont | ImageFont.ImageFont
) -> Image.Image:
    if pixels is None:
        blank = Image.new("RGB", (height // 2, height), PAPER)
        ImageDraw.Draw(blank).text((height // 4, height // 2), "no view", fill=INK, font=font, anchor="mm")
        return blank
    width = max(round(pixels.shape[1] * height / pixels.shape[0]), 1)
    return to_grey(pixels).resize((width, height), Image.Resampling.LANCZOS).convert("RGB")


def _moved(box: Sequence[float], factor: float, left: float, top: float) -> Box:
    x_min, y_min, x_max, y_max = (edge * factor for edge in box)
    return left + x_min, top + y_min, left + x_max, top + y_max


def _beside(
    box: Box, size: tuple[float, float], view: Box, taken: Sequence[Box], crossed: Sequence[Box] = ()
) -> tuple[float, float]:
    """The place (x, y) of a label: right of its box, left of it, above or below it, wherever there is room.

    Of the places in the view the first that covers nothing is taken, or else the first that covers links
    alone. A label that is too long to fit beside its box is drawn on it.

    Args:
        box: what the label names.
        size: (length, height) of the label.
        view: the box that it must not leave.
        taken: boxes, and labels that were placed before.
        crossed: dots on the lines of links.
    """
    length, letter = size
    left, top, right, bottom = view
    y = box[1] - 2
    places = [(x, y) for x in (box[2] + 3, box[0] - 3 - length) if left <= x <= right - length]
    if not places:
        return right - length, y
    x = min(box[0], right - length)
    places += [(x, y) for y in (box[1] - letter - 5, box[3] + 1) if top <= y <= bottom - letter]

    def is_free(place: tuple[float, float], others: Sequence[Box]) -> bool:
        x, y = place[0], place[1] + 2  # letters begin a little lower
        return not any(
            x < other[2] and other[0] < x + length and y < other[3] and other[1] < y + letter
            for other in others
        )

    free = [place for place in places if is_free(place, taken)]
    return next((place for place in free if is_free(place, crossed)), (free or places)[0])


def _link(first: Box, second: Box) -> tuple[Point, Point]:
    """The line from the right edge of the left box to the left edge of the right box."""
    return (first[2], (first[1] + first[3]) / 2), (second[0], (second[1] + second[3]) / 2)


def _dots(start: Point, end: Point, step: float) -> list[Box]:
    """Points on a line, at most `step` pixels apart, as boxes without a size."""
    points = np.linspace(start, end, max(math.ceil(math.dist(start, end) / step), 1) + 1)
    return [(x, y, x, y) for x, y in points.tolist()]


def _dashed_box(draw: ImageDraw.ImageDraw, box: Box, width: int) -> None:
    x0, y0, x1, y1 = box
    corners = [(x0, y0), (x1, y0), (x1, y1), (x0, y1), (x0, y0)]
    for start, end in pairwise(corners):
        _dashed_line(draw, start, end, "#ffffff", width)


def _dashed_line(draw: ImageDraw.ImageDraw, start: Point, end: Point, colour: str, width: int) -> None:
    first, last = np.array(start), np.array(end)
    steps = max(int(np.linalg.norm(last - first) / (6 + 2 * width)), 1)
    for step in range(steps):
        a, b = (first + (last - first) * (step + part) / steps for part in (0.0, 0.5))
        draw.line([*a.tolist(), *b.tolist()], fill=colour, width=width)
