"""A folder of studies as MONAI Label's datastore, subfolders and DICOM files included.

Labels and what is known of an image lie where MONAI Label puts them: in the folder's ``labels/`` and
``datastore_v2.json``. An image is named by its path in the folder; names and tags are taken as they stand in
the list of images or not at all, so that no request can name another file.
"""

import json
import shutil
import tempfile
import threading
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from monailabel.datastore.local import LocalDatastore
from monailabel.interfaces.datastore import DefaultLabelTag

from clnet.apps.label.refusals import NotThereError, RequestError
from clnet.data.datalist import read_datalist
from clnet.data.header import ImageHeader, read_header
from clnet.data.image_errors import ImageError
from clnet.data.pair import View
from clnet.data.study import LeftOut, files_in

FINAL = DefaultLabelTag.FINAL.value
TAGS = tuple(tag.value for tag in DefaultLabelTag)
LABELS = "labels"


class StudyFolder(LocalDatastore):
    """A folder of DICOM and PNG files.

    Args:
        folder: where the images are.
        endings: of the files that are images, such as ``*.dcm``.
    """

    def __init__(self, folder: str | Path, endings: Iterable[str]) -> None:
        self.folder = Path(folder).resolve()
        self._headers: dict[Path, tuple[tuple[int, int], ImageHeader | LeftOut]] = {}
        self._one_at_a_time = threading.RLock()
        # MONAI Label's watcher changes the list while others read it; here it is read anew when asked for.
        super().__init__(str(self.folder), extensions=list(endings), auto_reload=False)

    look_again_after = 2.0  # seconds

    # ----------------------------------------------------------------------------------------------- images

    def look(self) -> tuple[list[ImageHeader], list[LeftOut]]:
        """The headers of all images, and the files that cannot be read, as they are now."""
        with self._one_at_a_time:
            self.refresh()
            found = [self._header_of(image) for image in self.list_images()]
        return (
            [item for item in found if isinstance(item, ImageHeader)],
            [item for item in found if isinstance(item, LeftOut)],
        )

    def without_folder(self, words: str) -> str:
        """Words in which files are named as images are."""
        return words.replace(f"{self.folder}/", "")

    def image_id(self, file: Path) -> str:
        """The id of an image of the folder."""
        return file.relative_to(self.folder).as_posix()

    def file_of(self, image_id: str) -> Path:
        """Where an image is; nothing outside the folder, a link's target neither."""
        file = Path(super().get_image_uri(self.known(image_id)))
        if not file.is_relative_to(self.folder):
            raise NotThereError(f"image {image_id!r} is a link out of the studies; it is not read")
        return file

    def spacing_of(self, image_id: str) -> tuple[float, float] | None:
        """Millimetres between rows and between columns of an image, where its file says so."""
        header = self._header_of(image_id)
        return header.spacing_mm if isinstance(header, ImageHeader) else None

    def known(self, image_id: Any) -> str:
        """The id itself, if there is such an image."""
        with self._one_at_a_time:  # while the list is read anew, it is empty for a moment
            is_there = isinstance(image_id, str) and image_id in self._datastore.objects
        if not is_there:
            said = repr(image_id)[:80] if not Path(str(image_id)).is_absolute() else "that path"
            raise NotThereError(f"there is no image {said}; GET /datastore/?output=all lists the images")
        return image_id

    def get_image_uri(self, image_id: str) -> str:
        """Where an image is, as MONAI Label asks for it."""
        return str(self.file_of(image_id))

    def get_image_info(self, image_id: str) -> dict[str, Any]:
        """What is known of an image."""
        with self._one_at_a_time:
            return super().get_image_info(self.known(image_id))

    def add_image(self, image_id: str, image_filename: str, image_info: dict[str, Any]) -> str:
        """Take an image that a client sends, if it is one that clnet reads."""
        try:
            read_header(image_filename)
        except ImageError as error:
            reason = str(error).removeprefix(f"{image_filename}: ")
            raise RequestError(f"the image that was sent is refused: {reason}") from error
        name = Path(image_id or image_filename).name
        ending = Path(image_filename).suffix
        name = name if name.endswith(ending) else name + ending
        if image_id not in ("", name, name.removesuffix(ending)) or not self._is_image(Path(name)):
            raise RequestError(
                f"image is {image_id!r}; expected a plain name, and a file that matches one of "
                f"{', '.join(self._extensions)}"
            )
        if (self.folder / name).exists():
            raise RequestError(f"there is an image {name!r} already; remove it first, or choose another name")
        with self._changing():
            return super().add_image(name, image_filename, image_info)

    def remove_image(self, image_id: str) -> None:
        """Remove an image and its labels."""
        with self._changing():
            super().remove_image(self.known(image_id))

    def update_image_info(self, image_id: str, info: dict[str, Any]) -> None:
        """Keep something about an image."""
        self.update_images({image_id: info})

    def update_images(self, infos: Mapping[str, Mapping[str, Any]]) -> None:
        """Keep something about several images, in one go."""
        with self._changing():
            for image_id, info in infos.items():
                self._datastore.objects[self.known(image_id)].image.info.update(info)
            self._update_datastore_file()

    def refresh(self) -> None:
        """Look again which files there are."""
        with self._one_at_a_time:
            super().refresh()

    # ----------------------------------------------------------------------------------------------- labels

    def view_label(self, image_id: str) -> dict[str, Any] | None:
        """The final label of an image, see `save_view_label`; None without."""
        with self._one_at_a_time:
            image_id = self.known(image_id)
            if FINAL not in self._datastore.objects[image_id].labels:
                return None
            return read_view_label(Path(super().get_label_uri(image_id, FINAL)))

    def save_view_label(self, image_id: str, boxes: Any, lesion_ids: Any, info: dict[str, Any]) -> None:
        """Save the boxes of an image and the lesion of each as its final label."""
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "label.json"
            file.write_text(json.dumps({"boxes": boxes, "lesion_ids": lesion_ids}) + "\n", encoding="utf-8")
            self.save_label(image_id, str(file), FINAL, info)

    def save_label(
        self, image_id: str, label_filename: str, label_tag: str, label_info: dict[str, Any]
    ) -> str:
        """Save a label, if it is one: boxes and lesion ids as JSON."""
        read_view_label(Path(label_filename))
        image_id, tag = self.known(image_id), _known_tag(label_tag)
        with self._changing():
            place = Path(self._datastore.label_path(tag)) / f"{image_id}.json"
            place.parent.mkdir(parents=True, exist_ok=True)
            # MONAI Label takes the ending from the file, which a client may have named as it likes.
            with tempfile.TemporaryDirectory() as folder:
                copy = shutil.copy(label_filename, Path(folder) / "label.json")
                return super().save_label(image_id, str(copy), tag, label_info)

    def remove_label(self, label_id: str, label_tag: str) -> None:
        """Remove the label of an image."""
        label_id = self.known(label_id)
        if not self.get_label_uri(label_id, label_tag):
            raise NotThereError(f"image {label_id!r} has no label {label_tag!r}")
        with self._changing():
            super().remove_label(label_id, label_tag)

    def get_label_uri(self, label_id: str, label_tag: str) -> str:
        """Where a label is; "" without."""
        return super().get_label_uri(self.known(label_id), _known_tag(label_tag))

    def get_label_info(self, label_id: str, label_tag: str) -> dict[str, Any]:
        """What is known of a label."""
        return super().get_label_info(self.known(label_id), _known_tag(label_tag))

    # ------------------------------------------------------------------------------------------------ inside

    def _changing(self) -> "_Changing":
        return _Changing(self)

    def _header_of(self, image_id: str) -> ImageHeader | LeftOut:
        try:
            return self._header(self.file_of(image_id))
        except NotThereError as error:
            return LeftOut(self.folder / image_id, str(error))

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
        """An image's id is its name with the ending, so that a.dcm and a.png are two; a label adds .json."""
        return (file.removesuffix(".json"), ".json") if file.endswith(".json") else (file, "")

    def _list_files(self, path: str, patterns: list[str]) -> dict[str, str]:
        """The files below a folder by their path in it, for MONAI Label looks into no subfolders."""
        folder = Path(path).resolve()
        if folder.is_relative_to(self.folder / LABELS):
            files = [file for file in files_in(folder) if file.suffix == ".json"]
        else:
            files = list(self._image_files())
        return {name: name for name in sorted(file.relative_to(folder).as_posix() for file in files)}

    def _image_files(self) -> Iterator[Path]:
        """Those that a datalist.json in the folder names; without one, all of the right ending."""
        if (self.folder / "datalist.json").is_file():
            for pairs in read_datalist(self.folder).sections.values():
                files = [view.image.resolve() for pair in pairs for view in pair.views.values()]
                yield from (file for file in files if file.is_file() and file.is_relative_to(self.folder))
            return
        for file in files_in(self.folder):
            if self._is_image(file) and not file.is_relative_to(self.folder / LABELS):
                yield file

    def _is_image(self, file: Path) -> bool:
        return file.suffix != ".json" and any(file.match(ending) for ending in self._extensions)


