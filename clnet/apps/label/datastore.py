"""A folder of studies as MONAI Label's datastore, with subfolders and DICOM files.

Labels and image information are stored where MONAI Label puts them: in ``labels/`` and ``datastore_v2.json``
of the folder. The id of an image is its path in the folder. An id or tag in a request must be a known one,
so that no request can reach another file.
"""

import copy
import json
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from monailabel.datastore.local import DataModel, ImageLabelModel
from monailabel.interfaces.datastore import DefaultLabelTag

from clnet.apps.label.request_errors import NotFoundError, RequestError
from clnet.apps.label.whole_datastore import LABELS, WholeDatastore
from clnet.data.datalist import read_datalist
from clnet.data.header import ImageHeader, read_header
from clnet.data.image_errors import ImageError
from clnet.data.pair import View
from clnet.data.study import LeftOut, files_in
from clnet.files import UNFINISHED, whole_file

FINAL = DefaultLabelTag.FINAL.value
TAGS = tuple(tag.value for tag in DefaultLabelTag)
MOST_BOXES = 100  # in a view
LONGEST_ID = 64
Headers = tuple[list[ImageHeader], list[LeftOut]]


class StudyFolder(WholeDatastore):
    """A folder of DICOM, PNG and JPEG files.

    Args:
        folder: of the images.
        patterns: of the file names that are images, such as ``*.dcm``.
    """

    refresh_seconds = 2.0

    def __init__(self, folder: str | Path, patterns: Iterable[str]) -> None:
        self._headers: dict[Path, tuple[tuple[int, int], ImageHeader | LeftOut]] = {}
        super().__init__(Path(folder).resolve(), list(patterns))
        with self.locked():
            damaged = [file for file in (self.folder / LABELS / FINAL).rglob("*.json") if not is_label(file)]
            for file in damaged:
                self.set_aside(file)
            if damaged:
                self.refresh()

    # ----------------------------------------------------------------------------------------------- images

    def read_headers(self) -> Headers:
        """The headers of all images that there are now, and the files that cannot be read."""
        with self._lock:
            self.refresh()
            return split_headers(map(self.header_of, self.list_images()))

    def header_of(self, image_id: str) -> ImageHeader | LeftOut:
        """The header of an image, or why it cannot be read."""
        try:
            return self._header(self.file_of(image_id))
        except NotFoundError as error:
            return LeftOut(self.folder / image_id, str(error))

    def spacing_of(self, image_id: str) -> tuple[float, float] | None:
        """Millimetres between rows and between columns of an image, if its file says so."""
        header = self.header_of(image_id)
        return header.spacing_mm if isinstance(header, ImageHeader) else None

    def without_folder(self, message: str) -> str:
        """A message in which files are named by their image ids."""
        return message.replace(f"{self.folder}/", "")

    def image_id(self, file: Path) -> str:
        """The id of an image of the folder."""
        return file.relative_to(self.folder).as_posix()

    def file_of(self, image_id: str) -> Path:
        """The file of an image; never outside the folder, even if the image is a link."""
        file = Path(super().get_image_uri(self.known(image_id)))
        if not file.is_relative_to(self.folder):
            raise NotFoundError(f"image {image_id!r} is a link to a file outside the studies; it is not read")
        return file

    def known(self, image_id: Any) -> str:
        """The id itself, if there is such an image."""
        with self._lock:  # while the list is refreshed, it is empty for a moment
            is_known = isinstance(image_id, str) and image_id in self._datastore.objects
        if not is_known:
            which = "at that path" if Path(str(image_id)).is_absolute() else repr(image_id)[:80]
            raise NotFoundError(f"there is no image {which}; GET /datastore/?output=all lists the images")
        return image_id

    def get_image_uri(self, image_id: str) -> str:
        """The file of an image, as MONAI Label asks for it."""
        return str(self.file_of(image_id))

    def get_image_info(self, image_id: str) -> dict[str, Any]:
        """The information stored about an image; MONAI Label adds where its file is."""
        with self._lock:
            return copy.deepcopy(self._datastore.objects[self.known(image_id)].image.info)

    def add_image(self, image_id: str, image_filename: str, image_info: dict[str, Any]) -> str:
        """Add an uploaded image, if clnet can read it."""
        try:
            read_header(image_filename)
        except ImageError as error:
            reason = str(error).removeprefix(f"{image_filename}: ")
            raise RequestError(f"the uploaded image is refused: {reason}") from error
        name = Path(image_id or image_filename).name
        ending = Path(image_filename).suffix
        name = name if name.endswith(ending) else name + ending
        if image_id not in ("", name, name.removesuffix(ending)) or not self._is_image(Path(name)):
            raise RequestError(
                f"image is {image_id!r}; expected a plain name, and a file that matches one of "
                f"{', '.join(self._extensions)}"
            )
        if (self.folder / name).exists():
            raise RequestError(f"image {name!r} already exists; remove it first, or choose another name")
        with self.locked():
            with whole_file(self.folder / name) as unfinished:
                shutil.copy(image_filename, unfinished)
            info = {**image_info, "ts": int(time.time()), "name": name}
            self._datastore.objects[name] = ImageLabelModel(image=DataModel(info=info))
            self._update_datastore_file()
        return name

    def remove_image(self, image_id: str) -> None:
        """Remove an image and its labels."""
        with self.locked():
            super().remove_image(self.known(image_id))

    def update_image_info(self, image_id: str, info: dict[str, Any]) -> None:
        """Store information about an image."""
        self.update_images({image_id: info})

    def update_images(self, infos: Mapping[str, Mapping[str, Any]]) -> None:
        """Store information about several images at once."""
        with self.locked():
            for image_id, info in infos.items():
                self._datastore.objects[self.known(image_id)].image.info.update(info)
            self._update_datastore_file()

    # ----------------------------------------------------------------------------------------------- labels

    def view_labels(self, image_ids: Iterable[str]) -> list[dict[str, Any] | None]:
        """The final label of each image, see `read_view_label`; None where there is none."""
        with self.locked():
            known = [self.known(image_id) for image_id in image_ids]
            labelled = [FINAL in self._datastore.objects[image_id].labels for image_id in known]
            return [
                read_view_label(self.label_file(image_id, FINAL)) if has_label else None
                for image_id, has_label in zip(known, labelled, strict=True)
            ]

    def save_label(
        self, image_id: str, label_filename: str, label_tag: str, label_info: dict[str, Any]
    ) -> str:
        """Save the label of one image, if it is valid: boxes and lesion ids as JSON."""
        image_id, label = self.known(image_id), read_view_label(Path(label_filename))
        self.save_labels({image_id: label}, _known_tag(label_tag), label_info)
        return image_id

    def remove_label(self, label_id: str, label_tag: str) -> None:
        """Remove the label of an image."""
        label_id = self.known(label_id)
        with self.locked():
            if not self.get_label_uri(label_id, label_tag):
                raise NotFoundError(f"image {label_id!r} has no label {label_tag!r}")
            self.save_labels({label_id: None}, label_tag, {})

    def get_label_uri(self, label_id: str, label_tag: str) -> str:
        """The file of a label; "" if there is none."""
        return super().get_label_uri(self.known(label_id), _known_tag(label_tag))

    def get_label_info(self, label_id: str, label_tag: str) -> dict[str, Any]:
        """The information stored with a label."""
        return super().get_label_info(self.known(label_id), _known_tag(label_tag))

    def update_label_info(self, label_id: str, label_tag: str, info: dict[str, Any]) -> None:
        """Store information with a label."""
        with self.locked():
            super().update_label_info(self.known(label_id), _known_tag(label_tag), info)

    # --------------------------------------------------------------------------------------------- internal

    def _header(self, file: Path) -> ImageHeader | LeftOut:
        """Read once, and again when the file has changed."""
        try:
            state = file.stat()
            key = (state.st_size, state.st_mtime_ns)
            if self._headers.get(file, (None,))[0] != key:
                self._headers[file] = key, read_header(file)
        except OSError:
            return LeftOut(file, "cannot be opened")
        except ImageError as error:
            self._headers[file] = key, LeftOut(file, str(error))
        return self._headers[file][1]

    def _to_id(self, file: str) -> tuple[str, str]:
        """Image ids keep the ending, so that a.dcm and a.png are two images; a label adds .json."""
        return (file.removesuffix(".json"), ".json") if file.endswith(".json") else (file, "")

    def _list_files(self, path: str, patterns: list[str]) -> dict[str, str]:
        """The files below a folder by their relative paths; MONAI Label itself ignores subfolders."""
        folder = Path(path).resolve()
        if folder.is_relative_to(self.folder / LABELS):
            files = [file for file in files_in(folder) if file.suffix == ".json"]
        else:
            files = list(self._image_files())
        return {name: name for name in sorted(file.relative_to(folder).as_posix() for file in files)}

    def _image_files(self) -> Iterator[Path]:
        """The images of a datalist.json in the folder; without one, all files that match the patterns."""
        if (self.folder / "datalist.json").is_file():
            for pairs in read_datalist(self.folder).sections.values():
                files = [view.image.resolve() for pair in pairs for view in pair.views.values()]
                yield from (file for file in files if file.is_file() and file.is_relative_to(self.folder))
            return
        for file in files_in(self.folder):
            if self._is_image(file) and not file.is_relative_to(self.folder / LABELS):
                yield file

    def _is_image(self, file: Path) -> bool:
        may_be = file.suffix not in (".json", UNFINISHED)
        return may_be and any(file.match(pattern) for pattern in self._extensions)


