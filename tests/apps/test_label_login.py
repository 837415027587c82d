"""Who may do what, with MONAI Label's authentication on: the real server and a small issuer of tokens."""

import pytest
from label_client import Client
from label_realm import PASSWORD, new_key, start_realm, token
from label_server import NO_SCORING, start_server

from clnet.phantom.dataset import PhantomSettings, make_phantom

LABEL = {"cc": {"boxes": [[10, 20, 30, 40]], "lesion_ids": ["1"]}, "mlo": {"boxes": [], "lesion_ids": []}}


@pytest.fixture(scope="module")
def key():
    return new_key()


@pytest.fixture(scope="module")
def address(key, tmp_path_factory):
    folder = tmp_path_factory.mktemp("login")
    make_phantom(folder / "phantom", PhantomSettings(pairs=2, seed=7))
    with (
        start_realm(key) as settings,
        start_server(folder / "phantom" / "images", folder / "app", **settings, **NO_SCORING) as address,
    ):
        yield address


def test_the_page_is_open_and_the_data_are_not(address):
    nobody = Client(address)
    page = nobody.ask("GET", "/clnet/")
    assert page.status_code == 200
    assert "<html" in page.text
    for path in ("/clnet/pairs", "/clnet/pairs/x", "/clnet/pairs/x/cc/pixels", "/clnet/pairs/x/findings"):
        assert nobody.ask("GET", path).status_code == 401
    assert nobody.put_label("x", LABEL).status_code == 401
    assert nobody.ask("GET", "/datastore/").status_code == 401


def test_a_password_gets_a_token_and_a_wrong_one_none(address):
    nobody = Client(address)
    form = {"username": "gast", "password": PASSWORD}
    given = nobody.good(nobody.ask("POST", "/auth/token", data=form))["access_token"]
    assert len(Client(address, given).get("/clnet/pairs")["pairs"]) == 2
    wrong = nobody.ask("POST", "/auth/token", data={**form, "password": "wrong"})
    assert wrong.status_code == 401


def test_roles_say_who_reads_annotates_and_trains(address, key):
    reader, annotator, admin = (Client(address, token(key, name)) for name in ("gast", "anna", "chef"))
    pair = reader.get("/clnet/pairs")["pairs"][0]["pair_id"]
    assert reader.put_label(pair, LABEL).status_code == 403
    assert reader.ask("DELETE", f"/clnet/pairs/{pair}/label").status_code == 403
    assert annotator.good(annotator.put_label(pair, LABEL))["label"] == LABEL
    assert annotator.ask("POST", "/train/clnet", json={}).status_code == 403
    assert admin.ask("GET", "/logs/").status_code == 200


@pytest.mark.parametrize("kind", ["expired", "none", "HS256", "another key", "nonsense"])
def test_a_token_that_is_not_valid_opens_nothing(address, key, kind):
    forged = {
        "expired": lambda: token(key, "chef", seconds=-60),
        "none": lambda: token(key, "chef", "none"),
        "HS256": lambda: token(key, "chef", "HS256"),
        "another key": lambda: token(new_key(), "chef"),
        "nonsense": lambda: "a.b.c",
    }[kind]()
    assert Client(address, forged).ask("GET", "/clnet/pairs").status_code == 401
