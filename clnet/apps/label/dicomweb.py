"""A DICOMweb server as MONAI Label's datastore, image by image.

MONAI Label identifies an image of a DICOMweb server by its series and treats the series as a volume. A
series of mammograms may hold one view or all views of both breasts, so here the id of an image is its
SOPInstanceUID; a SeriesInstanceUID is accepted if the series has only one CC or MLO image. Pairs are found
from the server's metadata, and an image is fetched on first use. Labels are stored beside the fetched images.
"""

import logging
import re
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dicomweb_client.api import DICOMwebClient
from pydicom.dataset import Dataset

from clnet.apps.label.datastore import Headers, StudyFolder, split_headers
from clnet.apps.label.request_errors import NotFoundError, RequestError
from clnet.data.dicomweb import fetch_instance
from clnet.data.header import ImageHeader, header_of_tags
from clnet.data.image_errors import ImageError, NotAnImageError, refusing_damage
from clnet.data.reader import read_image
from clnet.data.study import LeftOut, why_not_standard
from clnet.files import whole_file

logger = logging.getLogger(__name__)

UID = re.compile(r"[0-9]+(\.[0-9]+)*")
FILE = ".dcm"


@dataclass(frozen=True)
class Instance:
    """An image of the server: its study, its series and its header."""

    study_uid: str
    series_uid: str
    header: ImageHeader | LeftOut


