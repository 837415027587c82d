"""The results of any detector, in COCO's format, as findings.

A results file is a list::

    [{"image_id": 17, "category_id": 1, "bbox": [x, y, width, height], "score": 0.9}, …]

Boxes are in pixels of the stored images. An image is named by its file: by the ``file_name`` that a COCO file
with ``images`` gives its id, or by the id itself. A name may be a whole path, its last parts or the file
alone, with or without its extension, as long as it fits one image of the datalist.
"""

from collections import defaultdict
from collections.abc import Mapping
from os.path import normpath
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

import numpy as np

from clnet.data.datalist import Datalist
from clnet.findings.types import Detections, Findings, FindingsError, PairFindings, read_json

LARGEST = float(np.finfo(np.float32).max)


class _Image(NamedTuple):
    """An image of the datalist."""

    pair_id: str
    view: str
    file: Path


def is_coco_results(path: str | Path) -> bool:
    """Whether a file is a JSON list, as COCO results are, and not an object."""
    try:
        with Path(path).open(encoding="utf-8") as file:
            return file.read(1000).lstrip().startswith("[")
    except (OSError, UnicodeDecodeError):  # whoever reads it will say why
        return False


def read_coco_results(
    path: str | Path, datalist: Datalist, section: str, images: str | Path | None = None
) -> Findings:
    """Read COCO results about a section of a datalist; results about its other sections are left out.

    Args:
        path: the results file; its name without the extension names the model.
        datalist: the data that the results are about.
        section: the section to make findings of.
        images: a COCO file with ``images``, from id to file name; None if ids are file names.

    Returns:
        findings of every pair of the section; views without results are None.
    """
    content = read_json(path)
    if not isinstance(content, list):
        raise FindingsError(f"{path}: expected a list of COCO results")
    file_names = None if images is None else _file_names(images)
    by_name = _images_by_name(datalist)
    boxes: dict[_Image, list[list[float]]] = defaultdict(list)
    scores: dict[_Image, list[float]] = defaultdict(list)
    for number, entry in enumerate(content):
        where = f"{path}: entry {number}"
        _check_entry(entry, where)
        if entry.get("category_id") != content[0].get("category_id"):
            raise FindingsError(
                f"{where}: category_id is {entry.get('category_id')!r}, that of entry 0 is "
                f"{content[0].get('category_id')!r}; keep only the results for masses, under one category_id"
            )
        name = entry["image_id"]
        if file_names is not None:
            if name not in file_names:
                raise FindingsError(f"{where}: image_id {name!r} is not among the images of {images}")
            name = file_names[name]
        image = _find_image(str(name), by_name, where)
        x, y, width, height = entry["bbox"]
        boxes[image].append([x, y, x + width, y + height])
        scores[image].append(entry["score"])
    views = {
        (image.pair_id, image.view): Detections(np.array(boxes[image], np.float32), np.array(scores[image]))
        for image in boxes
    }
    pairs = (
        PairFindings(pair.pair_id, views.get((pair.pair_id, "cc")), views.get((pair.pair_id, "mlo")))
        for pair in datalist[section]
    )
    return Findings(Path(path).stem, tuple(pairs))


def _file_names(path: str | Path) -> dict[int | str, str]:
    """The file name of each image id in a COCO file."""
    content = read_json(path)
    images = content.get("images") if isinstance(content, Mapping) else None
    if not isinstance(images, list):
        raise FindingsError(f"{path}: 'images' is missing; give a COCO file with a list of images")
    names: dict[int | str, str] = {}
    for number, image in enumerate(images):
        where = f"{path}: images[{number}]"
        if not isinstance(image, Mapping) or not _is_id(image.get("id")):
            raise FindingsError(f"{where}: expected an object with id and file_name")
        if not isinstance(image.get("file_name"), str) or not image["file_name"]:
            raise FindingsError(f"{where}: file_name is {image.get('file_name')!r}; expected a text")
        if image["id"] in names:
            raise FindingsError(f"{where}: id {image['id']!r} appears twice")
        names[image["id"]] = image["file_name"]
    return names


def _check_entry(entry: Any, where: str) -> None:
    if not isinstance(entry, Mapping):
        raise FindingsError(f"{where} is {entry!r}; expected an object with image_id, bbox and score")
    for key in ("image_id", "bbox", "score"):
        if key not in entry:
            raise FindingsError(f"{where}: {key!r} is missing")
    if not _is_id(entry["image_id"]):
        raise FindingsError(f"{where}: image_id is {entry['image_id']!r}; expected a number or a text")
    box, score = entry["bbox"], entry["score"]
    if not isinstance(box, list) or len(box) != 4 or not all(map(_is_number, box)) or min(box[2:]) < 0:
        raise FindingsError(
            f"{where}: bbox is {box!r}; expected [x, y, width, height], with width and height of 0 or more"
        )
    if not _is_number(score):
        raise FindingsError(f"{where}: score is {score!r}; expected a finite number")


def _is_id(value: Any) -> bool:
    return isinstance(value, int | str) and not isinstance(value, bool) and value != ""


def _is_number(value: Any) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and abs(value) <= LARGEST  # which neither nan nor infinity is


def _images_by_name(datalist: Datalist) -> dict[str, list[_Image]]:
    """All images of a datalist by the last parts of their path, from the file alone to the whole."""
    by_name: dict[str, list[_Image]] = defaultdict(list)
    for pairs in datalist.sections.values():
        for pair in pairs:
            for name, view in pair.views.items():
                image = _Image(pair.pair_id, name, view.image)
                parts = Path(normpath(view.image)).parts
                for start in range(len(parts)):
                    whole = PurePosixPath(*parts[start:])
                    for key in {str(whole), str(whole.with_suffix(""))}:
                        by_name[key].append(image)
    return by_name


def _find_image(name: str, by_name: Mapping[str, list[_Image]], where: str) -> _Image:
    found = by_name.get(normpath(name), [])
    if not found:
        raise FindingsError(
            f"{where}: no image of the datalist is named {name!r}; an image_id is a file name, or an id to "
            "which the file of --coco-images gives a file name"
        )
    if len(found) > 1:
        raise FindingsError(
            f"{where}: {name!r} fits {len(found)} images, such as {found[0].file} and {found[1].file}; name "
            "images with more of their path"
        )
    return found[0]
