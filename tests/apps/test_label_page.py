"""The annotation page, driven in a real browser on the real MONAI Label server."""

import numpy as np
import pytest
from label_client import Client
from label_page import (
    COLUMNS,
    ROWS,
    TARGETS,
    LabelPage,
    draw_around_target,
    middle,
    missing_programs,
    open_browser,
    write_targets,
)
from label_server import NO_SCORING, start_server
from selenium.webdriver.common.actions.mouse_button import MouseButton
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select

from clnet.phantom.dataset import PhantomSettings, make_phantom

if missing_programs():
    pytest.skip("chromium or chromedriver is missing; ./scripts/apt installs them", allow_module_level=True)

SIZE = {"rows": ROWS, "columns": COLUMNS}
MISSING = "00001_R_MLO.dcm"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """Four phantom breasts, one of them without its MLO view, and the targets."""
    folder = tmp_path_factory.mktemp("label_page")
    make_phantom(folder / "phantom", PhantomSettings(pairs=4, seed=7), workers=1)
    images = folder / "phantom" / "images"
    (images / MISSING).unlink()
    write_targets(images)
    with start_server(images, folder / "app", **NO_SCORING) as address:
        yield address


@pytest.fixture(scope="module")
def pairs(server):
    """The file of the CC view → the id of its pair."""
    return {pair["cc"]: pair["pair_id"] for pair in Client(server).get("/clnet/pairs")["pairs"]}


@pytest.fixture(scope="module")
def linked(server, pairs):
    """A pair in which the model links a mass, and that lesion."""
    for pair_id in pairs.values():
        for lesion in Client(server).get(f"/clnet/pairs/{pair_id}/findings")["lesions"]:
            if lesion["cc"] and lesion["mlo"]:
                return pair_id, lesion
    return pytest.fail("the model links nothing")


@pytest.fixture(scope="module")
def target(pairs):
    return pairs["target_cc.dcm"]


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with open_browser(tmp_path_factory.mktemp("profile")) as browser:
        yield browser


@pytest.fixture
def page(browser, server, pairs):
    """A page on a server without labels; errors on its console fail the test."""
    page = LabelPage(browser, server)
    for pair_id in pairs.values():
        page.client.ask("DELETE", f"/clnet/pairs/{pair_id}/label")
    yield page
    assert page.errors() == []


def draw_around_targets(page):
    for view in TARGETS:
        draw_around_target(page, view)


def landed(page, pair_id, view="cc"):
    """The only box of a view, as saved on the server."""
    (box,) = page.label(pair_id)[view]["boxes"]
    return box


def shifted(box, x, y):
    return [edge + (y if side % 2 else x) for side, edge in enumerate(box)]


def link_targets(page):
    page.press(Keys.ESCAPE, Keys.ESCAPE, "l")
    for place in page.boxes().values():
        page.click_at(*middle(place))


# Display


def test_a_pair_opens_with_the_models_boxes_and_the_link_between_them(page, linked):
    pair_id, lesion = linked
    page.open(pair_id)
    views = page.pair(pair_id)["views"]
    shown = page.model_boxes()
    number = lesion["lesion_id"]
    for view in ("cc", "mlo"):
        wanted = page.on_screen(view, views[view], lesion[view]["box"])
        assert shown[view, number] == pytest.approx(wanted, abs=1.5), "within the width of its line"
    words = [tag.text for tag in page.find(f"#overlay [data-kind=accept][data-finding='{number}']")]
    assert words == [f"M{number} {lesion[view]['score']:.2f}" for view in ("cc", "mlo")]
    start, end = page.ends(f"#overlay path[data-kind=model-link][data-finding='{number}']")
    cc, mlo = shown["cc", number], shown["mlo", number]
    assert start == pytest.approx([cc[2], (cc[1] + cc[3]) / 2], abs=1.5)
    assert end == pytest.approx([mlo[0], (mlo[1] + mlo[3]) / 2], abs=1.5)
    assert f"link {lesion['link_score']:.2f}" in page.text("#findings")


