"""`clnet predict`: a folder goes in, results come out, whatever it holds and whenever the run is killed."""

import json
import multiprocessing
import os
import re
import signal
import sys
import time
from dataclasses import replace
from pathlib import Path

import dicom_files
import pydicom
import pytest
import warm_processes
from PIL import Image
from pycocotools.coco import COCO
from report_files import READERS, assert_same_lesions

from clnet.cli.main import main
from clnet.data.datalist import Datalist, read_datalist, write_datalist
from clnet.files import remove_unfinished_folders
from clnet.findings.lesions import merge_into_lesions
from clnet.findings.types import read_findings
from clnet.phantom import PhantomSettings, make_phantom
from clnet.predict.breast_folder import read_breast, write_breast
from clnet.predict.result_writer import WriterProcesses

ROOT = Path(__file__).parent.parent.parent
FILMS = ROOT / "tests" / "data" / "cbis-ddsm"
sys.path.insert(0, str(ROOT / "tests" / "data"))
from test_bad_input import REFUSED  # noqa: E402

NOTICE = "Phantom model, not for patients"
SECRETS = ("secret", "19990704", "19500102")
MIN_SCORE = 0.2


ALL = "measurements,presentation,picture,cad"


def predict(*words):
    options = ["--model", "phantom", "--workers", "0", "--min-score", str(MIN_SCORE)]
    return main(["predict", *options, *map(str, words)])


