"""Pages of other sites and other users of the machine get nothing from the server; its own page gets all."""

import http.client
import http.server
import json
import shutil
import subprocess
import threading
from contextlib import contextmanager

import pytest
from label_client import Client
from label_page import LabelPage, missing_programs, open_browser, write_targets
from label_server import NO_SCORING, PYTHON, TOKEN, needs_venv, start_server

ELSEWHERE = "elsewhere.example"  # a name that its owner has pointed to this machine


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    folder = tmp_path_factory.mktemp("access")
    (folder / "images").mkdir()
    write_targets(folder / "images")
    words = ("--conf", "origins", "https://viewer.example", "--conf", "hosts", "label.example")
    with start_server(folder / "images", folder / "app", *words, **NO_SCORING) as address:
        yield Client(address)


def port(client):
    return client.address.rsplit(":", 1)[1]


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/clnet/pairs"),
        ("GET", "/datastore/image?image=target_cc.dcm"),
        ("DELETE", "/datastore/?id=target_cc.dcm"),
        ("PUT", "/clnet/pairs/any/label"),
        ("POST", "/train/clnet"),
        ("GET", "/openapi.json"),
    ],
)
@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Origin": "null"}, 403),
        ({"Origin": "file://"}, 403),
        ({"Origin": ""}, 403),
        ({"Origin": "https://viewer.example.elsewhere.example"}, 403),
        ({"Origin": "http://127.0.0.1:1"}, 403),
        ({"Host": ELSEWHERE, "Origin": f"http://{ELSEWHERE}"}, 421),
        ({"Host": ELSEWHERE}, 421),
        ({"Host": "127.0.0.1.elsewhere.example"}, 421),
        ({"Host": "[127.0.0.1"}, 421),
        ({"Authorization": None}, 401),
        ({"Authorization": "Bearer wrong"}, 401),
        ({"Authorization": "Bearer "}, 401),
    ],
    ids=str,
)
def test_a_request_of_another_site_or_without_the_token_is_refused(client, method, path, headers, status):
    answer = client.ask(method, path, headers=headers)
    assert answer.status_code == status
    assert "access-control-allow-origin" not in answer.headers
    assert client.ask("GET", "/datastore/image?image=target_cc.dcm").status_code == 200


def test_requests_under_known_names_and_of_listed_origins_are_answered(client):
    number = port(client)
    for host in (f"localhost:{number}", f"127.0.0.1:{number}", "[::1]:8000", "192.0.2.7", "Label.Example"):
        for origin in (None, f"http://{host}", f"https://{host}", "https://viewer.example"):
            answer = client.ask("GET", "/clnet/pairs", headers={"Host": host, "Origin": origin})
            assert answer.status_code == 200, (host, origin)
    asked = {"Origin": "https://viewer.example", "Access-Control-Request-Method": "PUT"}
    answer = client.ask("OPTIONS", "/clnet/pairs", headers={**asked, "Authorization": None})
    assert (answer.status_code, answer.headers["access-control-allow-origin"]) == (200, asked["Origin"])


def test_no_answer_may_be_framed_or_load_from_other_sites(client):
    for path in (
        "/clnet/",
        "/clnet/page.js",
        "/clnet/pairs",
        "/clnet/nothing",
        "/",
        "/docs",
        "/logs/",
        "/nowhere",
    ):
        headers = client.ask("GET", path).headers
        assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
        assert "default-src 'self'" in headers["Content-Security-Policy"]
        assert "http" not in headers["Content-Security-Policy"]


def test_a_label_larger_than_a_person_draws_is_refused(client):
    (pair,) = client.get("/clnet/pairs")["pairs"]
    box = [1, 2, 30, 40]

    def put(boxes, ids):
        return client.put_label(pair["pair_id"], {"cc": {"boxes": boxes, "lesion_ids": ids}})

    for answer in (put([box], ["x" * 65]), put([box] * 101, [str(number) for number in range(101)])):
        assert answer.status_code == 422
        assert "at most 100, each of at most 64 characters" in answer.json()["detail"]
    path = f"/clnet/pairs/{pair['pair_id']}/label"
    connection = http.client.HTTPConnection(client.address.removeprefix("http://"))
    about = {"Authorization": f"Bearer {TOKEN}", "Content-Length": "1000001"}
    connection.request("PUT", path, headers=about)  # its body need not be sent to be refused
    assert connection.getresponse().status == 413
    connection.close()
    assert client.ask("PUT", path, data=iter([b"{}"])).status_code == 411  # a body without a length
    assert put([box], ["x" * 64]).status_code == 200
    assert client.ask("DELETE", path).status_code == 200


