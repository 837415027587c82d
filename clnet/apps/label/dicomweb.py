"""A DICOMweb server as MONAI Label's datastore, image by image.

MONAI Label names an image of a DICOMweb server by its series and takes the series as a volume. A series of
mammograms may hold one view or all of both breasts, so that an image is named here by its SOPInstanceUID; a
SeriesInstanceUID will do where the series has but one CC or MLO. Pairs are found by the server's metadata
alone, and an image is fetched when it is needed. Labels stay in the folder of what was fetched.
"""

import re
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dicomweb_client.api import DICOMwebClient
from pydicom.dataset import Dataset

from clnet.apps.label.datastore import StudyFolder
from clnet.apps.label.refusals import NotThereError, RequestError
from clnet.data.header import ImageHeader, header_of_tags
from clnet.data.image_errors import ImageError, refusing_damage
from clnet.data.study import LeftOut, why_not_standard
from clnet.files import whole_file

UID = re.compile(r"[0-9]+(\.[0-9]+)*")
FILE = ".dcm"


@dataclass(frozen=True)
class Instance:
    """An image of the server: where it is there, and what its tags say."""

    study_uid: str
    series_uid: str
    header: ImageHeader | LeftOut


class StudyServer(StudyFolder):
    """The mammograms of a DICOMweb server.

    Args:
        client: of the server.
        folder: for the images that were fetched, and the labels.
        search_filter: of the series, such as ``{"Modality": "MG"}``.
    """

    look_again_after = 30.0

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
        """The SOPInstanceUID that is meant."""
        if image_id in self._series:
            views = [
                uid
                for uid, instance in self._series[image_id][1].items()
                if isinstance(instance.header, ImageHeader)
                and why_not_standard(instance.header, True) is None
            ]
            if len(views) != 1:
                raise RequestError(
                    f"series {image_id} holds {len(views)} CC and MLO images; an image is named by its "
                    f"SOPInstanceUID, here: {', '.join(views) or 'none'}"
                )
            image_id = views[0]
        if image_id not in self.instances:  # a label may outlive its image
            raise NotThereError(f"there is no image {str(image_id)[:80]!r} on the DICOMweb server")
        return super().known(image_id)

    def file_of(self, image_id: str) -> Path:
        """Where an image is, fetched if it was not."""
        image_id = self.known(image_id)
        file = self.folder / f"{image_id}{FILE}"
        with self._fetching:
            if not file.is_file():
                instance = self.instances[image_id]
                dataset = self.client.retrieve_instance(
                    instance.study_uid,
                    instance.series_uid,
                    image_id,
                    media_types=(("application/dicom", "*"),),
                )
                with whole_file(file) as unfinished:
                    dataset.save_as(unfinished, enforce_file_format=True)
        return file

    def look(self) -> tuple[list[ImageHeader], list[LeftOut]]:
        """What the tags of all images say."""
        self.refresh()
        found = [instance.header for instance in self.instances.values()]
        return (
            [item for item in found if isinstance(item, ImageHeader)],
            [item for item in found if isinstance(item, LeftOut)],
        )

    def get_image_info(self, image_id: str) -> dict[str, Any]:
        """What is known of an image, and where viewers find it."""
        image_id = self.known(image_id)
        instance = self.instances[image_id]
        uids = {"StudyInstanceUID": instance.study_uid, "SeriesInstanceUID": instance.series_uid}
        return {**self._datastore.objects[image_id].image.info, **uids, "SOPInstanceUID": image_id}

    def image_id(self, file: Path) -> str:
        """The id of an image."""
        return file.name.removesuffix(FILE)

    def add_image(self, image_id: str, image_filename: str, image_info: dict[str, Any]) -> str:
        """Refused: images come to the server in other ways."""
        raise RequestError("images are added to the DICOMweb server, not here")

    def remove_image(self, image_id: str) -> None:
        """Refused, as adding is."""
        raise RequestError("images are removed from the DICOMweb server, not here")

    def spacing_of(self, image_id: str) -> tuple[float, float] | None:
        """Millimetres between rows and between columns of an image, where its tags say so."""
        header = self.instances[self.known(image_id)].header
        return header.spacing_mm if isinstance(header, ImageHeader) else None

    # ------------------------------------------------------------------------------------------------ inside

    def _image_files(self) -> Iterator[Path]:
        """Ask the server for its series, and for the tags of those that are new or have grown."""
        series = self.client.search_for_series(search_filters=self.search_filter, get_remaining=True)
        there: dict[str, tuple[str, dict[str, Instance]]] = {}
        for answer in map(Dataset.from_json, series):
            uid, study = str(answer.SeriesInstanceUID), str(answer.StudyInstanceUID)
            size = str(answer.get("NumberOfSeriesRelatedInstances", ""))
            if uid in self._series and size and self._series[uid][0] == size:
                there[uid] = self._series[uid]
            else:
                metadata = self.client.retrieve_series_metadata(study, uid)
                there[uid] = size, dict(self._instances_of(metadata, study, uid))
        self._series = there
        yield from (self.folder / f"{uid}{FILE}" for uid in self.instances)

    def _instances_of(
        self, metadata: list[dict[str, Any]], study: str, series: str
    ) -> Iterator[tuple[str, Instance]]:
        for tags in map(Dataset.from_json, metadata):
            uid = str(tags.get("SOPInstanceUID", ""))
            if UID.fullmatch(uid):  # it becomes a file's name
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
        """Images are those of the server, fetched or not; labels are files here."""
        self._init_from_datastore_file()
        objects = self._datastore.objects
        there = self.instances or objects  # before the server was asked, nothing is known to be gone
        gone = [image for image in objects if image not in there and not objects[image].labels]
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