def files_below(folder):
    return {str(path.relative_to(folder)): path for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    """Three breasts of two patients; of the third, the MLO is missing. Files have names that say nothing."""
    made, folder = tmp_path_factory.mktemp("phantom"), tmp_path_factory.mktemp("archive")
    make_phantom(made, PhantomSettings(4, rows=160, columns=112), workers=1)
    for number, file in enumerate(sorted((made / "images").glob("*.dcm"))[:5]):
        dataset = pydicom.dcmread(file)
        dataset.PatientName, dataset.PatientID = "Secret^Name", "secret-id"
        dataset.StudyDate, dataset.PatientBirthDate = "19990704", "19500102"
        dataset.save_as(folder / f"{number}.dcm")
    return folder


@pytest.fixture(scope="module")
def run(archive, tmp_path_factory):
    """The archive among bad files, analysed once."""
    folder, output = tmp_path_factory.mktemp("input"), tmp_path_factory.mktemp("runs") / "output"
    for file in archive.iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    bad = {}
    study = dicom_files.STUDY
    for number, (kind, (make, _, words)) in enumerate(REFUSED.items()):
        if kind in ("no file", "a folder"):
            continue
        dicom_files.STUDY = f"{study}.{number}"  # each bad image is of a study of its own
        path = folder / f"bad_{number}.nii"
        make(path)
        bad[path.name] = words
    dicom_files.STUDY = study
    status = predict(folder, "--output", output, "--reports", ALL)
    return {"input": folder, "output": output, "bad": bad, "status": status}


def summary_of(run):
    return json.loads((run["output"] / "summary.json").read_text())


def test_good_breasts_are_analysed_among_bad_files_and_each_bad_one_is_named_with_its_reason(run):
    summary = summary_of(run)
    assert run["status"] == 1
    assert sorted(len(breast["views"]) for breast in summary["analysed"]) == [1, 2, 2]
    refused = {item["file"]: item["reason"] for item in summary["refused"]}
    left_out = {item["file"]: item["reason"] for item in summary["left_out"]}
    assert len(run["bad"]) >= 20
    assert refused.keys() | left_out.keys() == run["bad"].keys()
    assert len(refused) >= 20
    for name, reason in refused.items():
        assert re.search(run["bad"][name], reason), f"{name}: {reason}"
    assert all(left_out.values())


def test_a_breast_with_one_view_is_analysed_alone_and_marked_so(run):
    (alone,) = (breast for breast in summary_of(run)["analysed"] if breast["alone"])
    assert alone["linked"] == 0
    assert any("no standard MLO view" in warning for warning in alone["warnings"])


def test_no_identity_leaves_but_in_the_reports(run, capsys):
    predict(run["input"], "--output", run["output"], "--reports", ALL)
    told = capsys.readouterr()
    said = [told.out + told.err, *map(str, files_below(run["output"]))]
    read = [
        path.read_bytes().decode("latin-1")
        for name, path in files_below(run["output"]).items()
        if not name.endswith(".dcm")
    ]
    for secret in SECRETS:
        assert not any(secret in text.lower() for text in [*said, *read]), secret
    reports = [path for name, path in files_below(run["output"]).items() if name.endswith(".dcm")]
    assert len(reports) == 2 * 4  # two studies
    assert {str(pydicom.dcmread(path).PatientName) for path in reports} == {"Secret^Name"}


def test_reports_of_a_study_say_what_findings_say_of_its_breasts(run):
    findings = {pair.pair_id: pair for pair in read_findings(run["output"] / "findings.json")}
    uids = {}
    for file in run["input"].glob("?.dcm"):
        header = pydicom.dcmread(file, stop_before_pixels=True)
        uids.setdefault((header.StudyInstanceUID, header.ImageLaterality), {})[
            header.ViewPosition.lower()
        ] = header.SOPInstanceUID
    breasts = {breast["breast_id"]: breast for breast in summary_of(run)["analysed"]}
    compared = 0
    studies = summary_of(run)["studies"]
    assert [len(study["breasts"]) for study in studies] in ([1, 2], [2, 1])
    for study in studies:
        folder = run["output"] / "studies" / study["study_id"]
        assert sorted(study["reports"]) == sorted(file.name for file in folder.glob("*.dcm"))
        uid = pydicom.dcmread(folder / "measurements.dcm").StudyInstanceUID
        expected = [
            (
                merge_into_lesions(findings[breast_id], MIN_SCORE),
                findings[breast_id],
                uids[uid, breasts[breast_id]["laterality"]],
            )
            for breast_id in study["breasts"]
        ]
        assert [breasts[breast_id]["lesions"] for breast_id in study["breasts"]] == [
            len(lesions) for lesions, _, _ in expected
        ]
        for kind in READERS:
            assert_same_lesions(kind, folder, expected)
        compared += sum(len(lesions) for lesions, _, _ in expected)
    assert compared > 0


def test_coco_is_coco_and_holds_every_box_of_every_lesion(run):
    coco = COCO(run["output"] / "coco.json")
    boxes = 0
    for pair in read_findings(run["output"] / "findings.json"):
        for number, lesion in enumerate(merge_into_lesions(pair, MIN_SCORE), start=1):
            for view, detections in pair.views.items():
                seen = getattr(lesion, view)
                if seen is None:
                    continue
                (annotation,) = (
                    a
                    for a in coco.anns.values()
                    if (a["breast_id"], a["lesion_id"], a["view"]) == (pair.pair_id, number, view)
                )
                x, y, width, height = annotation["bbox"]
                assert [x, y, x + width, y + height] == pytest.approx(detections.boxes[seen.index].tolist())
                image = coco.imgs[annotation["image_id"]]
                assert (image["view"], image["height"], image["width"]) == (view, 160, 112)
                boxes += 1
    assert boxes == len(coco.anns) > 0


def test_the_notice_stands_in_summary_coco_and_reports(run):
    assert summary_of(run)["notice"] == NOTICE
    assert json.loads((run["output"] / "coco.json").read_text())["info"]["description"] == NOTICE
    for path in run["output"].rglob("*.dcm"):
        description = pydicom.dcmread(path).SeriesDescription
        assert re.fullmatch(rf"CL-Net \w+: (\d+|none) [LR](, (\d+|none) R)?\. {NOTICE}", description)


@pytest.fixture
def studies(archive, tmp_path):
    """A copy of the archive, a folder for results, and a function that says which of them it wrote."""
    folder, output = tmp_path / "in", tmp_path / "out"
    folder.mkdir()
    for file in archive.iterdir():
        (folder / file.name).write_bytes(file.read_bytes())

    def written(*words):
        before = {name: path.stat().st_mtime_ns for name, path in files_below(output).items()}
        assert predict(folder, "--output", output, *words) == 0
        after = {name: path.stat().st_mtime_ns for name, path in files_below(output).items()}
        return {name for name, moment in after.items() if "/" in name and before.get(name) != moment}

    return folder, output, written


def test_what_is_done_is_not_done_again(studies, capsys):
    _, output, written = studies
    assert len(written()) == 3 * 3 + 2 * 4
    assert "3 breasts analysed, 3 of them now" in capsys.readouterr().out
    before = {name: path.read_bytes() for name, path in files_below(output).items()}
    assert written() == set()
    assert "3 breasts analysed, 0 of them now" in capsys.readouterr().out
    assert {name: path.read_bytes() for name, path in files_below(output).items()} == before


def labels(study):
    return [label for lesion in READERS["measurements"](study) for label in lesion["labels"]]


def test_a_changed_breast_is_analysed_again_and_the_reports_of_its_study_are_renewed(studies, capsys):
    folder, output, written = studies
    written()
    before = {path.name: [label[:5] for label in labels(path)] for path in (output / "studies").iterdir()}
    os.utime(folder / "0.dcm", ns=(1, 1))
    capsys.readouterr()
    places = {name.rpartition("/")[0] for name in written()}
    assert "3 breasts analysed, 1 of them now" in capsys.readouterr().out
    (breast,) = (place for place in places if place.startswith("breasts/"))
    (study,) = (place for place in places if place.startswith("studies/"))
    renewed = pydicom.dcmread(output / study / "measurements.dcm")
    # The other breast is in it too. Scores may differ in their last digit: another batch rounds differently.
    assert [label[:5] for label in labels(output / study)] == before[study.removeprefix("studies/")]
    assert len(renewed.CurrentRequestedProcedureEvidenceSequence[0].ReferencedSeriesSequence) == 4
    assert (
        breast.removeprefix("breasts/") in json.loads((output / study / "study.json").read_text())["breasts"]
    )
    picture = pydicom.dcmread(output / study / "picture.dcm").pixel_array
    alone = Image.open(output / breast / "picture.png")
    assert picture.shape[1] > 2 * alone.width


def test_other_reports_are_written_without_another_analysis(studies, capsys):
    _, output, written = studies
    written("--reports", "measurements")
    assert {path.name for path in output.rglob("*.dcm")} == {"measurements.dcm"}
    capsys.readouterr()
    names = written("--reports", "cad,presentation")
    assert "3 breasts analysed, 0 of them now" in capsys.readouterr().out
    assert {name.rpartition("/")[2] for name in names} == {"study.json", "cad.dcm", "presentation.dcm"}
    assert {path.name for path in output.rglob("*.dcm")} == {"cad.dcm", "presentation.dcm"}
    assert len(written("--reports", "")) == 2  # a study.json each
    assert list(output.rglob("*.dcm")) == []


def test_reports_for_sharing_name_nobody(studies):
    _, output, written = studies
    written("--deidentify", "--reports", ALL)
    reports = list(output.rglob("*.dcm"))
    assert len(reports) == 8
    for path in reports:
        assert not any(secret.encode() in path.read_bytes().lower() for secret in SECRETS)
        assert pydicom.dcmread(path).PatientIdentityRemoved == "YES"


def test_a_view_that_is_damaged_leaves_the_other_to_be_analysed(archive, tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    for name in ("0.dcm", "1.dcm"):
        (folder / name).write_bytes((archive / name).read_bytes())
    (folder / "0.dcm").write_bytes((archive / "0.dcm").read_bytes()[:-5000])
    for _ in range(2):  # the second time from what was written
        assert predict(folder, "--output", tmp_path / "out") == 1
        summary = json.loads((tmp_path / "out" / "summary.json").read_text())
        assert [breast["alone"] for breast in summary["analysed"]] == [True]
        assert [item["file"] for item in summary["refused"]] == ["0.dcm"]


def test_films_of_a_datalist_keep_their_pair_ids_and_their_four_studies_are_one_report(tmp_path, capsys):
    assert predict(FILMS, "--output", tmp_path) == 0
    pairs = read_findings(tmp_path / "findings.json")
    assert [pair.pair_id for pair in pairs] == ["P_00173_LEFT", "P_00173_RIGHT"]
    summary = json.loads((tmp_path / "summary.json").read_text())
    (study,) = summary["studies"]
    assert study["breasts"] == [breast["breast_id"] for breast in summary["analysed"]]
    said = "the images are of 4 studies; the reports belong to that of L CC"
    assert study["warnings"] == [said] and said in capsys.readouterr().out
    states = [f"presentation{number}.dcm" for number in ("", "_2", "_3", "_4")]
    assert study["reports"] == ["measurements.dcm", *states, "picture.dcm"]
    first = pydicom.dcmread(FILMS / "left_cc.dcm", stop_before_pixels=True)
    measured = pydicom.dcmread(tmp_path / "studies" / study["study_id"] / "measurements.dcm")
    assert measured.StudyInstanceUID == first.StudyInstanceUID


def test_films_without_a_datalist_are_paired_by_their_names(tmp_path):
    (tmp_path / "in").mkdir()
    for film in FILMS.glob("*.dcm"):
        (tmp_path / "in" / film.name).write_bytes(film.read_bytes())
    assert predict(tmp_path / "in", "--output", tmp_path / "out", "--secondary-capture") == 0
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert [(breast["laterality"], breast["views"]) for breast in summary["analysed"]] == [
        ("L", ["cc", "mlo"]),
        ("R", ["cc", "mlo"]),
    ]
    assert (summary["refused"], summary["left_out"]) == ([], [])
    assert [len(study["breasts"]) for study in summary["studies"]] == [2]


def test_a_run_that_finds_nothing_to_analyse_says_so_and_fails(tmp_path, capsys):
    assert predict(FILMS / "left_cc.dcm", "--output", tmp_path) == 1
    printed = capsys.readouterr().out
    assert "NOTHING WAS ANALYSED" in printed and "(--secondary-capture accepts these)" in printed
    assert json.loads((tmp_path / "summary.json").read_text())["analysed"] == []


def test_a_pixel_size_in_the_datalist_counts_and_a_changed_one_is_analysed_anew(tmp_path, capsys):
    film, found = read_datalist(FILMS)["test"][0], []
    for mlo_size, now in (((1, 1), 1), ((1, 1), 0), ((2, 2), 1)):
        views = {"cc": replace(film.cc, pixel_size=(1, 1)), "mlo": replace(film.mlo, pixel_size=mlo_size)}
        write_datalist(Datalist("film", {"test": (replace(film, **views),)}), tmp_path / "datalist.json")
        assert predict(tmp_path / "datalist.json", "--output", tmp_path / "out") == 0
        assert f"1 breast analysed, {now} of them now" in capsys.readouterr().out
        found.append((tmp_path / "out" / "findings.json").read_bytes())
    assert found[0] == found[1] != found[2]


def test_an_image_that_may_show_a_name_is_not_drawn(archive, tmp_path):
    dataset = pydicom.dcmread(archive / "4.dcm")
    dataset.BurnedInAnnotation = "YES"
    (tmp_path / "in").mkdir()
    dataset.save_as(tmp_path / "in" / "a.dcm")
    assert predict(tmp_path / "in", "--output", tmp_path / "out") == 0
    assert list((tmp_path / "out").rglob("*.png")) == []
    assert sorted(path.name for path in tmp_path.rglob("*.dcm") if path.parent.name != "in") == [
        "measurements.dcm",
        "presentation.dcm",
    ]


def test_a_breast_that_is_killed_while_written_is_as_if_never_begun(run, tmp_path):
    breast_id = summary_of(run)["analysed"][0]["breast_id"]
    record = json.loads((run["output"] / "breasts" / breast_id / "breast.json").read_text())
    result = read_breast(run["output"], breast_id, record["key"])

    class Killed:
        def save(self, path, **_):
            path.write_bytes(b"half a fi")
            raise SystemExit

    with pytest.raises(SystemExit):
        write_breast(tmp_path, result, "model", Killed())
    assert read_breast(tmp_path, breast_id, record["key"]) is None
    remove_unfinished_folders(tmp_path / "breasts")
    assert files_below(tmp_path) == {}
    write_breast(tmp_path, result, "model", None)
    assert read_breast(tmp_path, breast_id, record["key"]) == result


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nowhere", "--output", "out", "--model", "phantom"], "nowhere: no such file or folder"),
        ([FILMS, "--output", FILMS / "out"], "lies in"),
        (
            [FILMS, "--output", "out", "--model", "nowhere"],
            "nowhere: neither a bundle (configs/inference.yaml is missing) nor a training run",
        ),
        ([FILMS, "--output", "out", "--device", "abacus"], "device is abacus"),
        ([FILMS, "--output", "out", "--batch-size", "0"], "batch_size is 0; at least 1 is expected"),
        ([FILMS, "--output", "out", "--min-score", "30"], "min_score is 30.0; expected a number from 0 to 1"),
        ([FILMS, "--output", "out", "--min-score", "nan"], "min_score is nan; expected a number from 0 to 1"),
        (
            [FILMS, "--output", "out", "--reports", "measurements,fax"],
            "reports has 'fax'; expected some of measurements, presentation, picture, cad",
        ),
    ],
)
def test_wrong_usage_is_told_in_one_line_with_status_2(tmp_path, monkeypatch, capsys, words, message):
    monkeypatch.chdir(tmp_path)
    assert main(["predict", *map(str, words)]) == 2
    said = capsys.readouterr().err
    assert message in said and said.count("\n") == 1


