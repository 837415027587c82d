"""The file of the report: what is in it, and what must not be."""

import base64
import io
import json
import re
from pathlib import Path

import pytest
from PIL import Image
from random_findings import random_datalist, random_findings
from small_evaluation import ATTENTION, COLUMNS, IDENTITY, ROWS, small_evaluation

from clnet.cli.main import main
from clnet.data.datalist import write_datalist
from clnet.evaluation.report import FILE_NAME, PAGE, SCRIPTS
from clnet.evaluation.report_pairs import worst_first
from clnet.findings.types import write_findings


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return small_evaluation(tmp_path_factory.mktemp("report"))


def page_of(folder):
    return (folder / FILE_NAME).read_text(encoding="utf-8")


def blocks(page):
    """The JSON of a page by the id of its block."""
    found = re.findall(r'<script type="application/json" id="([\w-]+)">(.*?)</script>', page, re.DOTALL)
    return {name: json.loads(text) for name, text in found}


def pairs_by_number(page):
    return {block["number"]: block for name, block in blocks(page).items() if name != "overview"}


def test_the_numbers_are_those_of_the_metrics(folder):
    metrics = json.loads((folder / "metrics.json").read_text(encoding="utf-8"))
    overview = blocks(page_of(folder))["overview"]
    for name in ("model", "settings", "counts", "detection", "links", "errors", "subgroups"):
        assert overview[name] == metrics[name]


def test_the_viewer_knows_what_each_detection_and_link_is(folder):
    pairs = pairs_by_number(page_of(folder))
    cc, mlo = pairs[1]["views"]["cc"], pairs[1]["views"]["mlo"]
    assert cc["outcomes"] == ["hit", "false_positive", "false_positive"]
    assert mlo["outcomes"] == ["hit", "false_positive"]
    assert cc["lesions"] == [{"number": 1, "box": [20, 50, 40, 80]}]
    assert cc["scores"] == [0.9, 0.6, 0.1]
    assert [link["right"] for link in pairs[1]["links"]] == [True, False, False]
    assert [error["type"] for error in pairs[2]["errors"]] == ["found_in_one_view", "lone_false_positive"]
    assert pairs[2]["errors"][0] == {
        "type": "found_in_one_view",
        "view": "mlo",
        "cc": 0,
        "mlo": None,
        "lesion": 1,
        "score": None,
    }
    assert pairs[4]["views"]["cc"] is None


def test_attention_is_handed_on_where_it_is_known(folder):
    first, second, _ = pairs_by_number(page_of(folder))[1]["links"]
    assert first["attention"] == {"cc": list(ATTENTION.cc), "mlo": list(ATTENTION.mlo)}
    assert second["attention"] is None


def test_pictures_are_jpegs_in_the_page_no_larger_than_they_need_be(tmp_path):
    folder = small_evaluation(tmp_path)
    large = tmp_path / "data" / "DOE_JANE_1957_a_cc.png"
    Image.new("L", (10 * COLUMNS, 10 * ROWS), 7).save(large)
    assert main(["report", str(folder)]) == 0
    views = pairs_by_number(page_of(folder))[1]["views"]
    assert (views["cc"]["rows"], views["cc"]["columns"]) == (10 * ROWS, 10 * COLUMNS)
    for name, size in (("cc", (400, 800)), ("mlo", (COLUMNS, ROWS))):
        picture = Image.open(io.BytesIO(base64.b64decode(views[name]["picture"])))
        assert picture.format == "JPEG"
        assert picture.size == size


def test_no_patient_is_named(folder):
    page = page_of(folder)
    for words in IDENTITY:
        assert words not in page


def test_an_id_in_the_name_of_the_model_is_left_out(tmp_path):
    page = page_of(small_evaluation(tmp_path, model="tuned on DOE_JANE and DOE_JANE_L, not on ROE_RICHARDS"))
    assert blocks(page)["overview"]["model"] == "tuned on … and …, not on ROE_RICHARDS"


def test_a_page_asks_nothing_of_the_network(folder):
    page = page_of(folder)
    assert set(re.findall(r"https?://[^\s\"']+", page)) == {"http://www.w3.org/2000/svg"}
    assert re.findall(r"\ssrc=", page) == []
    assert "default-src 'none'" in page


def test_what_looks_like_markup_stays_text(tmp_path):
    evil = "</script><script>alert(1)</script><!--[[data]]\u2028&amp;"
    page = page_of(small_evaluation(tmp_path, model=evil))
    assert blocks(page)["overview"]["model"] == evil
    assert "<script>alert" not in page
    assert page.count("<!--") == 0


