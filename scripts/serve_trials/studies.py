"""Studies of the phantom, and dcmtk's `storescu` that sends them."""

import io
import queue
import subprocess
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import pydicom
from pydicom.uid import UID
from serve_trials.outcome import Trial

from clnet.phantom import PhantomSettings, make_phantom

DAMAGED, HALF = 10, 10  # every so many studies
PATIENT, UID_ROOT = "secret-patient-", "2.25."


def make_studies(folder: Path, number: int, size: Sequence[int], trial: Trial) -> list[list[Path]]:
    """Write studies of images of (rows, columns); returns the files of each that are sent."""
    made = folder / "phantom"
    make_phantom(made, PhantomSettings(2, rows=size[0], columns=size[1]), workers=1)
    images = [pydicom.dcmread(file) for file in sorted((made / "images").glob("*.dcm"))]
    studies = []
    for n in range(number):
        files, whole = [], set()
        sent = images[:2] if n % HALF == 1 else images
        for i, image in enumerate(sent):
            copy = pydicom.dcmread(io.BytesIO(_bytes_of(image)))
            copy.StudyInstanceUID, copy.SeriesInstanceUID = f"{UID_ROOT}1{n:05}", f"{UID_ROOT}2{n:05}{i}"
            copy.SOPInstanceUID = copy.file_meta.MediaStorageSOPInstanceUID = UID(f"{UID_ROOT}3{n:05}{i}")
            copy.PatientID = f"{PATIENT}{n}"
            if n % DAMAGED == 0 and i == 0:
                copy.PixelData = copy.PixelData[:100]
            else:
                whole.add(copy.SOPInstanceUID)
            file = folder / "sent" / f"{n:05}" / f"{i}.dcm"
            file.parent.mkdir(parents=True, exist_ok=True)
            copy.save_as(file, enforce_file_format=True)
            files.append(file)
        trial.whole[f"{UID_ROOT}1{n:05}"] = whole
        studies.append(files)
    return studies


def _bytes_of(image: pydicom.Dataset) -> bytes:
    file = io.BytesIO()
    image.save_as(file, enforce_file_format=True)
    return file.getvalue()


def send_all(
    studies: list[list[Path]], port: int, associations: int, per_minute: float = 0
) -> list[threading.Thread]:
    """Send studies by several senders at once; each study until all of it has been accepted.

    Args:
        studies: the files of each.
        port: of the node.
        associations: the number of senders.
        per_minute: how many studies begin to be sent in a minute; 0 for as many as it takes.
    """
    waiting: queue.SimpleQueue[tuple[float, list[Path]]] = queue.SimpleQueue()
    began, pause = time.monotonic(), 60 / per_minute if per_minute else 0
    for number, files in enumerate(studies):
        waiting.put((began + number * pause, files))

    def send() -> None:
        while True:
            try:
                begins, files = waiting.get_nowait()
            except queue.Empty:
                return
            time.sleep(max(0, begins - time.monotonic()))
            command = ["storescu", "-aec", "CLNET", "127.0.0.1", str(port), *map(str, files)]
            while subprocess.run(command, capture_output=True, check=False).returncode:
                time.sleep(0.5)

    threads = [threading.Thread(target=send, daemon=True) for _ in range(associations)]
    for thread in threads:
        thread.start()
    return threads