def split_headers(found: Iterable[ImageHeader | LeftOut]) -> Headers:
    """The headers, and the files that cannot be read."""
    headers: list[ImageHeader] = []
    left_out: list[LeftOut] = []
    for item in found:
        if isinstance(item, LeftOut):
            left_out.append(item)
        else:
            headers.append(item)
    return headers, left_out


def read_view_label(file: Path) -> dict[str, Any]:
    """The boxes of a label and the lesion of each box."""
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        View(Path("label"), content["boxes"], tuple(content["lesion_ids"]))
        if not are_lesion_ids(content["lesion_ids"]):
            raise ValueError("lesion_ids")
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise RequestError(
            f"{file.name} is not a label ({type(error).__name__}); expected JSON: "
            '{"boxes": [[x_min, y_min, x_max, y_max], …], "lesion_ids": ["1", …]}'
        ) from error
    return {"boxes": content["boxes"], "lesion_ids": content["lesion_ids"]}


def is_label(file: Path) -> bool:
    """Whether `read_view_label` can read a file."""
    try:
        read_view_label(file)
    except RequestError:
        return False
    return True


def are_lesion_ids(ids: Any) -> bool:
    """Whether this is a list of printable strings, neither longer than a person would write it."""
    return (
        isinstance(ids, list)
        and len(ids) <= MOST_BOXES
        and all(isinstance(i, str) and 0 < len(i) <= LONGEST_ID and i.isprintable() for i in ids)
    )


def _known_tag(tag: str) -> str:
    if tag not in TAGS:
        raise RequestError(f"tag is {tag!r}; expected one of {', '.join(TAGS)}")
    return tag
