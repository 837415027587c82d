"""Training over HTTP: a model with much to learn, and how to wait for the result."""

import torch
from servers import wait_for

QUICK = {"max_epochs": 4, "learning_rate": 0.003, "batch_size": 2}


def spoil(weights):
    """Reverse the ranking of the detections: the highest score becomes the lowest."""
    state = torch.load(weights, weights_only=True)
    state["detector.heads.2.classify.weight"] *= -1
    torch.save(state, weights)


def train(client, **params):
    assert client.ask("POST", "/train/clnet", json=params).status_code == 200


def finished(client):
    """The task, when it is over."""

    def over():
        task = client.get("/train/")
        return task if task["status"] in ("DONE", "ERROR", "STOPPED") else None

    return wait_for(over, seconds=400)


def said(client):
    """The last lines of a training."""
    return "\n".join(client.get("/train/").get("details", ()))
