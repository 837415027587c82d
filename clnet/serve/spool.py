"""Images and results on disk, under names that say nothing about whose they are.

::

    incoming/<study_id>/<image_id>.dcm    what has been accepted
    results/<study_id>/<images>/          what `clnet predict` writes about so many images
    trash/<study_id>-<images>/            images of a study that is being removed

An image is on disk, and the queue knows it, before its sender is told so.
"""

import hashlib
import io
import math
import shutil
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pydicom
from pydicom.uid import UID

from clnet.data.deflated import read_tags_of
from clnet.data.header import FOR_PROCESSING, SECONDARY_CAPTURE
from clnet.errors import ClnetError
from clnet.files import UNFINISHED, WriteError, sync, system_words, whole_file
from clnet.reports.maker import ALGORITHM, MANUFACTURER
from clnet.serve.ledger import Ledger, Study

# Status codes of C-STORE (PS3.4, B.2.3) and, for an image that differs from one of its name, of PS3.7, C.5.
OUT_OF_RESOURCES, MISMATCH, NOT_UNDERSTOOD = 0xA700, 0xA900, 0xC000
NOT_SUPPORTED, DUPLICATE = 0x0122, 0x0111
MAMMOGRAM = "1.2.840.10008.5.1.4.1.1.1.2"
MAMMOGRAMS = (MAMMOGRAM, FOR_PROCESSING)
SECONDARY_CAPTURES = (SECONDARY_CAPTURE, *(f"{SECONDARY_CAPTURE}.{number}" for number in "1234"))
GIGABYTE, MEGABYTE = 10**9, 10**6
_KEYWORDS = [
    *("SOPClassUID", "SOPInstanceUID", "StudyInstanceUID", "SeriesInstanceUID"),
    *("PatientID", "Modality", "Manufacturer", "ManufacturerModelName"),
]


class RefusedError(ClnetError):
    """An object that is not accepted.

    Attributes:
        status: of C-STORE.
    """

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


@dataclass(frozen=True)
class Accepted:
    """An image that was accepted.

    Attributes:
        study_id: of its study.
        image_id: a digest of its SOPInstanceUID.
        is_new: False if it had been accepted before.
        identity: study, image and patient, for the audit log alone.
    """

    study_id: str
    image_id: str
    is_new: bool
    identity: dict[str, str]


def study_id_of(study_uid: str) -> str:
    """How logs, metrics and folders name a study: 16 hexadecimal digits."""
    return hashlib.sha256(f"clnet serve study {study_uid}".encode()).hexdigest()[:16]


def image_id_of(instance_uid: str) -> str:
    """How files name an image: 32 hexadecimal digits."""
    return hashlib.sha256(f"clnet serve image {instance_uid}".encode()).hexdigest()[:32]


