"""A real archive takes the reports and shows them beside their images."""

import json
import socket
import subprocess
import time
import urllib.request
from pathlib import Path

import pytest
from report_files import needs
from report_studies import FOUND, images, study_of  # noqa: F401

from clnet.reports.dicom import DICOM_REPORTS, write_reports


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


@pytest.fixture
def orthanc(tmp_path):
    """An Orthanc of our own: loopback only, storage in the test's folder. Gives a function that asks it."""
    port = free_port()
    settings = {
        "StorageDirectory": str(tmp_path / "storage"),
        "IndexDirectory": str(tmp_path / "storage"),
        "HttpPort": port,
        "DicomServerEnabled": False,
        "RemoteAccessAllowed": False,
        "AuthenticationEnabled": False,
        "Plugins": [],
    }
    (tmp_path / "orthanc.json").write_text(json.dumps(settings))
    with (tmp_path / "orthanc.log").open("w") as log:
        process = subprocess.Popen(["Orthanc", tmp_path / "orthanc.json"], stdout=log, stderr=log)

    def ask(path, data=None):
        request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", data)
        with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310
            return json.load(answer)

    try:
        for _ in range(600):
            try:
                ask("/system")
                break
            except OSError:
                assert process.poll() is None, (tmp_path / "orthanc.log").read_text()
                time.sleep(0.1)
        yield ask
    finally:
        process.terminate()
        process.wait()


@needs("Orthanc", "orthanc")
def test_reports_load_into_the_study_of_their_images(orthanc, images, tmp_path):  # noqa: F811
    reports = tmp_path / "reports"
    reports.mkdir()
    write_reports(study_of(FOUND["linked and nothing"], images["phantom"]), list(DICOM_REPORTS), reports)
    files = [*images["phantom"].values(), *reports.iterdir()]
    assert [orthanc("/instances", Path(file).read_bytes())["Status"] for file in files] == ["Success"] * 8
    (study,) = orthanc("/studies")
    series = [orthanc(f"/series/{name}") for name in orthanc(f"/studies/{study}")["Series"]]
    kinds = sorted(one["MainDicomTags"]["Modality"] for one in series)
    assert kinds == ["MG", "MG", "MG", "MG", "OT", "PR", "SR", "SR"]
    classes = {
        orthanc(f"/instances/{one['Instances'][0]}/simplified-tags")["SOPClassUID"]
        for one in series
        if one["MainDicomTags"]["Modality"] == "SR"
    }
    assert classes == {"1.2.840.10008.5.1.4.1.1.88.33", "1.2.840.10008.5.1.4.1.1.88.50"}