def test_the_images_match_the_coordinates_of_the_boxes(page, target):
    page.open(target)
    for view, box in TARGETS.items():
        greys, (left, top) = page.greys(view)
        rows, columns = np.nonzero(greys > 128)
        seen = [left + columns.min(), top + rows.min(), left + columns.max() + 1, top + rows.max() + 1]
        assert seen == pytest.approx(page.on_screen(view, SIZE, box), abs=1.5)


def test_it_says_that_it_is_not_for_diagnosis_and_what_the_model_was_trained_on(page, linked):
    pair_id, _ = linked
    page.open(pair_id)
    notice = page.client.get(f"/clnet/pairs/{pair_id}/findings")["notice"]
    assert page.text(".caution") == f"Not for diagnosis. {notice}".strip()


def test_a_missing_view_is_reported_and_the_other_one_can_be_labelled(page, pairs):
    pair_id = pairs["00001_R_CC.dcm"]
    page.open(pair_id)
    assert page.text("#view-mlo .instead") == "This pair has no MLO view."
    left, top, *_ = page.pane("cc")
    page.drag((left + 100, top + 200), (left + 160, top + 280))
    page.press("l")
    page.save()
    label = page.label(pair_id)
    assert label["mlo"] is None
    assert label["cc"]["lesion_ids"] == ["1"]


# Boxes


def test_boxes_drawn_around_the_targets_and_their_link_are_saved(page, target):
    page.open(target)
    draw_around_targets(page)
    assert set(page.boxes()) == {("cc", "1"), ("mlo", "2")}
    assert page.links() == []
    link_targets(page)
    assert set(page.boxes()) == {("cc", "1"), ("mlo", "1")}
    assert len(page.links()) == 1
    page.save()
    label = page.label(target)
    for view, wanted in TARGETS.items():
        assert label[view]["lesion_ids"] == ["1"]
        (box,) = label[view]["boxes"]
        scale, *_ = page.fitted(view, SIZE)
        assert box == pytest.approx(wanted, abs=1 + 1 / scale), "a screen pixel is some of the image's"
        assert box == [round(edge) for edge in box], "on whole pixels"


def test_a_box_drawn_when_zoomed_in_is_right_to_the_pixel(page, target):
    page.open(target)
    left, top, *_ = page.pane("mlo")
    x, y = middle(page.on_screen("mlo", SIZE, TARGETS["mlo"]))
    for _ in range(3):
        page.wheel("mlo", x - left, y - top, -300)
    page.wait(lambda: page.one("#view-mlo").get_attribute("data-rows") == str(ROWS), "every pixel")
    draw_around_target(page, "mlo")
    left, _, right, _ = page.boxes()["mlo", "1"]
    assert (right - left) / 300 > 0.75, "the target is 300 pixels wide, so that this is the scale"
    page.save()
    assert landed(page, target, "mlo") == pytest.approx(TARGETS["mlo"], abs=2)


def test_a_dragged_box_moves_by_as_many_pixels_as_the_pointer(page, target):
    page.open(target)
    draw_around_target(page, "cc")
    page.save()
    before = landed(page, target)
    x, y = map(round, middle(page.boxes()["cc", "1"]))
    page.drag((x, y), (x + 31, y - 47))
    page.save()
    scale, *_ = page.fitted("cc", SIZE)
    assert landed(page, target) == pytest.approx(shifted(before, 31 / scale, -47 / scale), abs=0.5)


def test_a_handle_moves_its_sides(page, target):
    page.open(target)
    draw_around_target(page, "cc")
    page.save()
    left, top, right, bottom = landed(page, target)
    x, y = map(round, middle(page.place("#overlay [data-grip=se]")))
    page.drag((x, y), (x + 20, y + 12))
    x, y = map(round, middle(page.place("#overlay [data-grip=w]")))
    page.drag((x, y), (x - 15, y + 30))
    page.save()
    scale, *_ = page.fitted("cc", SIZE)
    wanted = [left - 15 / scale, top, right + 20 / scale, bottom + 12 / scale]
    assert landed(page, target) == pytest.approx(wanted, abs=0.5)


