"""The HTTP listener by TLS, asked by curl and by the client that sends results."""

import subprocess
from contextlib import contextmanager

import pytest
import requests
from serve_images import bytes_of, copy_of, studies
from servers import free_port
from serving import make_certificate, needs

from clnet.serve.destinations import http_session, web_client
from clnet.serve.intake import Intake
from clnet.serve.journal import Audit
from clnet.serve.ledger import Ledger
from clnet.serve.metrics import Metrics
from clnet.serve.settings import Http, Poll, ServeError, Tls
from clnet.serve.sources import Source, SourceError
from clnet.serve.spool import Spool
from clnet.serve.web import Web

TOKEN = "a-token-for-tests"  # noqa: S105


@contextmanager
def listening(folder, tls, token=TOKEN):
    """A web server behind which there is a queue and no model: (its address, the queue, the intake)."""
    (folder / "token").write_text(token or "")
    ledger, metrics, port = Ledger(f"sqlite:///{folder / 'queue.sqlite'}"), Metrics(), free_port()
    audit = Audit(folder / "audit")
    intake = Intake(Spool(folder, ledger, most_bytes=10**6, free_bytes=0), metrics, audit)
    file = folder / "token" if token else None
    http = Http(port=port, tls=tls, stow=True, status_page=bool(token), token_file=file)
    web = Web(http, ledger, intake, metrics, audit, lambda: ([], []))
    web.start()
    yield f"http{'s' if tls else ''}://127.0.0.1:{port}", ledger, intake
    web.stop()
    ledger.close()
    audit.close()


def curl(address, *words):
    """(exit status, status of the answer) of curl."""
    command = ["curl", "--silent", "--output", "/dev/null", "--write-out", "%{http_code}", *map(str, words)]
    said = subprocess.run([*command, address], capture_output=True, text=True, check=False)
    return said.returncode, said.stdout


@needs("openssl", "curl")
def test_with_tls_pages_are_for_those_who_trust_the_authority(tmp_path):
    authority = make_certificate(tmp_path, "authority")
    key, certificate = make_certificate(tmp_path, "node", authority)
    with listening(tmp_path, Tls(certificate=certificate, key=key)) as (address, ledger, intake):
        trusted = ["--cacert", authority[1]]
        assert curl(f"{address}/health", *trusted) == (0, "200")
        assert curl(f"{address}/status", *trusted) == (0, "401")
        assert curl(f"{address}/status", *trusted, "--user", f"any:{TOKEN}") == (0, "200")
        assert curl(f"{address}/health") == (60, "000")  # curl: the certificate cannot be checked
        assert curl(f"{address.replace('https', 'http')}/health")[1] == "000"

        client = web_client(
            f"{address}/dicom-web", http_session(None, None, tmp_path / "token", authority[1])
        )
        client.store_instances(copy_of(studies()[0], 60))
        assert ledger.last_studies(5)[0].images == 4
        with pytest.raises(requests.exceptions.SSLError):
            http_session(None, None, tmp_path / "token").get(f"{address}/health")
        for trusts, answer in ((authority[1], "HTTP 404"), (None, "cannot be reached")):
            archive = Poll(name="archive", orthanc=address, authority=trusts)
            with pytest.raises(SourceError, match=f"the server .*{answer}"):
                Source(archive, intake, ledger).poll()


@needs("openssl", "curl")
def test_with_an_authority_only_clients_with_its_certificate_get_in(tmp_path):
    authority, stranger = (make_certificate(tmp_path, name) for name in ("authority", "stranger"))
    key, certificate = make_certificate(tmp_path, "node", authority)
    own_key, own_certificate = make_certificate(tmp_path, "client", authority)
    tls = Tls(certificate=certificate, key=key, authority=authority[1])
    with listening(tmp_path, tls) as (address, *_):
        trusted = ["--cacert", authority[1]]
        assert curl(f"{address}/health", *trusted, "--cert", own_certificate, "--key", own_key) == (0, "200")
        assert curl(f"{address}/health", *trusted)[1] == "000"
        assert curl(f"{address}/health", *trusted, "--cert", stranger[1], "--key", stranger[0])[1] == "000"


def test_a_body_without_its_end_is_refused_though_what_came_whole_is_kept(tmp_path):
    first, second = (bytes_of(image) for image in copy_of(studies()[0][:2], 81))
    head = b"--limit\r\nContent-Type: application/dicom\r\n\r\n"
    body = head + first + b"\r\n" + head + second
    kind = 'multipart/related; type="application/dicom"; boundary=limit'
    headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": kind}
    with listening(tmp_path, None) as (address, ledger, _):
        for end, status, images in ((b"", 400, 1), (b"\r\n--limit--", 200, 2)):
            answer = requests.post(f"{address}/dicom-web/studies", body + end, headers=headers, timeout=60)
            assert answer.status_code == status
            assert [study.images for study in ledger.last_studies(9)] == [images]


def test_without_a_token_web_pages_store_nothing(tmp_path):
    with listening(tmp_path, None, token=None) as (address, ledger, _):
        client = web_client(f"{address}/dicom-web", http_session(None, None, None))
        client.store_instances(copy_of(studies()[0], 62))
        assert ledger.last_studies(5)[0].images == 4
        for origin in ("null", address, "http://elsewhere.example"):
            answer = requests.post(f"{address}/dicom-web/studies", headers={"Origin": origin}, timeout=60)
            assert answer.status_code == 403, origin


def test_a_name_that_is_no_digest_is_not_taken_into_the_log(tmp_path, caplog):
    with listening(tmp_path, None) as (address, *_):
        headers = {"Authorization": f"Bearer {TOKEN}"}
        answer = requests.post(f"{address}/status/Secret^Name/retry", headers=headers, timeout=60)
    assert answer.status_code == 404
    assert not any("Secret" in str(vars(record)) for record in caplog.records if record.name == "clnet.serve")


def test_a_certificate_that_is_missing_is_what_is_said(tmp_path):
    with (
        pytest.raises(ServeError, match=r"missing\.pem cannot be used"),
        listening(tmp_path, Tls(certificate=tmp_path / "missing.pem")),
    ):
        pass
