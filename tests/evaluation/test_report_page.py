"""The page of the report in a real browser: what it draws, and what it does when it is used."""

import json

import pytest
from browser import missing_programs, open_browser
from random_findings import random_datalist, random_findings
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select
from small_evaluation import COLUMNS, IDENTITY, ROWS, datalist, findings, small_evaluation

from clnet.data.datalist import Datalist, write_datalist
from clnet.evaluation.folder import evaluate_files
from clnet.evaluation.protocols import EvaluationSettings
from clnet.evaluation.report import FILE_NAME
from clnet.findings.types import write_findings

if missing_programs():
    pytest.skip("chromium or chromedriver is missing; ./scripts/apt installs them", allow_module_level=True)

pytestmark = pytest.mark.slow

DETECTION = "#picture rect[data-kind=detection]"
LESION = "#picture rect[data-kind=lesion]"
LINK = "#picture line[data-kind=link]"


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with open_browser(tmp_path_factory.mktemp("profile")) as browser:
        yield browser


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return small_evaluation(tmp_path_factory.mktemp("page"))


@pytest.fixture
def page(browser, folder):
    """The small evaluation's page, opened anew; what it says on the console is an error of the test."""
    yield open_page(browser, folder)
    assert [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"] == []


def open_page(browser, folder):
    for kind in ("browser", "performance"):
        browser.get_log(kind)
    browser.get((folder / FILE_NAME).as_uri())
    return browser


def find(page, selector):
    return page.find_elements(By.CSS_SELECTOR, selector)


def one(page, selector):
    (element,) = find(page, selector)
    return element


def indices(page, selector):
    """(view, index) of what is drawn."""
    return {(e.get_attribute("data-view"), int(e.get_attribute("data-index"))) for e in find(page, selector)}


def press(page, *keys):
    one(page, "body").send_keys(*keys)


def show_pair(page, number):
    """Step to a pair, as with the keyboard."""
    for _ in range(10):
        if one(page, "#position").text.startswith(f"Pair {number} "):
            return
        press(page, "n")
    pytest.fail(f"pair {number} did not come")


def edges(rect):
    x, y, width, height = (float(rect.get_attribute(name)) for name in ("x", "y", "width", "height"))
    return x, y, x + width, y + height


def test_the_worst_pair_is_shown_first_with_its_truth_and_detections(page):
    assert one(page, "#position").text == "Pair 2 · 1 of 4"
    assert len(find(page, LESION)) == 2
    assert indices(page, DETECTION) == {("cc", 0), ("cc", 1)}, "the one of score 0.2 is not above 0.2"
    outcomes = [e.get_attribute("data-outcome") for e in find(page, DETECTION)]
    assert sorted(outcomes) == ["false_positive", "hit"]


def test_boxes_stand_where_they_belong_on_their_image(page):
    show_pair(page, 1)
    place = "const r = arguments[0].getBoundingClientRect(); return [r.left, r.top, r.right, r.bottom]"
    images = [page.execute_script(place, image) for image in find(page, "#picture image")]
    assert len(images) == 2
    truth = {"cc": (20, 50, 40, 80), "mlo": (30, 60, 50, 90)}
    for (left, top, right, bottom), (name, box) in zip(images, truth.items(), strict=True):
        lesion = page.execute_script(place, one(page, f"{LESION}[data-view={name}]"))
        scale_x, scale_y = (right - left) / COLUMNS, (bottom - top) / ROWS
        wanted = [left + box[0] * scale_x, top + box[1] * scale_y]
        wanted += [left + box[2] * scale_x, top + box[3] * scale_y]
        assert lesion == pytest.approx(wanted, abs=1.5), "within the width of its line"


def test_the_slider_changes_which_detections_are_drawn(page):
    show_pair(page, 1)
    assert indices(page, DETECTION) == {("cc", 0), ("cc", 1), ("mlo", 0), ("mlo", 1)}
    slider = one(page, "#threshold")
    slider.send_keys(Keys.HOME)
    assert len(find(page, DETECTION)) == 5
    slider.send_keys(Keys.END)
    assert find(page, DETECTION) == []
    # 0.9 is the highest score and 0.1 the lowest: half-way is 0.5.
    slider.send_keys(Keys.HOME)
    page.execute_script("arguments[0].value = 100; arguments[0].dispatchEvent(new Event('input'))", slider)
    assert one(page, "#threshold-value").text == "above 0.50"
    assert indices(page, DETECTION) == {("cc", 0), ("cc", 1), ("mlo", 0)}


def test_a_threshold_can_be_chosen_by_its_false_positives(page):
    show_pair(page, 1)
    # At 0.25 per image one of seven images may have a false positive: scores above 0.5, the second of them.
    button = one(page, "#rates button[aria-label^='0.25 ']")
    button.click()
    assert one(page, "#threshold-value").text == "above 0.50"
    assert button.get_attribute("aria-pressed") == "true"
    assert indices(page, DETECTION) == {("cc", 0), ("cc", 1), ("mlo", 0)}
    one(page, "#rates button[aria-label^='4 ']").click()
    assert one(page, "#threshold-value").text == "all"
    assert len(find(page, DETECTION)) == 5


def test_links_end_on_their_boxes_or_on_the_dustbin(page):
    show_pair(page, 1)
    lines = find(page, LINK)
    assert [line.get_attribute("data-index") for line in lines] == ["0", "1"]
    ends = {name: one(page, f"{DETECTION}[data-view={name}][data-index='0']") for name in ("cc", "mlo")}
    second = one(page, f"{DETECTION}[data-view=cc][data-index='1']")
    dustbin = one(page, "#picture [data-kind=dustbin][data-view=mlo] rect")
    for line, (cc, mlo) in zip(lines, [(ends["cc"], ends["mlo"]), (second, dustbin)], strict=True):
        x1, y1, x2, y2 = (float(line.get_attribute(name)) for name in ("x1", "y1", "x2", "y2"))
        cc, mlo = edges(cc), edges(mlo)
        assert x1 == pytest.approx(cc[2])
        assert cc[1] < y1 < cc[3]
        assert x2 == pytest.approx(mlo[0])
        assert mlo[1] < y2 < mlo[3]


def test_a_link_goes_with_its_boxes_and_with_its_own_score(page):
    show_pair(page, 1)
    one(page, "#link-score").send_keys(Keys.HOME)
    assert len(find(page, LINK)) == 3
    one(page, "#link-score").send_keys(Keys.END)
    assert find(page, LINK) == []
    one(page, "#link-score").send_keys(Keys.HOME)
    one(page, "#threshold").send_keys(Keys.END)
    assert find(page, LINK) == []


def test_a_chosen_link_shows_where_the_linker_looked(page):
    show_pair(page, 1)
    find(page, "#pair-links button")[0].click()
    weights = {
        (e.get_attribute("data-view"), int(e.get_attribute("data-index"))): e.get_attribute("data-weight")
        for e in find(page, DETECTION)
    }
    assert weights == {
        ("cc", 0): "0.7",
        ("cc", 1): "0.1",
        ("cc", 2): "0.05",
        ("mlo", 0): "0.9",
        ("mlo", 1): "0.06",
    }
    dustbins = {e.get_attribute("data-view"): e for e in find(page, "#picture [data-kind=dustbin]")}
    assert {name: e.get_attribute("data-weight") for name, e in dustbins.items()} == {
        "cc": "0.15",
        "mlo": "0.04",
    }
    assert dustbins["cc"].text == "dustbin 0.15"
    listed = one(page, "#attention").text.splitlines()
    assert listed[listed.index("CC") + 1 : listed.index("MLO")] == [
        *("score 0.90", "0.70", "dustbin", "0.15", "score 0.60", "0.10", "score 0.10", "0.05")
    ]
    press(page, Keys.ESCAPE)
    assert find(page, "#attention") == []
    assert len(find(page, DETECTION)) == 4


def test_who_chooses_a_link_with_the_keyboard_keeps_the_focus(page):
    show_pair(page, 1)
    find(page, "#pair-links button")[1].send_keys(Keys.ENTER)
    assert page.switch_to.active_element.text == "CC 0.60 – MLO dustbin"
    assert page.switch_to.active_element.get_attribute("aria-pressed") == "true"


def test_a_link_without_attention_says_so(page):
    show_pair(page, 1)
    find(page, "#pair-links button")[1].click()
    assert "do not include the linker" in one(page, "#attention").text
    assert indices(page, DETECTION) == {("cc", 1)}


def test_a_link_is_chosen_in_the_picture_too(page):
    show_pair(page, 1)
    grip = find(page, "#picture .link .grip")[0]
    page.execute_script("arguments[0].dispatchEvent(new MouseEvent('click', {bubbles: true}))", grip)
    assert find(page, "#pair-links button")[0].get_attribute("aria-pressed") == "true"


def test_pairs_are_filtered_by_type_of_error(page):
    select = Select(one(page, "#filter"))
    words = {option.get_attribute("value"): option.text for option in select.options}
    assert words["all"] == "all (4)"
    assert words["none"] == "without errors (2)"
    assert words["found_in_one_view"] == "found in one view (1)"
    assert words["crossed_link"] == "crossed link (0)"
    select.select_by_value("lone_false_positive")
    assert one(page, "#position").text == "Pair 2 · 1 of 2"
    one(page, "#next").click()
    assert one(page, "#position").text == "Pair 1 · 2 of 2"
    assert not one(page, "#next").is_enabled()
    select.select_by_value("crossed_link")
    assert one(page, "#position").text == "no pair"
    assert "No pair is like that" in one(page, "#picture").text
    select.select_by_value("all")
    assert one(page, "#position").text == "Pair 2 · 1 of 4"


def test_keys_do_what_the_key_help_says(page):
    help_text = one(page, ".keys").text
    assert all(
        word in help_text for word in ("next pair", "previous pair", "threshold", "truth", "next link")
    )
    position = one(page, "#position")
    press(page, Keys.ARROW_LEFT)
    assert position.text == "Pair 2 · 1 of 4", "there is none before the first"
    press(page, Keys.ARROW_RIGHT)
    assert position.text == "Pair 1 · 2 of 4"
    press(page, "n", "n", "n", "n")
    assert position.text == "Pair 4 · 4 of 4"
    press(page, "p", "p")
    assert position.text == "Pair 1 · 2 of 4"
    press(page, "g")
    assert find(page, LESION) == []
    press(page, "g", "d")
    assert len(find(page, LESION)) == 2
    assert find(page, DETECTION) == []
    press(page, "d", "l")
    assert one(page, "#attention").is_displayed()
    press(page, "e")
    assert find(page, "#pair-errors button")[0].get_attribute("aria-pressed") == "true"
    assert find(page, "#attention") == []
    press(page, "+")
    # From 0.2 up by a hundredth of the way from 0.1 to 0.9, then down by two.
    assert one(page, "#threshold-value").text == "above 0.21"
    press(page, "-", "-")
    assert one(page, "#threshold-value").text == "above 0.19"


def test_arrows_in_a_slider_are_the_sliders(page):
    one(page, "#threshold").send_keys(Keys.ARROW_RIGHT)
    assert one(page, "#position").text == "Pair 2 · 1 of 4"


def test_every_control_has_a_name_and_shows_its_focus(page):
    for control in find(page, "button, select, input"):
        if control.is_displayed():
            assert control.accessible_name, control.get_attribute("outerHTML")
    press(page, Keys.TAB)
    assert page.switch_to.active_element.text == "Skip to the viewer of pairs"
    press(page, Keys.TAB)
    assert page.switch_to.active_element.value_of_css_property("outline-style") == "solid"


def test_a_picture_says_in_words_what_it_shows(page):
    show_pair(page, 1)
    words = one(page, "#picture svg").get_attribute("aria-label")
    assert words == "Pair 1. CC: 1 lesion, 2 detections. MLO: 1 lesion, 2 detections. 2 links."


def test_truth_and_errors_are_told_apart_without_colour(page):
    show_pair(page, 1)
    dashes = "return getComputedStyle(arguments[0]).strokeDasharray"
    assert page.execute_script(dashes, find(page, LESION)[0]) != "none"
    assert page.execute_script(dashes, find(page, DETECTION)[0]) == "none"
    right, wrong = (page.execute_script(dashes, line) for line in find(page, LINK))
    assert right == "none"
    assert wrong != "none"
    labels = [text.text for text in find(page, "#picture .detection text")]
    assert labels == ["✓ 0.90", "✗ 0.60", "✓ 0.80", "✗ 0.30"]
    assert [text.text for text in find(page, "#picture .marked text")] == ["lesion 1"] * 2


def test_a_missing_view_is_named(page):
    show_pair(page, 4)
    assert "no such view" in one(page, "#picture").text
    assert len(find(page, "#picture image")) == 1


def test_tables_show_numbers_with_intervals(page, folder):
    metrics = json.loads((folder / "metrics.json").read_text(encoding="utf-8"))
    entry = metrics["detection"]["iou=0.5"]["recall"]["0.5"]
    # By hand: three of four boxes are found above 0.2.
    assert entry["value"] == 0.75
    cell = find(page, "#recall-table tbody")[1].find_elements(By.CSS_SELECTOR, "tr.main td")[2]
    assert cell.text == f"75.0\n{100 * entry['low']:.1f}–{100 * entry['high']:.1f}"
    links = find(page, "#links-table tbody tr")
    assert [row.find_element(By.TAG_NAME, "th").text for row in links[1:3]] == [
        "all breasts",
        "breasts with several lesions",
    ]
    # Two lesions to link; one is, and the other link of score 0.5 or more is wrong.
    cells = [cell.text.split("\n")[0] for cell in links[1].find_elements(By.TAG_NAME, "td")]
    assert cells == ["2", "1", "1", "50.0", "50.0", "50.0", "100.0"]
    assert len(find(page, "#curve .series .band")) == 2


def test_the_gallery_shows_errors_and_opens_them_in_the_viewer(page):
    page.execute_script("document.getElementById('errors').scrollIntoView()")
    one(page, "#errors-table button[data-type=lone_false_positive]").click()
    cards = find(page, "#gallery .card")
    assert [caption.text for caption in find(page, "#gallery .card span")] == [
        "pair 1 · CC · score 0.60",
        "pair 2 · CC · score 0.50",
        "pair 1 · MLO · score 0.30",
    ]
    assert one(page, "#gallery-about").text == "All 3 of them."
    cards[1].click()
    assert one(page, "#position").text == "Pair 2 · 1 of 4"
    held = [b.text for b in find(page, "#pair-errors button") if b.get_attribute("aria-pressed") == "true"]
    assert held == ["lone false positive"]


def test_pictures_are_decoded_only_when_they_are_shown(page):
    page.execute_script("window.scrollTo(0, 0)")
    assert len(find(page, "#picture image")) == 2
    blocks = find(page, "script[type='application/json']")
    assert len(blocks) == 5, "an overview and four pairs"


def test_nothing_is_asked_of_the_network(browser, folder):
    page = open_page(browser, folder)
    show_pair(page, 1)
    events = [json.loads(entry["message"])["message"] for entry in page.get_log("performance")]
    urls = [e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"]
    assert (folder / FILE_NAME).as_uri() in urls
    assert [url for url in urls if not url.startswith(("file:", "data:"))] == []
    assert [url for url in urls if url.startswith("file:")] == [(folder / FILE_NAME).as_uri()]


def test_no_patient_is_named_in_what_is_drawn(page):
    for _ in range(4):
        drawn = page.execute_script("return document.documentElement.outerHTML")
        assert [words for words in IDENTITY if words in drawn] == []
        press(page, "n")


def test_a_name_that_looks_like_markup_is_shown_as_text(browser, tmp_path):
    evil = "<script>alert(1)</script><img src=x onerror=alert(2)>"
    page = open_page(browser, small_evaluation(tmp_path, model=evil))
    assert one(page, "h1").text == evil
    assert page.title == f"{evil} on four breasts"
    assert find(page, "h1 *") == []
    assert [entry for entry in page.get_log("browser") if entry["level"] == "SEVERE"] == []


def test_without_images_the_page_says_so_and_draws_boxes(browser, tmp_path):
    page = open_page(browser, small_evaluation(tmp_path, images=False))
    assert "The images were not found" in one(page, "#viewer-about").text
    show_pair(page, 1)
    assert find(page, "#picture image") == []
    assert one(page, "#picture").text.count("no picture") == 2
    assert len(find(page, DETECTION)) == 4


def test_a_page_with_five_hundred_pairs_of_a_thousand_opens(browser, tmp_path):
    data = random_datalist(1000)
    write_datalist(data, tmp_path / "datalist.json")
    write_findings(random_findings(data["test"]), tmp_path / "f.json")
    settings = EvaluationSettings(resamples=10)
    evaluate_files(tmp_path, tmp_path / "f.json", "test", tmp_path / "out", settings, max_pairs=500)
    page = open_page(browser, tmp_path / "out")
    assert one(page, "#position").text.endswith("1 of 500")
    assert one(page, "#viewer-about").text.startswith(
        "500 of 1,000 pairs, those with the worst errors first."
    )
    press(page, "n")
    assert one(page, "#position").text.endswith("2 of 500")
    assert len(find(page, "#subgroups-table tr.group")) >= 5
    assert [entry for entry in page.get_log("browser") if entry["level"] == "SEVERE"] == []


def test_findings_without_links_or_lesions_make_a_page_too(browser, tmp_path):
    pairs = datalist(tmp_path, images=False)["test"][2:]
    write_datalist(Datalist("two breasts", {"test": pairs}), tmp_path / "datalist.json")
    write_findings(findings(), tmp_path / "f.json")
    evaluate_files(tmp_path, tmp_path / "f.json", "test", tmp_path / "out", EvaluationSettings(resamples=10))
    page = open_page(browser, tmp_path / "out")
    assert one(page, "#links-table").text == "The findings have no links."
    assert "no recall to draw" in one(page, "#curve").text
    assert {cell.text for cell in find(page, "#recall-table td")} == {"–"}
    assert [entry for entry in page.get_log("browser") if entry["level"] == "SEVERE"] == []


def test_paper_has_the_tables_without_the_controls(page):
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        assert [e.is_displayed() for e in (one(page, "#controls"), one(page, "nav"), one(page, ".keys"))] == [
            False,
            False,
            False,
        ]
        assert one(page, "#recall-table").is_displayed()
        assert one(page, "#picture svg").is_displayed()
    finally:
        page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


@pytest.mark.parametrize("width", [1400, 700])
def test_nothing_runs_out_of_the_window(browser, folder, width):
    browser.set_window_size(width, 1000)
    try:
        page = open_page(browser, folder)
        inner, whole = page.execute_script("return [innerWidth, document.documentElement.scrollWidth]")
        assert whole <= inner
        for table in find(page, ".scrolls"):
            assert page.execute_script("return arguments[0].scrollWidth <= arguments[0].clientWidth", table)
    finally:
        browser.set_window_size(1400, 1000)