def test_a_box_ends_where_the_image_ends(page, target):
    page.open(target)
    left, top, *_ = page.pane("cc")
    page.drag((left + 100, top + 200), (left + 3, top + 300))
    page.save()
    assert landed(page, target)[0] == 0
    x, y = map(round, middle(page.boxes()["cc", "1"]))
    width = landed(page, target)[2]
    page.drag((x, y), (x + 600, y))
    page.save()
    assert landed(page, target)[::2] == [COLUMNS - width, COLUMNS], "as far as it goes, and no smaller"


def test_a_click_or_a_drag_of_less_than_two_pixels_draws_nothing(page, target):
    page.open(target)
    left, top, *_ = page.pane("cc")
    page.click_at(left + 100, top + 200)
    for _ in range(5):
        page.wheel("cc", 100, 200, -800)
    page.drag((left + 100, top + 200), (left + 108, top + 208))  # 8 screen pixels, closer than 4 : 1
    assert page.boxes() == {}
    assert not page.one("#undo").is_enabled()


def test_with_shift_a_box_is_drawn_on_top_of_another(page, target):
    page.open(target)
    draw_around_target(page, "cc")
    x, y = map(round, middle(page.boxes()["cc", "1"]))
    page.drag((x, y), (x + 15, y + 15), held=Keys.SHIFT)
    assert set(page.boxes()) == {("cc", "1"), ("cc", "2")}


def test_keys_move_and_resize_the_selected_box_by_pixels(page, target):
    page.open(target)
    draw_around_target(page, "cc")
    page.save()
    left, top, right, bottom = landed(page, target)
    page.press(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT, Keys.ARROW_UP)
    page.press_with(Keys.SHIFT, Keys.ARROW_DOWN)
    page.press_with(Keys.ALT, Keys.ARROW_LEFT)
    page.save()
    assert landed(page, target) == [left + 2, top + 9, right + 1, bottom + 9]


def test_undo_and_redo_step_through_all_changes(page, target):
    page.open(target)
    draw_around_targets(page)
    drawn = page.boxes()
    link_targets(page)
    page.press(Keys.DELETE)
    assert set(page.boxes()) == {("cc", "1")}, "the box that was clicked last"
    page.press_with(Keys.CONTROL, "z")
    assert len(page.links()) == 1
    page.press_with(Keys.CONTROL, "z")
    assert page.boxes() == drawn
    assert page.links() == []
    page.click("#undo")
    page.click("#undo")
    assert page.boxes() == {}
    assert not page.one("#undo").is_enabled()
    for _ in range(3):
        page.click("#redo")
    assert len(page.links()) == 1
    page.press_with(Keys.CONTROL, "y")
    assert set(page.boxes()) == {("cc", "1")}


# Links and findings


def test_a_key_accepts_a_finding_unchanged(page, linked):
    pair_id, lesion = linked
    page.open(pair_id)
    page.press(lesion["lesion_id"])
    assert ("cc", lesion["lesion_id"]) not in page.model_boxes(), "the label says it now"
    page.save()
    label = page.label(pair_id)
    for view in ("cc", "mlo"):
        assert label[view]["boxes"] == [pytest.approx(lesion[view]["box"], abs=0.01)]
    assert label["cc"]["lesion_ids"] == label["mlo"]["lesion_ids"] == ["1"]


def test_a_click_accepts_a_finding_and_undo_reverts_it(page, linked):
    pair_id, lesion = linked
    page.open(pair_id)
    tag = f"#overlay [data-kind=accept][data-view=mlo][data-finding='{lesion['lesion_id']}']"
    page.click_at(*middle(page.place(tag)))
    assert set(page.boxes()) == {("cc", "1"), ("mlo", "1")}
    page.click("#undo")
    assert page.boxes() == {}
    assert len(page.find(tag)) == 1