class StudyServer(StudyFolder):
    """The mammograms of a DICOMweb server.

    Args:
        client: of the server.
        folder: for fetched images and for labels.
        search_filter: which series to list, such as ``{"Modality": "MG"}``.
    """

    refresh_seconds = 30.0

    def __init__(self, client: DICOMwebClient, folder: Path, search_filter: Mapping[str, Any]) -> None:
        self.client = client
        self.search_filter = dict(search_filter)
        self._series: dict[str, tuple[str, dict[str, Instance]]] = {}
        self._fetching = threading.Lock()
        folder.mkdir(parents=True, exist_ok=True)
        super().__init__(folder, [f"*{FILE}"])

    def name(self) -> str:
        """The address of the server."""
        return str(self.client.base_url)

    @property
    def instances(self) -> dict[str, Instance]:
        """All images by SOPInstanceUID."""
        return {uid: instance for _, found in self._series.values() for uid, instance in found.items()}

    def known(self, image_id: Any) -> str:
        """The SOPInstanceUID of an image, named by it or by its series."""
        if image_id in self._series:
            views = [
                uid
                for uid, instance in self._series[image_id][1].items()
                if isinstance(instance.header, ImageHeader)
                and why_not_standard(instance.header, True) is None
            ]
            if len(views) != 1:
                raise RequestError(
                    f"series {image_id} holds {len(views)} CC and MLO images; name an image by its "
                    f"SOPInstanceUID, one of: {', '.join(views) or 'none'}"
                )
            image_id = views[0]
        if image_id not in self.instances:  # a label may outlive its image
            raise NotFoundError(f"there is no image {str(image_id)[:80]!r} on the DICOMweb server")
        return super().known(image_id)

    def file_of(self, image_id: str) -> Path:
        """The file of an image, fetched on first use."""
        image_id = self.known(image_id)
        file = self.folder / f"{image_id}{FILE}"
        with self._fetching:
            if not file.is_file():
                instance = self.instances[image_id]
                data = fetch_instance(self.client, instance.study_uid, instance.series_uid, image_id)
                with whole_file(file) as unfinished:
                    unfinished.write_bytes(data)
                    _check(unfinished, image_id)
        return file

    def read_headers(self) -> Headers:
        """The headers of all images of the server, from its metadata."""
        self.refresh()
        return split_headers(instance.header for instance in self.instances.values())

    def header_of(self, image_id: str) -> ImageHeader | LeftOut:
        """The header of an image, from the server's metadata."""
        return self.instances[self.known(image_id)].header

    def get_image_info(self, image_id: str) -> dict[str, Any]:
        """The information stored about an image, and its UIDs for viewers."""
        image_id = self.known(image_id)
        instance = self.instances[image_id]
        uids = {"StudyInstanceUID": instance.study_uid, "SeriesInstanceUID": instance.series_uid}
        return {**self._datastore.objects[image_id].image.info, **uids, "SOPInstanceUID": image_id}

    def image_id(self, file: Path) -> str:
        """The id of an image."""
        return file.name.removesuffix(FILE)

    def add_image(self, image_id: str, image_filename: str, image_info: dict[str, Any]) -> str:
        """Refused: only the DICOMweb server adds images."""
        raise RequestError("images must be added on the DICOMweb server itself")

    def remove_image(self, image_id: str) -> None:
        """Refused: only the DICOMweb server removes images."""
        raise RequestError("images must be removed on the DICOMweb server itself")

    # --------------------------------------------------------------------------------------------- internal

    def _image_files(self) -> Iterator[Path]:
        """Query the server for its series, and for the metadata of those that are new or have grown."""
        listed: dict[str, tuple[str, dict[str, Instance]]] = {}
        for uid, answer in self._all_series():
            study = str(answer.get("StudyInstanceUID"))
            size = str(answer.get("NumberOfSeriesRelatedInstances", ""))
            if not (UID.fullmatch(uid) and UID.fullmatch(study)):
                continue
            if uid in self._series and size and self._series[uid][0] == size:
                listed[uid] = self._series[uid]
            else:
                metadata = self.client.retrieve_series_metadata(study, uid)
                listed[uid] = size, dict(self._instances_of(metadata, study, uid))
        self._series = listed
        yield from (self.folder / f"{uid}{FILE}" for uid in self.instances)

    def _all_series(self) -> Iterator[tuple[str, Dataset]]:
        """What the server says about each series, page by page; some send the same page again and again."""
        seen: set[str] = set()
        offset = 0
        while True:
            page = self.client.search_for_series(search_filters=self.search_filter, offset=offset)
            found = {str(answer.get("SeriesInstanceUID")): answer for answer in _readable(page)}
            new = [uid for uid in found if uid not in seen]
            if not new:
                return
            yield from ((uid, found[uid]) for uid in new)
            seen.update(new)
            offset += len(page)

    def _instances_of(
        self, metadata: list[dict[str, Any]], study: str, series: str
    ) -> Iterator[tuple[str, Instance]]:
        for tags in _readable(metadata):
            uid = str(tags.get("SOPInstanceUID", ""))
            if UID.fullmatch(uid):  # it becomes a file name
                file = self.folder / f"{uid}{FILE}"
                try:
                    with refusing_damage(file):
                        header: ImageHeader | LeftOut = header_of_tags(tags, file)
                except ImageError as error:
                    header = LeftOut(file, str(error))
                yield uid, Instance(study, series, header)

    def _to_id(self, file: str) -> tuple[str, str]:
        name, ending = super()._to_id(file)
        return (name.removesuffix(FILE), FILE) if not ending else (name, ending)

    def _remove_non_existing(self) -> int:
        """Forget images that the server no longer has, unless labelled, and labels whose file is gone."""
        self._init_from_datastore_file()
        objects = self._datastore.objects
        existing = self.instances or objects  # before the first query, no image is known to be gone
        gone = [image for image in objects if image not in existing and not objects[image].labels]
        for image in gone:
            del objects[image]
        lost = [
            (image, tag)
            for image, item in objects.items()
            for tag in item.labels
            if not (Path(self._datastore.label_path(tag)) / f"{image}.json").is_file()
        ]
        for image, tag in lost:
            del objects[image].labels[tag]
        return len(gone) + len(lost)


def _readable(answers: list[dict[str, Any]]) -> Iterator[Dataset]:
    """The tags that a server sent as JSON; what is not as DICOM says is logged and left out."""
    for answer in answers:
        try:
            with refusing_damage(Path("answer")):
                tags = Dataset.from_json(answer)
                tags.walk(lambda _dataset, _element: None)  # values are read when they are asked for
        except ImageError as error:
            logger.warning("the DICOMweb server sent what is not DICOM's JSON (%s)", type(error).__name__)
        else:
            yield tags


def _check(file: Path, image_id: str) -> None:
    """Raise an error unless a file is the image that was asked for, and whole."""
    try:
        tags = read_image(file).tags
    except ImageError as error:
        raise type(error)(str(error).replace(str(file), image_id)) from error
    if tags is None or tags.SOPInstanceUID != image_id:
        raise NotAnImageError(f"{image_id}: the DICOMweb server sent another image. Ask its administrator.")