def command(*words):
    return ["-m", "clnet.cli", "predict", *words, "--model", "phantom", "--min-score", MIN_SCORE]


@pytest.mark.slow
def test_a_run_that_is_killed_goes_on_and_loses_nothing_and_does_nothing_twice(archive, tmp_path):
    output = tmp_path / "out"
    words = (archive, "--output", output, "--batch-size", 1, "--workers", 1)
    process = warm_processes.start(command(*words), tmp_path)
    deadline = time.monotonic() + 500
    while not list(output.glob("breasts/[!.]*")) and time.monotonic() < deadline:
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGKILL)
    process.join()
    done = {name: path.stat().st_mtime_ns for name, path in files_below(output).items() if "/." not in name}
    assert done and not (output / "summary.json").exists()
    assert predict(archive, "--output", output) == 0
    after = files_below(output)
    assert all(after[name].stat().st_mtime_ns == moment for name, moment in done.items())
    assert len(read_findings(output / "findings.json")) == 3
    reports = [pydicom.dcmread(path).SOPInstanceUID for path in output.rglob("*.dcm")]
    assert len(set(reports)) == len(reports) == 2 * 3
    assert not any("unfinished" in name for name in after)


def test_writer_processes_write_what_this_process_writes(archive, tmp_path):
    written = []
    for workers in (0, 2):
        output = tmp_path / str(workers)
        assert predict(archive, "--output", output, "--workers", workers) == 0
        files = files_below(output)
        contents = {name: path.read_bytes() for name, path in files.items() if not name.endswith(".dcm")}
        uids = {name: dicom_uids(path) for name, path in files.items() if name.endswith(".dcm")}
        assert len(uids) == 2 * 3
        for name in (name for name in contents if name.endswith("study.json")):
            record = json.loads(contents[name])
            del record["files"], record["record"]  # digests of reports, which hold the time
            contents[name] = record
        written.append((contents, uids))
    assert written[0] == written[1]