def test_all_shown_findings_are_accepted_together(page, linked):
    pair_id, _ = linked
    page.open(pair_id)
    least = page.one("#min-score")
    page.browser.execute_script(
        "arguments[0].value = 0.1; arguments[0].dispatchEvent(new Event('input'))", least
    )
    page.next_frame()
    page.press("a")
    page.save()
    findings = page.findings(pair_id, 0.1)
    label = page.label(pair_id)
    for view in ("cc", "mlo"):
        wanted = sorted(lesion[view]["box"] for lesion in findings if lesion[view])
        assert sorted(label[view]["boxes"]) == [pytest.approx(box, abs=0.01) for box in wanted]
    both = sum(1 for lesion in findings if lesion["cc"] and lesion["mlo"])
    assert len(set(label["cc"]["lesion_ids"]) & set(label["mlo"]["lesion_ids"])) == both
    assert page.model_boxes() == {}


def test_a_finding_with_one_box_already_drawn_adds_the_other_box_and_the_link(page, linked):
    pair_id, lesion = linked
    page.open(pair_id)
    left, top, right, bottom = page.model_boxes()["cc", lesion["lesion_id"]]
    page.drag((left, top), (right, bottom))
    page.press(lesion["lesion_id"])
    assert set(page.boxes()) == {("cc", "1"), ("mlo", "1")}, "no box upon the one that was drawn"


def test_a_link_is_removed_by_a_key_and_by_its_button(page, target):
    page.open(target)
    draw_around_targets(page)
    link_targets(page)
    page.press("u")
    assert set(page.boxes()) == {("cc", "1"), ("mlo", "2")}
    link_targets(page)
    page.click("#lesions button[aria-label='Unlink lesion 1']")
    assert page.links() == []
    page.save()
    label = page.label(target)
    assert [label[view]["lesion_ids"] for view in ("cc", "mlo")] == [["1"], ["2"]]


def test_a_box_linked_to_another_partner_leaves_the_old_one_unlinked(page, target):
    page.open(target)
    draw_around_targets(page)
    link_targets(page)
    left, top, *_ = page.pane("mlo")
    page.drag((left + 60, top + 120), (left + 100, top + 160))
    assert set(page.boxes()) == {("cc", "1"), ("mlo", "1"), ("mlo", "2")}
    # The new box is held: it is the first end, and one click is enough.
    page.press("l")
    page.click_at(*middle(page.boxes()["cc", "1"]))
    page.save()
    label = page.label(target)
    assert label["cc"]["lesion_ids"] == ["1"]
    new = label["mlo"]["lesion_ids"].index("1")
    assert label["mlo"]["boxes"][new] != pytest.approx(TARGETS["mlo"], abs=10)
    assert set(label["mlo"]["lesion_ids"]) == {"1", "3"}


def test_boxes_are_drawn_and_linked_without_a_pointer(page, target):
    page.open(target)
    page.press("b", "v", "b")
    assert set(page.boxes()) == {("cc", "1"), ("mlo", "2")}
    page.press("l", "j", Keys.ENTER)
    assert set(page.boxes()) == {("cc", "1"), ("mlo", "1")}
    assert len(page.links()) == 1


def test_escape_cancels_an_unfinished_link(page, target):
    page.open(target)
    draw_around_targets(page)
    page.press("l", Keys.ESCAPE)
    assert page.one("#tool-edit").get_attribute("aria-pressed") == "true"
    page.click_at(*middle(page.boxes()["cc", "1"]))
    assert page.links() == []


# Saving, and moving between pairs


