"""A client of the label server."""

import json
from pathlib import Path

import requests
from label_server import TOKEN


class Client:
    """Sends requests to one server, and returns responses with any status."""

    def __init__(self, address, token=TOKEN):
        self.address = address
        self.session = requests.Session()
        if token:
            self.session.headers["Authorization"] = f"Bearer {token}"

    def ask(self, method, path, **more):
        """Any request."""
        return self.session.request(method, f"{self.address}{path}", timeout=180, **more)

    def get(self, path, **params):
        """The JSON of a response, which must have status 200."""
        return self.good(self.ask("GET", path, params=params))

    def infer(self, image, output="json", model="clnet", **params):
        """POST /infer/MODEL."""
        fields = {"params": (None, json.dumps(params))}
        query = {"image": image, "output": output}
        return self.ask("POST", f"/infer/{model}", params=query, files=fields)

    def put_label(self, pair_id, label):
        """Save a label."""
        return self.ask("PUT", f"/clnet/pairs/{pair_id}/label", json=label)

    def pair_of(self, image):
        """The pair with that CC image."""
        return next(pair for pair in self.get("/clnet/pairs")["pairs"] if pair["cc"] == image)

    @staticmethod
    def good(answer):
        """The JSON of a response, which must have status 200."""
        assert answer.status_code == 200, f"{answer.status_code} {answer.text}"
        return answer.json()


def labels_of(datalist):
    """The label of each pair of a datalist, by the name of its CC file."""
    content = json.loads(Path(datalist).read_text())
    return {
        Path(pair["cc"]["image"]).name: {
            view: {key: pair[view][key] for key in ("boxes", "lesion_ids")} for view in ("cc", "mlo")
        }
        for section in ("training", "validation", "test")
        for pair in content[section]
    }
