"""A real archive takes the reports and shows them beside their images."""

from functools import partial
from pathlib import Path

from report_files import needs
from report_studies import FOUND, images, study_of  # noqa: F401
from servers import ask_orthanc, start_orthanc

from clnet.reports.dicom import DICOM_REPORTS, write_reports


@needs("Orthanc", "orthanc")
def test_reports_load_into_the_study_of_their_images(images, tmp_path):  # noqa: F811
    reports = tmp_path / "reports"
    reports.mkdir()
    write_reports(study_of(FOUND["linked and nothing"], images["phantom"]), list(DICOM_REPORTS), reports)
    files = [*images["phantom"].values(), *reports.iterdir()]
    with start_orthanc(tmp_path) as address:
        orthanc = partial(ask_orthanc, address)
        stored = [orthanc("/instances", Path(file).read_bytes())["Status"] for file in files]
        assert stored == ["Success"] * 8
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