def test_a_pair_without_a_lesion_is_saved_without_boxes(page, target):
    page.open(target)
    assert page.text("#save") == "Save: no lesion"
    page.save()
    empty = {"boxes": [], "lesion_ids": []}
    assert page.label(target) == {"cc": empty, "mlo": empty}
    assert page.text("#progress-words").startswith("1 of ")
    page.click("#remove-label")
    page.click("#remove button[value=remove]")
    page.wait(lambda: page.text("#progress-words").startswith("0 of "), "the removal")
    assert page.label(target) is None


def test_a_saved_label_is_shown_when_the_pair_is_opened_again(page, target):
    page.open(target)
    draw_around_targets(page)
    link_targets(page)
    page.save()
    drawn = page.boxes()
    page.open(target)
    assert page.boxes() == drawn
    assert len(page.links()) == 1
    assert page.text("#save") == "Saved"


def test_keys_go_from_pair_to_pair_in_the_order_of_the_list(page, pairs):
    first, second, *_ = pairs.values()
    page.open(first)
    page.press("n")
    assert page.settle().text("#pair-title") == second
    assert page.one("#pairs [aria-current]").get_attribute("data-pair") == second
    page.press("p")
    assert page.settle().text("#pair-title") == first
    page.press("p")
    assert page.text("#status") == "This is the first pair in the list."


def test_unsaved_boxes_are_not_lost_when_another_pair_is_opened(page, pairs, target):
    other = next(pair_id for pair_id in pairs.values() if pair_id != target)
    go_on = f"#pairs [data-pair='{other}']"
    page.open(target)
    draw_around_target(page, "cc")
    page.click(go_on)
    page.click("#unsaved button[value=stay]")
    assert page.text("#pair-title") == target
    assert len(page.boxes()) == 1
    page.click(go_on)
    page.click("#unsaved button[value=save]")
    page.wait(lambda: page.text("#pair-title") == other, "the other pair")
    assert len(page.label(target)["cc"]["boxes"]) == 1
    page.settle().click(f"#pairs [data-pair='{target}']")
    page.settle().press("j", Keys.DELETE)
    page.click(go_on)
    page.click("#unsaved button[value=discard]")
    page.wait(lambda: page.text("#pair-title") == other, "the other pair")
    assert len(page.label(target)["cc"]["boxes"]) == 1


def test_a_pair_opened_while_a_label_is_removed_keeps_its_own(page, pairs, target):
    other = next(pair_id for pair_id in pairs.values() if pair_id != target)
    page.open(target)
    draw_around_target(page, "cc")
    page.save()
    page.open(other)
    page.save()
    page.browser.execute_script("""const fetched = window.fetch, waiting = [];
        window.answer = () => waiting.forEach((act) => act());
        window.fetch = (...words) => words[1]?.method !== "DELETE" ? fetched(...words)
            : new Promise((act) => waiting.push(act)).then(() => fetched(...words));""")
    page.click("#remove-label")
    page.click("#remove button[value=remove]")
    page.click(f"#pairs [data-pair='{target}']")
    page.wait(lambda: page.text("#pair-title") == target, "the pair")
    assert len(page.settle().boxes()) == 1
    page.browser.execute_script("window.answer()")
    page.wait(lambda: page.text("#status") == f"Removed the label of {other}.", "the removal")
    page.next_frame()
    assert len(page.boxes()) == 1
    assert page.text("#save") == "Saved"


def test_the_browser_asks_before_closing_a_page_with_unsaved_changes(page, target):
    page.open(target)
    ask_to_leave = """const event = new Event("beforeunload", {cancelable: true});
        window.dispatchEvent(event); return event.defaultPrevented"""
    assert page.browser.execute_script(ask_to_leave) is False
    draw_around_target(page, "cc")
    assert page.browser.execute_script(ask_to_leave) is True
    page.save()
    assert page.browser.execute_script(ask_to_leave) is False