def test_without_images_everything_else_is_there(tmp_path):
    page = page_of(small_evaluation(tmp_path, images=False))
    overview = blocks(page)["overview"]
    assert overview["viewer"]["pictures"] == 0
    assert overview["viewer"]["views"] == 7
    view = pairs_by_number(page)[1]["views"]["cc"]
    assert view["picture"] is None
    assert (view["rows"], view["columns"]) == (ROWS, COLUMNS)


def test_the_worst_pairs_are_shown_first_and_no_more_than_asked_for(tmp_path):
    folder = small_evaluation(tmp_path)
    # Pair 2 misses a box; pair 1 has false positives only; in pairs 3 and 4 nothing is wrong.
    assert [shown["number"] for shown in blocks(page_of(folder))["overview"]["shown"]] == [2, 1, 3, 4]
    assert main(["report", str(folder), "--max-pairs", "1"]) == 0
    found = blocks(page_of(folder))
    assert [shown["number"] for shown in found["overview"]["shown"]] == [2]
    assert found["overview"]["viewer"]["pairs"] == 4
    assert set(found) == {"overview", "pair-0"}
    assert main(["report", str(folder), "--max-pairs", "0"]) == 0
    assert set(blocks(page_of(folder))) == {"overview"}


def test_pairs_without_errors_follow_their_order():
    pairs = random_datalist(3, missing_views=False)["test"]
    lesions = [sum(len(view.lesion_ids) for view in pair.views.values()) for pair in pairs]
    assert worst_first(pairs, [], 9) == sorted(range(3), key=lambda number: (-lesions[number], number))


def test_a_report_made_later_is_the_same_to_the_byte(tmp_path, capsys):
    folder = small_evaluation(tmp_path)
    first = page_of(folder)
    (folder / FILE_NAME).unlink()
    assert main(["report", str(folder)]) == 0
    assert str(folder / FILE_NAME) in capsys.readouterr().out
    assert page_of(folder) == first


def test_the_command_evaluates_with_a_report_unless_told_not_to(tmp_path, capsys):
    datalist = random_datalist(6)
    write_datalist(datalist, tmp_path / "datalist.json")
    write_findings(random_findings(datalist["test"]), tmp_path / "f.json")
    arguments = ["evaluate", "--datalist", tmp_path, "--findings", tmp_path / "f.json", "--resamples", 20]
    assert main([*map(str, arguments), "--output", str(tmp_path / "with"), "--max-pairs", "2"]) == 0
    assert f"report    {tmp_path / 'with' / FILE_NAME}" in capsys.readouterr().out
    assert len(pairs_by_number(page_of(tmp_path / "with"))) == 2
    assert main([*map(str, arguments), "--output", str(tmp_path / "without"), "--no-report"]) == 0
    assert "report" not in capsys.readouterr().out
    assert not (tmp_path / "without" / FILE_NAME).exists()


def test_what_a_report_cannot_be_made_of_is_named(tmp_path, capsys):
    assert main(["report", str(tmp_path)]) == 2
    assert f"{tmp_path / 'metrics.json'}: there is no such file" in capsys.readouterr().err
    folder = small_evaluation(tmp_path / "e", report=False)
    assert main(["report", str(folder), "--max-pairs", "-1"]) == 2
    assert "max_pairs is -1; expected 0 or more" in capsys.readouterr().err
    (folder / "errors.json").write_text('[{"kind": "odd"}]')
    assert main(["report", str(folder)]) == 2
    assert (
        f"{folder / 'errors.json'}: cannot be read as the errors of an evaluation" in capsys.readouterr().err
    )
    (folder / "errors.json").write_text("[]")
    write_datalist(random_datalist(4), tmp_path / "e" / "data" / "datalist.json")
    assert main(["report", str(folder)]) == 2
    assert "pairs or boxes have changed since the evaluation" in capsys.readouterr().err
    (tmp_path / "e" / "data" / "datalist.json").unlink()
    assert main(["report", str(folder)]) == 2
    assert "datalist" in capsys.readouterr().err


def test_every_file_of_the_page_is_in_the_page():
    assert {path.name for path in PAGE.iterdir()} == {"page.html", "page.css", *SCRIPTS}
    pyproject = (Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8")
    assert '"evaluation/report_page/*"' in pyproject