class _Changing:
    """Around changes of the list: alone, and from what other processes have written."""

    def __init__(self, datastore: StudyFolder) -> None:
        self.datastore = datastore

    def __enter__(self) -> None:
        self.datastore._one_at_a_time.acquire()
        self.datastore._init_from_datastore_file()

    def __exit__(self, *_: object) -> None:
        self.datastore._one_at_a_time.release()


def read_view_label(file: Path) -> dict[str, Any]:
    """The boxes of a label and the lesion of each."""
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        View(Path("label"), content["boxes"], tuple(content["lesion_ids"]))
        if not are_lesion_ids(content["lesion_ids"]):
            raise ValueError("lesion_ids")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RequestError(
            'a label is JSON: {"boxes": [[x_min, y_min, x_max, y_max], …], "lesion_ids": ["1", …]}; '
            f"{file.name} is none ({type(error).__name__})"
        ) from error
    return {"boxes": content["boxes"], "lesion_ids": content["lesion_ids"]}


def are_lesion_ids(ids: Any) -> bool:
    """Whether this is a list of texts that can be shown and sent."""
    return isinstance(ids, list) and all(isinstance(i, str) and i and i.isprintable() for i in ids)


def _known_tag(tag: str) -> str:
    if tag not in TAGS:
        raise RequestError(f"tag is {tag!r}; expected one of {', '.join(TAGS)}")
    return tag