def test_the_next_sample_is_the_one_the_server_suggests(page, pairs):
    labelled = list(pairs.values())[:-1]
    empty = {"boxes": [], "lesion_ids": []}
    for pair_id in labelled:
        has_mlo = page.pair(pair_id)["views"]["mlo"]
        page.client.put_label(pair_id, {"cc": empty, "mlo": empty if has_mlo else None})
    page.open(labelled[0])
    select = Select(page.one("#strategy"))
    assert "disagree" in select.first_selected_option.get_attribute("value")
    page.click("#next-sample")
    (left,) = set(pairs.values()) - set(labelled)
    page.wait(lambda: page.text("#pair-title") == left, "the only pair without a label")


def test_pairs_are_found_by_their_files_and_by_whether_they_are_labelled(page, target):
    page.open(target)
    everything = len(page.find("#pairs li"))
    page.one("#search").send_keys("target")
    assert [entry.get_attribute("data-pair") for entry in page.find("#pairs button")] == [target]
    page.one("#search").send_keys(Keys.CONTROL, "a")
    page.one("#search").send_keys(Keys.DELETE)
    page.click("#stage")
    page.save()
    page.click("#filters [data-filter=done]")
    assert [entry.get_attribute("data-pair") for entry in page.find("#pairs button")] == [target]
    page.click("#filters [data-filter=open]")
    assert len(page.find("#pairs li")) == everything - 1


# Images


def test_images_are_loaded_at_low_resolution_first_and_in_full_when_zoomed_in(page, target):
    page.open(target)
    assert page.one("#view-cc").get_attribute("data-rows") == "1024"
    page.press("z")
    page.wait(lambda: page.one("#view-cc").get_attribute("data-rows") == str(ROWS), "every pixel")
    asked = [url.split("/")[-2:] for url in page.requests() if "/pixels?" in url]
    assert sorted(asked) == sorted(
        [["cc", "pixels?rows=1024"], ["mlo", "pixels?rows=1024"], ["cc", f"pixels?rows={ROWS}"]]
    )


def test_window_and_level_change_the_greys_of_both_views_or_of_one(page, linked):
    pair_id, _ = linked
    page.open(pair_id)
    before = {view: page.greys(view)[0].mean() for view in ("cc", "mlo")}
    x, y = middle(page.pane("cc"))
    page.drag((x, y), (x, y - 120), MouseButton.RIGHT)
    brighter = {view: page.greys(view)[0].mean() for view in ("cc", "mlo")}
    assert all(brighter[view] > before[view] + 5 for view in before)
    assert page.text("#grey-level-words") == "20 %", "120 pixels, a quarter of a hundredth each"
    page.press("r")
    page.click("#together")
    page.drag((x, y), (x, y - 120), MouseButton.RIGHT)
    assert page.greys("cc")[0].mean() == pytest.approx(brighter["cc"], abs=1)
    assert page.greys("mlo")[0].mean() == pytest.approx(before["mlo"], abs=1)
    page.press("r", "i")
    inverted = page.greys("cc")[0]
    assert inverted.max() > 250
    assert np.median(inverted) > 128, "the background is white now"
    page.press("c", "i")


def test_the_image_is_moved_with_space_or_the_middle_button_and_fitted_again(page, target):
    page.open(target)
    draw_around_target(page, "cc")
    at_first = page.boxes()["cc", "1"]
    page.wheel("cc", 100, 200, -300)
    zoomed = page.boxes()["cc", "1"]
    assert zoomed[2] - zoomed[0] == pytest.approx((at_first[2] - at_first[0]) * np.exp(0.45), abs=1)
    x, y = map(round, middle(page.pane("cc")))
    page.drag((x, y), (x + 40, y - 30), MouseButton.MIDDLE)
    assert page.boxes()["cc", "1"] == pytest.approx(shifted(zoomed, 40, -30), abs=0.1)
    page.drag((x, y), (x - 40, y + 30), held=Keys.SPACE)
    assert page.boxes()["cc", "1"] == pytest.approx(zoomed, abs=0.1)
    page.press("f")
    assert page.boxes()["cc", "1"] == pytest.approx(at_first, abs=0.1)
    assert len(page.boxes()) == 1, "nothing was drawn on the way"


