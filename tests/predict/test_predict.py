"""`clnet predict`: a folder goes in, results come out, whatever it holds and whenever the run is killed."""

import json
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
from pycocotools.coco import COCO
from report_files import assert_same_lesions, lesions_of_cad, lesions_of_measurements

from clnet.cli.main import main
from clnet.data.datalist import Datalist, read_datalist, write_datalist
from clnet.findings.lesions import merge_into_lesions
from clnet.findings.types import read_findings
from clnet.phantom import PhantomSettings, make_phantom
from clnet.predict.breast_folder import read_breast, remove_unfinished, write_breast

ROOT = Path(__file__).parent.parent.parent
FILMS = ROOT / "tests" / "data" / "cbis-ddsm"
sys.path.insert(0, str(ROOT / "tests" / "data"))
from test_bad_input import REFUSED  # noqa: E402

NOTICE = "Research model trained on scanned films, not for patients"
SECRETS = ("secret", "19990704", "19500102")
MIN_SCORE = 0.2


def predict(*words):
    return main(["predict", *map(str, words), "--workers", "0", "--min-score", str(MIN_SCORE)])


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
    status = predict(folder, "--output", output)
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
    predict(run["input"], "--output", run["output"])
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
    assert len(reports) == 6
    assert {str(pydicom.dcmread(path).PatientName) for path in reports} == {"Secret^Name"}


def test_reports_say_what_findings_say(run):
    findings = {pair.pair_id: pair for pair in read_findings(run["output"] / "findings.json")}
    uids = {}
    for file in run["input"].glob("?.dcm"):
        header = pydicom.dcmread(file, stop_before_pixels=True)
        uids.setdefault((header.StudyInstanceUID, header.ImageLaterality), {})[
            header.ViewPosition.lower()
        ] = header.SOPInstanceUID
    compared = 0
    for pair_id, pair in findings.items():
        folder = run["output"] / "breasts" / pair_id
        report = pydicom.dcmread(folder / "mammography_cad.dcm")
        (record,) = (b for b in summary_of(run)["analysed"] if b["breast_id"] == pair_id)
        of_breast = uids[report.StudyInstanceUID, record["laterality"]]
        lesions = merge_into_lesions(pair, MIN_SCORE)
        assert record["lesions"] == len(lesions)
        read = lesions_of_measurements(folder / "measurements.dcm")
        assert_same_lesions(read, lesions, pair, of_breast)
        read = lesions_of_cad(folder / "mammography_cad.dcm")
        assert_same_lesions(read, lesions, pair, of_breast, only_linked=True)
        compared += len(lesions)
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
        assert pydicom.dcmread(path).SeriesDescription == NOTICE


def test_what_is_done_is_not_done_again_and_a_changed_file_is(archive, tmp_path, capsys):
    folder, output = tmp_path / "in", tmp_path / "out"
    folder.mkdir()
    for file in archive.iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    assert predict(folder, "--output", output) == 0
    assert "3 breasts analysed, 3 of them now" in capsys.readouterr().out
    before = {
        name: (path.stat().st_mtime_ns, path.read_bytes()) for name, path in files_below(output).items()
    }
    assert predict(folder, "--output", output) == 0
    assert "3 breasts analysed, 0 of them now" in capsys.readouterr().out
    for name, path in files_below(output).items():
        time_and_bytes = path.stat().st_mtime_ns, path.read_bytes()
        assert time_and_bytes[1] == before[name][1], name
        assert time_and_bytes[0] == before[name][0] or "/" not in name, name
    os.utime(folder / "0.dcm", ns=(1, 1))
    assert predict(folder, "--output", output) == 0
    assert "3 breasts analysed, 1 of them now" in capsys.readouterr().out


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


def test_films_of_a_datalist_keep_their_pair_ids_and_the_two_studies_are_said(tmp_path):
    assert predict(FILMS, "--output", tmp_path) == 0
    pairs = read_findings(tmp_path / "findings.json")
    assert [pair.pair_id for pair in pairs] == ["P_00173_LEFT", "P_00173_RIGHT"]
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert all("two studies" in " ".join(breast["warnings"]) for breast in summary["analysed"])
    assert len(list(tmp_path.rglob("*.dcm"))) == 4


def test_films_without_a_datalist_are_paired_by_their_names(tmp_path, capsys):
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
    capsys.readouterr()
    assert predict(tmp_path / "in", "--output", tmp_path / "none") == 0
    assert capsys.readouterr().out.count("(--secondary-capture accepts these)") == 4


def test_a_pixel_size_in_the_datalist_counts_and_a_changed_one_is_analysed_anew(tmp_path, capsys):
    film, found = read_datalist(FILMS)["test"][0], []
    for mlo_size, now in (((1, 1), 1), ((1, 1), 0), ((2, 2), 1)):
        views = {"cc": replace(film.cc, pixel_size=(1, 1)), "mlo": replace(film.mlo, pixel_size=mlo_size)}
        write_datalist(Datalist("film", {"test": (replace(film, **views),)}), tmp_path / "datalist.json")
        assert predict(tmp_path / "datalist.json", "--output", tmp_path / "out") == 0
        assert f"1 breasts analysed, {now} of them now" in capsys.readouterr().out
        found.append((tmp_path / "out" / "findings.json").read_bytes())
    assert found[0] == found[1] != found[2]


def test_an_image_that_may_show_a_name_is_not_drawn(archive, tmp_path):
    dataset = pydicom.dcmread(archive / "4.dcm")
    dataset.BurnedInAnnotation = "YES"
    (tmp_path / "in").mkdir()
    dataset.save_as(tmp_path / "in" / "a.dcm")
    assert predict(tmp_path / "in", "--output", tmp_path / "out") == 0
    assert list((tmp_path / "out").rglob("*.png")) == []


def test_a_breast_that_is_killed_while_written_is_as_if_never_begun(run, tmp_path):
    breast_id = summary_of(run)["analysed"][0]["breast_id"]
    record = json.loads((run["output"] / "breasts" / breast_id / "breast.json").read_text())
    result = read_breast(run["output"], breast_id, record["key"])

    def killed(folder):
        (folder / "measurements.dcm").write_bytes(b"half a fi")
        raise SystemExit

    with pytest.raises(SystemExit):
        write_breast(tmp_path, result, "model", killed)
    assert read_breast(tmp_path, breast_id, record["key"]) is None
    remove_unfinished(tmp_path)
    assert files_below(tmp_path) == {}
    write_breast(tmp_path, result, "model", lambda folder: None)
    assert read_breast(tmp_path, breast_id, record["key"]) == result


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nowhere", "--output", "out"], "nowhere: no such file or folder"),
        ([FILMS, "--output", FILMS / "out"], "lies in"),
        (
            [FILMS, "--output", "out", "--model", "nowhere"],
            "nowhere: neither a bundle (configs/inference.yaml is missing) nor a training run",
        ),
        ([FILMS, "--output", "out", "--device", "abacus"], "device is abacus"),
        ([FILMS, "--output", "out", "--batch-size", "0"], "batch_size is 0; at least 1 is expected"),
    ],
)
def test_wrong_usage_is_told_in_one_line_with_status_2(tmp_path, monkeypatch, capsys, words, message):
    monkeypatch.chdir(tmp_path)
    assert main(["predict", *map(str, words)]) == 2
    said = capsys.readouterr().err
    assert message in said and said.count("\n") == 1


def command(*words):
    return ["-m", "clnet.cli", "predict", *words, "--min-score", MIN_SCORE]


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
    assert len(set(reports)) == len(reports) == 6
    assert not any("unfinished" in name for name in after)


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
