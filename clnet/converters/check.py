"""Check a datalist against its images, and draw a sample of its pairs."""

from collections import defaultdict
from dataclasses import dataclass
from itertools import chain, zip_longest
from pathlib import Path

from PIL import Image

from clnet.converters.file_cache import FileCache
from clnet.data.datalist import Datalist, read_datalist
from clnet.data.header import read_header
from clnet.data.image_errors import ImageError
from clnet.data.pair import Pair, PairError, check_boxes_inside
from clnet.data.pictures import datalist_picture, sheet


@dataclass(frozen=True)
class CheckResult:
    """The result of `check_datalist`.

    Attributes:
        datalist: the datalist that was checked.
        images: number of images in it.
        problems: one line per problem.
    """

    datalist: Datalist
    images: int
    problems: tuple[str, ...]


def check_datalist(path: Path, workers: int | None = None) -> CheckResult:
    """Check that each image of a datalist exists, has the stated size, contains its boxes, and appears once.

    Whatever can be checked without the images (the schema, each patient in one section, boxes within the
    stated sizes) is checked by `read_datalist`, which raises an error.

    Args:
        path: a datalist, or a folder with one.
        workers: number of processes that read headers.
    """
    datalist = read_datalist(path)
    views = [
        (f"{section}, pair {pair.pair_id}, {name}", view)
        for section, pairs in datalist.sections.items()
        for pair in pairs
        for name, view in pair.views.items()
    ]
    sizes = FileCache(workers=workers).map(image_size, (view.image for _, view in views), "Checking images")
    problems = []
    first: dict[Path, str] = {}
    for where, view in views:
        if first.setdefault(view.image.resolve(), where) != where:
            problems.append(f"{where}: {view.image} is also in {first[view.image.resolve()]}")
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
    return CheckResult(datalist, len(first), tuple(problems))


def image_size(file: Path) -> list[int]:
    """Rows and columns, from the header."""
    header = read_header(file)
    return [header.rows, header.columns]


def draw_sample(datalist: Datalist, count: int = 6) -> tuple[Image.Image | None, tuple[str, ...]]:
    """A sheet of some pairs with their boxes and links, and one line per pair that cannot be drawn."""
    pictures, problems = [], []
    for pair in sample_pairs(datalist, count):
        try:
            pictures.append(datalist_picture(pair, height=420))
        except ImageError as error:
            problems.append(f"pair {pair.pair_id}: {error}")
    return (sheet(pictures, 3) if pictures else None), tuple(problems)


def sample_pairs(datalist: Datalist, count: int) -> list[Pair]:
    """Some pairs of each section and of each source of links, those with several sources first."""
    kinds: dict[tuple[bool, int, tuple[str, ...], str], list[Pair]] = defaultdict(list)
    for section, pairs in datalist.sections.items():
        for pair in pairs:
            sources = tuple(sorted(set(pair.links.values())))
            empty = not any(view.lesion_ids for view in pair.views.values())
            kinds[empty, -len(sources), sources, section].append(pair)
    turns = chain.from_iterable(zip_longest(*(kinds[kind] for kind in sorted(kinds))))
    return [pair for pair in turns if pair][:count]