# Errors


def test_an_error_of_the_server_is_shown_in_its_words_and_as_plain_text(page, target):
    evil = "<img src=x onerror=alert(1)>"
    page.load(evil)
    page.wait(lambda: page.one("#alert").is_displayed(), "the message")
    assert evil in page.text("#pair-title")
    assert page.find("#pair-title *, #alert-words *") == []
    assert page.text("#alert-words")
    assert [message for message in page.errors() if "404" not in message] == []
    page.press("n")
    page.settle()
    assert not page.one("#alert").is_displayed()


def test_a_label_that_cannot_be_saved_stays_and_the_page_says_why(page, target):
    page.open(target)
    draw_around_target(page, "cc")
    conditions = {"latency": 0, "downloadThroughput": 0, "uploadThroughput": 0}
    page.browser.execute_cdp_cmd("Network.emulateNetworkConditions", {"offline": True, **conditions})
    try:
        page.press("s")
        page.wait(lambda: page.one("#alert").is_displayed(), "the message")
    finally:
        page.browser.execute_cdp_cmd("Network.emulateNetworkConditions", {"offline": False, **conditions})
    assert page.text("#alert-words") == "The server does not answer. Is it still running?"
    assert len(page.boxes()) == 1
    assert page.text("#save").endswith("Save")
    assert [message for message in page.errors() if "ERR_INTERNET_DISCONNECTED" not in message] == []
    page.save()
    assert not page.one("#alert").is_displayed()


# Accessibility and layout


def test_every_control_has_a_name_and_shows_its_focus(page, linked):
    page.open(linked[0])
    page.press(linked[1]["lesion_id"])
    for control in page.find("button, select, input, summary"):
        if control.is_displayed():
            assert control.accessible_name, control.get_attribute("outerHTML")
    page.press(Keys.TAB)
    assert page.browser.switch_to.active_element.value_of_css_property("outline-style") == "solid"
    words = page.one("#overlay").get_attribute("aria-label")
    assert words.startswith("CC: 1 box. MLO: 1 box. 1 link. ")


def test_the_help_lists_every_key(page, target):
    page.open(target)
    page.press("?")
    words = page.text("#help-keys")
    keys = {key.text for key in page.find("#help-keys kbd")}
    assert {*"BEJKLUAMSNPGVFZICRWH", "Delete", "Esc", "Ctrl+Z", "/", "?"} <= keys
    assert all(word in words for word in ("unlink", "next sample", "window and level", "accept all"))
    page.press(Keys.ESCAPE)
    assert not page.one("#help").is_displayed()


def test_letters_typed_into_the_search_are_not_commands(page, target):
    page.open(target)
    draw_around_target(page, "cc")
    page.press("/")
    page.browser.switch_to.active_element.send_keys("dusel", Keys.BACKSPACE)
    assert len(page.boxes()) == 1
    assert page.label(target) is None
    assert page.one("#search").get_attribute("value") == "duse"


@pytest.mark.parametrize("size", [(1280, 800), (1920, 1080)])
def test_everything_fits_into_the_window(browser, server, linked, size):
    page = LabelPage(browser, server, size).open(linked[0])
    right, bottom = size
    for selector in (".top", ".toolbar", ".side", "#stage", ".panel", "footer"):
        place = page.place(selector)
        assert place[2] <= right + 0.5, selector
        assert place[3] <= bottom + 0.5, selector
        inside = "return arguments[0].scrollWidth <= arguments[0].clientWidth"
        assert page.browser.execute_script(inside, page.one(selector)), selector
    for control in page.find(".top button, .toolbar button, .toolbar input"):
        assert control.rect["x"] + control.rect["width"] <= right
    assert page.errors() == []