def dicom_uids(path):
    return [element.value for element in pydicom.dcmread(path).iterall() if element.VR == "UI"]


def test_a_writer_ends_when_the_process_that_started_it_was_killed():
    receiver, sender = multiprocessing.Pipe()

    def start_and_die():
        writers = WriterProcesses(None, 1)
        sender.send(writers._pools[0].submit(os.getpid).result())
        os.kill(os.getpid(), signal.SIGKILL)

    multiprocessing.get_context("fork").Process(target=start_and_die).start()
    writer = receiver.recv()
    deadline = time.monotonic() + 60
    while is_running(writer) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not is_running(writer)


def is_running(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.slow
def test_two_processes_find_what_one_finds(archive, run, tmp_path):
    words = command(archive, "--output", tmp_path, "--workers", 0)
    done = warm_processes.run(words, tmp_path, processes=2)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.count("breasts analysed") == 1
    alone = {pair.pair_id: pair for pair in read_findings(run["output"] / "findings.json")}
    for pair in read_findings(tmp_path / "findings.json"):
        assert [(link.cc, link.mlo) for link in pair.links if link.score > 0.5] == [
            (link.cc, link.mlo) for link in alone[pair.pair_id].links if link.score > 0.5
        ]
        for view, detections in pair.views.items():
            expected = alone[pair.pair_id].views[view]
            assert detections.boxes == pytest.approx(expected.boxes, abs=0.05)
            assert detections.scores == pytest.approx(expected.scores, abs=1e-4)
    assert len(alone) == 3
