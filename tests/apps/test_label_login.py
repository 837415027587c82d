"""Who may do what with authentication on: the real server, its page and a small issuer of tokens."""

import re

import pytest
from label_client import Client
from label_page import LabelPage, draw_around_target, missing_programs, open_browser, write_targets
from label_realm import PASSWORD, new_key, start_realm, token
from label_server import NO_SCORING, start_server
from selenium.webdriver.common.keys import Keys

LABEL = {"cc": {"boxes": [[10, 20, 30, 40]], "lesion_ids": ["1"]}, "mlo": {"boxes": [], "lesion_ids": []}}


@pytest.fixture(scope="module")
def key():
    return new_key()


@pytest.fixture(scope="module")
def address(key, tmp_path_factory):
    folder = tmp_path_factory.mktemp("login")
    images = folder / "images"
    images.mkdir()
    write_targets(images)
    with (
        start_realm(key) as settings,
        start_server(images, folder / "app", **settings, **NO_SCORING) as address,
    ):
        yield address


def test_the_page_needs_no_login_but_the_data_do(address):
    nobody = Client(address, token=None)
    page = nobody.ask("GET", "/clnet/")
    assert page.status_code == 200
    assert "<html" in page.text
    for path in ("/clnet/pairs", "/clnet/pairs/x", "/clnet/pairs/x/cc/pixels", "/clnet/pairs/x/findings"):
        assert nobody.ask("GET", path).status_code == 401
    assert nobody.put_label("x", LABEL).status_code == 401
    assert nobody.ask("GET", "/datastore/").status_code == 401


def test_a_token_is_issued_for_the_right_password_only(address):
    nobody = Client(address, token=None)
    form = {"username": "gast", "password": PASSWORD}
    given = nobody.good(nobody.ask("POST", "/auth/token", data=form))["access_token"]
    assert len(Client(address, given).get("/clnet/pairs")["pairs"]) == 1
    wrong = nobody.ask("POST", "/auth/token", data={**form, "password": "wrong"})
    assert wrong.status_code == 401


def test_roles_decide_who_reads_annotates_and_trains(address, key):
    reader, annotator, admin = (Client(address, token(key, name)) for name in ("gast", "anna", "chef"))
    pair = reader.get("/clnet/pairs")["pairs"][0]["pair_id"]
    assert reader.put_label(pair, LABEL).status_code == 403
    assert reader.ask("DELETE", f"/clnet/pairs/{pair}/label").status_code == 403
    assert annotator.good(annotator.put_label(pair, LABEL))["label"] == LABEL
    assert annotator.good(annotator.ask("DELETE", f"/clnet/pairs/{pair}/label"))["label"] is None
    assert annotator.ask("POST", "/train/clnet", json={}).status_code == 403
    assert admin.ask("GET", "/logs/").status_code == 200


@pytest.mark.parametrize("kind", ["expired", "none", "HS256", "another key", "nonsense"])
def test_an_invalid_token_gives_no_access(address, key, kind):
    forged = {
        "expired": lambda: token(key, "chef", seconds=-60),
        "none": lambda: token(key, "chef", "none"),
        "HS256": lambda: token(key, "chef", "HS256"),
        "another key": lambda: token(new_key(), "chef"),
        "nonsense": lambda: "a.b.c",
    }[kind]()
    assert Client(address, forged).ask("GET", "/clnet/pairs").status_code == 401


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Origin": "null"}, 403),
        ({"Origin": "https://elsewhere.example"}, 403),
        ({"Host": "elsewhere.example", "Origin": "http://elsewhere.example"}, 421),
    ],
    ids=str,
)
def test_other_sites_are_refused_whoever_has_signed_in(address, key, headers, status):
    admin = Client(address, token(key, "chef"))
    for method, path in (("GET", "/clnet/pairs"), ("DELETE", "/datastore/?id=target_cc.dcm")):
        assert admin.ask(method, path, headers=headers).status_code == status
    assert len(admin.get("/clnet/pairs")["pairs"]) == 1


def test_every_route_asks_a_stranger_to_sign_in(address, key):
    routes = Client(address, token(key, "chef")).get("/openapi.json")["paths"]
    nobody = Client(address, token=None)
    answered = set()
    for path, methods in routes.items():
        for method in methods:
            answer = nobody.ask(method.upper(), re.sub(r"{\w+}", "clnet", path))
            if answer.status_code not in (401, 403, 404):  # 403 and 404 are what everybody gets
                answered.add((method, path))
    assert answered == {("get", "/auth/"), ("post", "/auth/token")}


def sign_in(page, name, password):
    for field, words in (("username", name), ("password", password)):
        entry = page.one(f"#sign-in input[name={field}]")
        entry.clear()
        entry.send_keys(words)
    page.click("#sign-in .primary")


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    if missing_programs():
        pytest.skip("chromium or chromedriver is missing; ./scripts/apt installs them")
    with open_browser(tmp_path_factory.mktemp("profile")) as browser:
        yield browser


@pytest.fixture
def stranger(browser, address):
    """A page that nobody has signed in to."""
    page = LabelPage(browser, address, token=None)
    page.load()
    browser.execute_script("sessionStorage.clear()")
    page.load()
    page.wait(lambda: page.one("#sign-in").is_displayed(), "the box to sign in")
    return page


def test_the_page_shows_pairs_after_signing_in(stranger):
    page = stranger
    assert page.find("#pairs li") == []
    sign_in(page, "anna", "wrong")
    page.wait(lambda: "Check name and password." in page.text("#sign-in-error"), "the refusal")
    sign_in(page, "anna", PASSWORD)
    page.settle()
    draw_around_target(page, "cc")
    page.save()
    token = page.browser.execute_script("return sessionStorage.getItem('clnet-token')")
    (pair,) = Client(page.address, token).get("/clnet/pairs")["pairs"]
    assert pair["labelled"]
    page.browser.refresh()
    page.settle()
    assert len(page.boxes()) == 1, "who has signed in stays so while the tab is open"


def test_the_page_asks_again_after_an_invalid_token(stranger):
    page = stranger
    page.click("#sign-in summary")
    page.one("#sign-in input[name=token]").send_keys("nonsense", Keys.ENTER)
    page.wait(lambda: page.text("#sign-in-error") == "Could not validate credentials", "the refusal")
    sign_in(page, "anna", PASSWORD)
    page.settle()
    assert len(page.find("#pairs li")) == 1


def test_a_user_without_the_annotator_role_is_told_so(stranger):
    page = stranger
    sign_in(page, "gast", PASSWORD)
    page.settle()
    left, top, *_ = page.pane("cc")
    page.drag((left + 150, top + 90), (left + 190, top + 130))
    page.press("s")
    page.wait(lambda: page.one("#alert").is_displayed(), "the message")
    assert page.text("#alert-words") == 'Role "monailabel-annotator" is required to perform this action'
    assert page.one("#save").is_enabled(), "nothing was saved"