def test_nothing_says_where_an_image_lies(client):
    assert set(client.get("/datastore/image/info", image="target_cc.dcm")) == {"ts", "name"}
    sample = client.good(client.ask("POST", "/activelearning/random", json={}))
    assert "path" not in sample


def test_the_state_of_a_gpu_is_not_there_on_machines_without_one(client):
    assert client.ask("GET", "/logs/gpu").status_code == (200 if shutil.which("nvidia-smi") else 404)


@contextmanager
def site(content):
    """A site that answers every request with this page; yields its port."""

    class Answer(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(content.encode())

        def log_message(self, *words):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


ATTACK = """
<body><script>
addEventListener("message", ({ data }) => { document.body.dataset.got = JSON.stringify(data); });
</script>
<iframe sandbox="allow-scripts" srcdoc='<script>
  const attempts = [["GET", "/clnet/pairs"], ["GET", "/datastore/image?image=target_cc.dcm"],
                    ["DELETE", "/datastore/?id=target_cc.dcm"], ["POST", "/train/clnet"]];
  Promise.all(attempts.map(([method, path]) =>
    fetch("ADDRESS" + path, { method, credentials: "include" }).then((r) => r.status, () => "refused")
  )).then((got) => parent.postMessage(got, "*"));
</script>'></iframe>
<iframe id="framed" src="ADDRESS/clnet/"></iframe></body>
"""


def test_in_a_browser_other_sites_are_refused_and_the_page_itself_works(client, tmp_path):
    if missing_programs():
        pytest.skip("chromium or chromedriver is missing; ./scripts/apt installs them")
    rule = f"--host-resolver-rules=MAP {ELSEWHERE} 127.0.0.1"
    with (
        site(ATTACK.replace("ADDRESS", client.address)) as elsewhere,
        open_browser(tmp_path / "profile", (1400, 1000), False, rule) as browser,
    ):
        page = LabelPage(browser, client.address)
        page.wait(lambda: len(page.find("#pairs li")) == 1, "the pair")
        assert TOKEN not in browser.current_url
        assert page.errors() == []

        # A sandboxed frame, which sends Origin: null, and a frame of the page itself.
        browser.get(f"http://127.0.0.1:{elsewhere}/")
        page.wait(lambda: browser.execute_script("return document.body.dataset.got"), "the attempts")
        assert json.loads(browser.execute_script("return document.body.dataset.got")) == ["refused"] * 4
        browser.switch_to.frame("framed")
        assert "clnet" not in browser.page_source.split("<body", 1)[0]
        assert browser.find_elements("id", "pairs") == []
        browser.switch_to.default_content()

        # The site's name now leads to this server, so to the browser it is one site.
        browser.get(f"http://{ELSEWHERE}:{port(client)}/clnet/")
        assert "is not known by that name" in browser.page_source
        ask = "return fetch('/clnet/pairs').then((answer) => answer.status)"
        assert browser.execute_script(ask) == 421
    assert client.ask("GET", "/datastore/image?image=target_cc.dcm").status_code == 200


def test_the_address_that_is_printed_says_whether_the_server_encrypts():
    needs_venv()
    code = "from clnet.apps.label.__main__ import address_of as a; print(a('h', 1, []), a('h', 1, {words}))"
    for words in (["--ssl_keyfile", "k", "--ssl_certfile", "c"], ["--ssl_certfile=c", "--ssl_keyfile=k"]):
        command = [PYTHON, "-c", code.format(words=words)]
        said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        assert said == "http://h:1 https://h:1\n"
