"""Settings: safe by default, and errors say which key, which value, and what is expected."""

import sys

import pytest

from clnet.cli import serve
from clnet.cli.main import main
from clnet.serve.settings import Rule, ServeError, ServeSettings, Tls, read_settings


def test_by_default_nobody_else_can_reach_it_and_nothing_is_sent():
    settings = ServeSettings()
    assert (settings.dicom.host, settings.http.host) == ("127.0.0.1", "127.0.0.1")
    assert (settings.dicom.port, settings.dicom.ae_title) == (11112, "CLNET")
    assert settings.destinations == settings.poll == ()
    assert not settings.http.stow
    assert not settings.http.status_page


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("dicom: {port: 0}", r"dicom\.port is 0: .*greater than or equal to 1"),
        ("dicom: {prot: 1}", r"dicom\.prot: there is no such setting"),
        ("dicom: {tls: {}}", "dicom: tls needs a certificate"),
        (
            "dicom: {senders: [{ae_title: A, address: pacs.example}]}",
            r"dicom\.senders\.0\.address is 'pacs\.example': .*not appear to be an IPv4 or IPv6 address",
        ),
        ("destinations: [{name: a, stow: 'pacs:80/x'}]", r"destinations\.0\.stow is 'pacs:80/x'"),
        ("queue: 'mysql://host/name'", "queue is no address of a PostgreSQL database"),
        ("dicom: {ae_title: A TITLE THAT IS TOO LONG}", r"dicom\.ae_title is .*at most 16"),
        ("dicom: {host: 0.0.0.0}", r"dicom: host is 0\.0\.0\.0.*list those who may send in senders"),
        ("http: {host: 0.0.0.0, stow: true}", "stow needs a token_file"),
        ("http: {status_page: true}", "status_page needs a token_file"),
        ("destinations: [{name: a}]", r"destinations\.0: give dicom, stow or folder"),
        ("destinations: [{name: a, folder: x}, {name: a, folder: y}]", "two destinations have one name"),
        ("poll: [{name: a, qido: 'http://x', days: 40}]", "a asks for 40 days, but retention.days is 30"),
        ("a: [", "not YAML"),
    ],
)
def test_a_wrong_setting_is_named(text, words, tmp_path):
    (tmp_path / "serve.yaml").write_text(text)
    with pytest.raises(ServeError, match=words):
        read_settings(tmp_path / "serve.yaml")


@pytest.mark.parametrize(
    "text",
    [
        "destinations: [{name: a, stow: 'http://x', password: hunter2}]",
        "queue: 'postgres://me:hunter2@host/name'",
    ],
)
def test_an_error_does_not_show_a_password(text, tmp_path):
    (tmp_path / "serve.yaml").write_text(text)
    with pytest.raises(ServeError) as error:
        read_settings(tmp_path / "serve.yaml")
    assert "hunter2" not in str(error.value)


def test_a_certificate_that_is_missing_is_named(tmp_path):
    tls = Tls(certificate=tmp_path / "missing.pem")
    for context in (tls.server_context, tls.client_context):
        with pytest.raises(ServeError, match=r"tls: one of .*missing\.pem cannot be used \(No such file"):
            context()


def test_a_rule_holds_if_all_that_it_says_holds():
    rule = Rule(modalities=("MG",), senders=("PACS",), findings=True)
    assert rule.holds("MG", "PACS", 2)
    assert not rule.holds("CR", "PACS", 2)
    assert not rule.holds("MG", "OTHER", 2)
    assert not rule.holds("MG", "PACS", 0)
    assert Rule().holds("", "", 0)
    assert Rule(findings=False).holds("MG", "PACS", 0)


def test_without_its_packages_it_says_how_to_get_them(monkeypatch, capsys):
    monkeypatch.setattr(serve, "_NEEDED", (*serve._NEEDED, "a_package_that_is_missing"))
    monkeypatch.delitem(sys.modules, "clnet.serve.node", raising=False)
    assert main(["serve"]) == 2
    assert (
        "a_package_that_is_missing is not installed; run: pip install 'clnet[serve]'"
        in capsys.readouterr().err
    )
    assert "clnet.serve.node" not in sys.modules


def test_status_of_a_node_that_never_ran_says_so(tmp_path, capsys):
    (tmp_path / "serve.yaml").write_text(f"folder: {tmp_path / 'missing'}")
    assert main(["serve", "status", "--config", str(tmp_path / "serve.yaml")]) == 2
    assert "no such folder" in capsys.readouterr().err
