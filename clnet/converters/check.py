"""Check a datalist against its images, and draw a sample of it for a person to look at."""

from collections import defaultdict
from dataclasses import dataclass
from itertools import chain, zip_longest
from pathlib import Path

from PIL import Image

from clnet.converters.memory import Memory
from clnet.data.datalist import Datalist, read_datalist
from clnet.data.header import read_header
from clnet.data.image_errors import ImageError
from clnet.data.pair import Pair, PairError, check_boxes_inside
from clnet.data.pictures import datalist_picture, sheet


@dataclass(frozen=True)
class Check:
    """What came of it.

    Attributes:
        datalist: what was checked.
        images: how many images it names.
        problems: a line for each thing that is wrong; empty if all is well.
    """

    datalist: Datalist
    images: int
    problems: tuple[str, ...]


def check_datalist(path: Path, workers: int | None = None) -> Check:
    """Check that the images of a datalist are there, have its sizes, hold its boxes, and stand in it once.

    What a datalist must be in itself (its schema, each patient in one section, boxes within the sizes that it
    says) is checked when it is read, and is an error there.

    Args:
        path: a datalist, or a folder with one.
        workers: processes to read headers with.
    """
    datalist = read_datalist(path)
    views = [
        (f"{section}, pair {pair.pair_id}, {name}", view)
        for section, pairs in datalist.sections.items()
        for pair in pairs
        for name, view in pair.views.items()
    ]
    sizes = Memory(workers=workers).map(image_size, (view.image for _, view in views), "Checking images")
    problems = []
    first: dict[Path, str] = {}
    for where, view in views:
        if first.setdefault(view.image.resolve(), where) != where:
            problems.append(f"{where}: {view.image} stands in {first[view.image.resolve()]} too")
        found = sizes[view.image]
        if isinstance(found, ImageError):
            problems.append(f"{where}: {found}")
            continue
        rows, columns = found
        if view.size and view.size != (rows, columns):
            problems.append(
                f"{where}: {view.image} is {rows} × {columns}, the datalist says "
                f"{view.size[0]} × {view.size[1]}"
            )
        try:
            check_boxes_inside(view.boxes, rows, columns, where)
        except PairError as error:
            problems.append(str(error))
    return Check(datalist, len(first), tuple(problems))


def image_size(file: Path) -> list[int]:
    """Rows and columns, by the header."""
    header = read_header(file)
    return [header.rows, header.columns]


def draw_sample(datalist: Datalist, number: int = 6) -> tuple[Image.Image | None, tuple[str, ...]]:
    """A sheet of some pairs with their boxes and links, and a line for each that cannot be drawn."""
    pictures, problems = [], []
    for pair in sample(datalist, number):
        try:
            pictures.append(datalist_picture(pair, height=420))
        except ImageError as error:
            problems.append(f"pair {pair.pair_id}: {error}")
    return (sheet(pictures, 3) if pictures else None), tuple(problems)


def sample(datalist: Datalist, number: int) -> list[Pair]:
    """Some pairs, of each section, of each source of links, and without links, in turn."""
    kinds: dict[tuple[bool, int, tuple[str, ...], str], list[Pair]] = defaultdict(list)
    for section, pairs in datalist.sections.items():
        for pair in pairs:
            sources = tuple(sorted(set(pair.links.values())))
            empty = not any(view.lesion_ids for view in pair.views.values())
            kinds[empty, -len(sources), sources, section].append(pair)
    turns = chain.from_iterable(zip_longest(*(kinds[kind] for kind in sorted(kinds))))
    return [pair for pair in turns if pair][:number]
