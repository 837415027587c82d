"""The Label server on a DICOMweb server that sends what it should not: it refuses that, and goes on."""

import copy
import http.server
import json
import re
import struct
import threading
import zlib
from pathlib import Path

import numpy as np
import pydicom
import pytest
from label_client import Client
from label_server import NO_SCORING, start_server
from pydicom.uid import DeflatedExplicitVRLittleEndian

from clnet.phantom import PhantomSettings, make_phantom

BOMB = 700 * 2**20  # bytes of the inflated file


class Archive(http.server.ThreadingHTTPServer):
    """A DICOMweb server of some images.

    Args:
        images: its images.

    Attributes:
        answers: what is sent instead of an image, by its SOPInstanceUID; None breaks the connection.
        more: further JSON that it lists as series.
    """

    def __init__(self, images):
        super().__init__(("127.0.0.1", 0), Answers)
        self.images = {str(image.SOPInstanceUID): image for image in images}
        self.answers, self.more = {}, []
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def address(self):
        """Where it is."""
        return f"http://127.0.0.1:{self.server_port}/dicom-web"


class Answers(http.server.BaseHTTPRequestHandler):
    """Of an archive."""

    def do_GET(self):
        """Answer a request."""
        *_, kind, uid = self.path.partition("?")[0].split("/")
        images = self.server.images
        if uid == "series":
            keys = ("StudyInstanceUID", "SeriesInstanceUID", "Modality")
            self.say([only(image, keys) for image in images.values()] + self.server.more)
        elif uid == "metadata":
            self.say([without_pixels(image) for image in images.values() if kind == image.SeriesInstanceUID])
        else:
            data = self.server.answers.get(uid, file_of(images[uid]))
            head = b"--part\r\nContent-Type: application/dicom\r\n\r\n"
            self.send(b"" if data is None else head + data + b"\r\n--part--", data is None)

    def say(self, content):
        """Send JSON."""
        self.send(json.dumps(content).encode(), False, "application/dicom+json")

    def send(self, data, breaks, kind='multipart/related; type="application/dicom"; boundary=part'):
        """Send bytes, or fewer than it says."""
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data) + 1000 * breaks))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *words):
        """No log."""


def only(image, keys):
    tags = pydicom.Dataset()
    for key in keys:
        setattr(tags, key, image[key].value)
    return tags.to_json_dict()


def without_pixels(image):
    tags = image.to_json_dict()
    del tags["7FE00010"]
    return tags


def file_of(image):
    file = pydicom.filebase.DicomBytesIO()
    pydicom.dcmwrite(file, image, enforce_file_format=True)
    return file.getvalue()


def another(image):
    other = copy.deepcopy(image)
    other.SOPInstanceUID = other.file_meta.MediaStorageSOPInstanceUID = "2.25.1"
    return file_of(other)


def bomb_of(image):
    """The same image, deflated, with a private tag of zeros at its end."""
    meta = pydicom.filebase.DicomBytesIO()
    about = copy.deepcopy(image.file_meta)
    about.TransferSyntaxUID = DeflatedExplicitVRLittleEndian
    pydicom.filewriter.write_file_meta_info(meta, about)
    plain = pydicom.filebase.DicomBytesIO()
    plain.is_little_endian, plain.is_implicit_VR = True, False
    pydicom.filewriter.write_dataset(plain, image)
    deflater = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    pieces = [plain.getvalue(), struct.pack("<HH2sHI", 0x7FE1, 0x1001, b"OB", 0, BOMB)]
    pieces += [bytes(2**20)] * (BOMB // 2**20)
    return (
        b"\0" * 128 + b"DICM" + meta.getvalue() + b"".join(map(deflater.compress, pieces)) + deflater.flush()
    )


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    folder = tmp_path_factory.mktemp("archive")
    make_phantom(folder, PhantomSettings(2, rows=160, columns=112), workers=1)
    return Archive(pydicom.dcmread(file) for file in sorted((folder / "images").glob("*.dcm")))


@pytest.fixture(scope="module")
def server(archive, tmp_path_factory):
    folder = tmp_path_factory.mktemp("label")
    archive.more = [
        {},
        {"0020000D": {"vr": "UI", "Value": ["1.2"]}, "0020000E": {"vr": "UI", "Value": ["../../evil"]}},
        {"0020000D": {"vr": "UI", "Value": 7}, "0020000E": 9},
        {"nonsense": []},
    ]
    with start_server(archive.address, folder, **NO_SCORING) as address:
        yield Client(address), folder


def ask_pixels(client, archive, answer):
    """The response to a request for the pixels of an image that the archive sends so; then as it is."""
    pair = client.get("/clnet/pairs")["pairs"][0]
    archive.answers = {pair["cc"]: answer(archive.images[pair["cc"]])}
    try:
        return client.ask("GET", f"/clnet/pairs/{pair['pair_id']}/cc/pixels")
    finally:
        archive.answers = {}


def most_memory(app):
    """The most megabytes that the server of this app folder has held."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if str(app) in (folder / "cmdline").read_text().split("\0"):
                return int(re.search(r"VmHWM:\s+(\d+)", (folder / "status").read_text())[1]) // 1024
        except OSError:  # it has ended
            continue
    raise AssertionError(f"no server of {app} is running")


def test_a_series_that_makes_no_sense_does_not_hide_the_others(server, archive):
    client, _ = server
    listed = {pair[view] for pair in client.get("/clnet/pairs")["pairs"] for view in ("cc", "mlo")}
    assert listed == set(archive.images)


@pytest.mark.parametrize(
    ("answer", "status", "words"),
    [
        (lambda image: b"", 422, "not a DICOM file"),
        (lambda image: b"<html>", 422, "not a DICOM file"),
        (lambda image: file_of(image)[:-1000], 422, "truncated"),
        (another, 422, "sent another image"),
        (lambda image: None, 503, "does not answer"),
    ],
    ids=["nothing", "no DICOM", "cut", "another image", "broken off"],
)
def test_what_is_not_the_image_is_refused_and_asked_for_again(server, archive, answer, status, words):
    client, folder = server
    refused = ask_pixels(client, archive, answer)
    assert (refused.status_code, words in refused.json()["detail"]) == (status, True), refused.text
    assert list(folder.rglob("*.dcm")) == []


def test_a_deflated_bomb_is_refused_before_it_fills_the_memory(server, archive):
    client, folder = server
    before = most_memory(folder)
    refused = ask_pixels(client, archive, bomb_of)
    assert refused.status_code == 422
    assert "its deflated content is more than 512 MB" in refused.json()["detail"]
    assert most_memory(folder) < before + 200
    assert list(folder.rglob("*.dcm")) == []


def test_afterwards_the_image_is_shown(server, archive):
    client, _ = server
    pixels = ask_pixels(client, archive, file_of)
    assert np.frombuffer(pixels.content, "<u2").max() == 65535
