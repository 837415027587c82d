"""HTTP requests that make no sense, from the OpenAPI of the Label server and of `clnet serve`.

schemathesis makes them. A server must answer each, never with a status of 500, and afterwards as before.
"""

import json
import subprocess
import sys
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml
from servers import free_port, is_up, running, wait_for
from tortures.outcome import Outcome
from tortures.victim import Victim, command

from clnet.phantom import PhantomSettings, make_phantom
from clnet.predict.shipped import copy_bundle

ROOT = Path(__file__).parents[2]
SCHEMA_OF_SERVE = Path(__file__).with_name("serve_openapi.json")
TOKEN = "token-of-the-torture"  # noqa: S105
MANY_EXAMPLES = 1_000_000  # it is the time that ends a run
# These start trainings, and analyses of every image; they have tests of their own.
LONG = "^/(train|batch|scoring|infer|activelearning|proxy)"


def label(folder: Path, seconds: int, seed: int, outcome: Outcome) -> None:
    """Ask the Label server for so many seconds."""
    make_phantom(folder / "phantom", PhantomSettings(4), workers=1)
    with _label_server(folder, folder / "phantom" / "images") as address:
        schema = _ask(f"{address}/openapi.json")
        pair = json.loads(_ask(f"{address}/clnet/pairs"))["pairs"][0]
        known = {"pair_id": pair["pair_id"], "image": pair["cc"], "id": pair["cc"], "label": pair["cc"]}
        file = folder / "schema.json"
        file.write_text(json.dumps(_with_known(json.loads(schema), known)))
        _fuzz(folder, file, address, f"{address}/clnet/pairs", seconds, seed, outcome)


def serve(folder: Path, seconds: int, seed: int, outcome: Outcome) -> None:
    """Ask `clnet serve` for so many seconds."""
    (folder / "token").write_text(TOKEN)
    dicom, http = free_port(), free_port()
    settings = {
        "folder": str(folder / "node"),
        "model": "phantom",
        "dicom": {"port": dicom},
        "http": {"port": http, "stow": True, "status_page": True, "token_file": str(folder / "token")},
        "limits": {"free_gb": 0},
        "retention": {"free_gb": 0},
    }
    (folder / "serve.yaml").write_text(yaml.safe_dump(settings))
    address, log = f"http://127.0.0.1:{http}", folder / "serve.txt"
    node = Victim(lambda: command("serve", "--config", folder / "serve.yaml"), log, folder)
    wait_for(lambda: is_up(f"{address}/ready"), lambda: node.wait(0) is not None and log.read_text())
    try:
        _fuzz(folder, SCHEMA_OF_SERVE, address, f"{address}/ready", seconds, seed, outcome)
    finally:
        node.kill()


@contextmanager
def _label_server(folder: Path, studies: Path) -> Iterator[str]:
    port, app = free_port(), folder / "app"
    app.mkdir()
    copy_bundle(app / "bundle_of_phantom", "phantom")
    words = [ROOT / "scripts" / "label", studies, "--app", app, "--port", port]
    words += ["--conf", "bundle", app / "bundle_of_phantom"]
    environment = {"CLNET_LABEL_TOKEN": TOKEN, "MONAI_LABEL_AUTO_UPDATE_SCORING": "false"}
    address = f"http://127.0.0.1:{port}"
    with running(words, folder / "label.txt", f"{address}/clnet/", environment, cwd=app):
        yield address


def _fuzz(
    folder: Path, schema: Path, address: str, alive: str, seconds: int, seed: int, outcome: Outcome
) -> None:
    words = [sys.executable, "-m", "schemathesis.cli", "run", schema, "--url", address]
    words += ["--header", f"Authorization: Bearer {TOKEN}", "--checks", "not_a_server_error"]
    words += ["--exclude-path-regex", LONG, "--phases", "coverage,fuzzing", "--continue-on-failure"]
    words += ["--max-time", seconds, "--max-examples", MANY_EXAMPLES, "--seed", seed, "--no-shrink"]
    words += ["--request-timeout", 60, "--generation-database", "none", "--suppress-health-check", "all"]
    words += ["--report", "har", "--report-har-path", folder / "requests.har", "--no-color"]
    said = subprocess.run(list(map(str, words)), cwd=folder, capture_output=True, text=True, check=False)
    if not (folder / "requests.har").exists():
        raise RuntimeError(f"schemathesis does not run:\n{said.stdout[-3000:]}{said.stderr[-3000:]}")
    entries = json.loads((folder / "requests.har").read_text())["log"]["entries"]
    statuses = Counter(entry["response"]["status"] for entry in entries)
    outcome.tried = len(entries)
    for status, number in sorted(statuses.items()):
        outcome.note(f"status {status}", number)
    for entry in entries:
        # 503 is how a server says that it cannot just now; it is no fault.
        if entry["response"]["status"] in (0, 500, 501, 502):
            outcome.lost += 1
            request = entry["request"]
            outcome.fail(f"{entry['response']['status']}: {request['method']} {request['url'][:200]}")
    outcome.survived = outcome.tried - outcome.lost
    outcome.notes["slowest, seconds"] = max((entry["time"] for entry in entries), default=0) / 1000
    try:
        _ask(alive)
    except OSError as error:
        outcome.stuck += 1
        outcome.fail(f"afterwards {alive.removeprefix(address)} is not answered: {error}")
    outcome.keep()


def _ask(address: str) -> str:
    request = urllib.request.Request(address, headers={"Authorization": f"Bearer {TOKEN}"})  # noqa: S310
    with urllib.request.urlopen(request, timeout=120) as answer:  # noqa: S310  loopback
        text: str = answer.read().decode()
        return text


def _with_known(schema: dict[str, Any], known: dict[str, str]) -> dict[str, Any]:
    """The schema in which names that the server knows are as likely as any others."""
    for path in schema["paths"].values():
        for operation in path.values():
            for parameter in operation.get("parameters", ()):
                if parameter["name"] in known:
                    names = [{"enum": [known[parameter["name"]]]}, {"type": "string", "minLength": 1}]
                    parameter["schema"] = {"anyOf": names}
    return schema