class Spool:
    """Accepts images, and removes studies.

    Args:
        folder: of the node.
        ledger: its queue.
        most_bytes: of an object.
        free_bytes: that must be left on the disk.
        secondary_capture: whether mammograms may come as Secondary Capture.

    Attributes:
        classes: the SOP classes of what is accepted.
    """

    def __init__(
        self,
        folder: Path,
        ledger: Ledger,
        most_bytes: float,
        free_bytes: float,
        secondary_capture: bool = False,
    ) -> None:
        self.classes = MAMMOGRAMS + (SECONDARY_CAPTURES if secondary_capture else ())
        self.ledger = ledger
        self.most_bytes, self.free_bytes = most_bytes, free_bytes
        self.root = folder
        self._incoming, self._results, self._trash = (
            folder / name for name in ("incoming", "results", "trash")
        )
        for place in (self._incoming, self._results, self._trash):
            place.mkdir(parents=True, exist_ok=True, mode=0o700)

    def images_of(self, study_id: str) -> Path:
        """The folder of a study's images."""
        return self._incoming / study_id

    def results_of(self, study_id: str, images: int) -> Path:
        """The folder of the results about so many images of a study."""
        return self._results / study_id / str(images)

    def free(self) -> int:
        """Bytes that are free on the disk."""
        return shutil.disk_usage(self.root).free

    def check_space(self, size: int = 0) -> None:
        """Refuse what would leave too little free on the disk."""
        if self.free() - size < self.free_bytes:
            raise RefusedError(OUT_OF_RESOURCES, "the disk is full")

    def accept(
        self, data: bytes, sender: str, priority: int = 0, expected: tuple[str, str] | None = None
    ) -> Accepted:
        """Take an image; when this returns, it is on disk and in the queue.

        Args:
            data: a DICOM file.
            sender: who it comes from.
            priority: of its study.
            expected: SOPClassUID and SOPInstanceUID that were announced.
        """
        if len(data) > self.most_bytes:
            raise RefusedError(OUT_OF_RESOURCES, f"larger than {self.most_bytes / MEGABYTE:g} MB")
        tags = _identify(data)
        named = (str(tags.SOPClassUID), str(tags.SOPInstanceUID))
        if expected is not None and named != expected:
            raise RefusedError(MISMATCH, "the object is not the one that was announced")
        if named[0] not in self.classes:
            raise RefusedError(NOT_SUPPORTED, f"{UID(named[0]).name} is not accepted")
        if (tags.get("Manufacturer"), tags.get("ManufacturerModelName")) == (MANUFACTURER, ALGORITHM):
            raise RefusedError(NOT_SUPPORTED, "a report of clnet, which came back")
        study_id, image_id = study_id_of(tags.StudyInstanceUID), image_id_of(tags.SOPInstanceUID)
        file = self.images_of(study_id) / f"{image_id}.dcm"
        self.check_space(len(data))
        is_new = False
        while True:
            try:
                self._place(file, data)
            except (OSError, WriteError) as error:
                raise RefusedError(
                    OUT_OF_RESOURCES, f"the disk refuses it ({system_words(error)})"
                ) from error
            modality = str(tags.get("Modality") or "")[:16]
            is_new |= self.ledger.received(study_id, image_id, sender, modality, priority, time.time())
            if file.exists():  # unless its study was removed in between, see `remove`
                break
        identity = {keyword: str(tags.get(keyword) or "") for keyword in _KEYWORDS[:5]}
        return Accepted(study_id, image_id, is_new, identity)

    def has(self, study_uid: str, instance_uid: str) -> bool:
        """Whether an image was accepted before."""
        return self.ledger.has_image(study_id_of(study_uid), image_id_of(instance_uid))

    def remove(self, study: Study) -> bool:
        """Remove a finished study; returns False if an image has come since it was looked at.

        Its images are put aside first, then the queue forgets it. If an image came before that, the queue
        refuses, and they are put back; if its file was put aside, `accept` sees that, and writes it again.
        """
        aside = self._trash / f"{study.study_id}-{study.images}"
        with suppress(FileNotFoundError):  # another node removes this study too
            self.images_of(study.study_id).rename(aside)
        if not self.ledger.forget(study.study_id, study.images):
            if self.ledger.study(study.study_id) is not None:
                self._put_back(aside)
            else:  # another node was faster; what it did not see, nobody else will
                shutil.rmtree(aside, ignore_errors=True)
            return False
        shutil.rmtree(self._results / study.study_id, ignore_errors=True)
        shutil.rmtree(aside, ignore_errors=True)
        return True

    def clean(self, age: float) -> None:
        """Finish what killed processes have begun: removals, and files that were never accepted.

        Args:
            age: seconds for which nobody has touched it; 0 if no other process uses the folder.
        """
        before = time.time() - age
        for aside in self._trash.iterdir():
            if _changed(aside) <= before:
                study_id = aside.name.partition("-")[0]
                if self.ledger.study(study_id) is not None:
                    self._put_back(aside)
                else:
                    shutil.rmtree(aside, ignore_errors=True)
        for file in self._incoming.glob(f"*/*{UNFINISHED}"):
            if _changed(file) <= before:
                file.unlink(missing_ok=True)

    def _place(self, file: Path, data: bytes) -> None:
        """Put a file in its place and on disk; one that is there already must be the same image."""
        try:
            there = file.read_bytes()
        except FileNotFoundError:
            there = None
        if there is not None and there != data and not _same_image(there, data):
            raise RefusedError(DUPLICATE, "another object of this SOPInstanceUID was accepted before")
        if there is None:
            new_study = not file.parent.exists()
            with whole_file(file) as unfinished:
                unfinished.write_bytes(data)
            if new_study:
                sync(self._incoming)
        else:
            sync(file.parent)  # whoever wrote it may have been killed before this

    def _put_back(self, aside: Path) -> None:
        if aside.exists():
            home = self.images_of(aside.name.partition("-")[0])
            home.mkdir(exist_ok=True)
            for file in aside.iterdir():
                file.replace(home / file.name)
            sync(home)
            aside.rmdir()


def _changed(path: Path) -> float:
    """When a file or folder was changed last, in seconds since 1970; infinity if it is gone by now."""
    try:
        return path.stat().st_ctime
    except FileNotFoundError:
        return math.inf


def _identify(data: bytes) -> pydicom.Dataset:
    """The tags by which an object is named; refused without them."""
    try:
        tags = read_tags_of(
            io.BytesIO(data), Path("object"), stop_before_pixels=True, specific_tags=_KEYWORDS
        )
        missing = [keyword for keyword in _KEYWORDS[:4] if not tags.get(keyword)]
        invalid = [keyword for keyword in _KEYWORDS[:3] if not UID(str(tags.get(keyword))).is_valid]
    except Exception as error:  # whatever pydicom says about damage; it may quote the patient
        raise RefusedError(NOT_UNDERSTOOD, f"not a readable DICOM object ({type(error).__name__})") from None
    if missing or invalid:
        raise RefusedError(NOT_UNDERSTOOD, f"{(missing or invalid)[0]} is missing or not valid")
    return tags


def _same_image(first: bytes, second: bytes) -> bool:
    """Whether two files hold the same image, sent in another uncompressed transfer syntax perhaps."""
    try:
        return pydicom.dcmread(io.BytesIO(first)) == pydicom.dcmread(io.BytesIO(second))
    except Exception:  # damaged
        return False
