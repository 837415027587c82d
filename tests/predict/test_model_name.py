"""What findings call their model: enough to tell it from others, and nothing of whose machine made it."""

import hashlib
from pathlib import Path

from clnet.predict.model_name import model_name


def weights_in(folder: Path, content: bytes) -> Path:
    folder.mkdir(parents=True)
    (folder / "model.pt").write_bytes(content)
    return folder / "model.pt"


def test_a_model_is_named_by_its_run_and_a_digest_of_its_weights(tmp_path):
    weights = weights_in(tmp_path / "jane" / "secret" / "clnet-seed0", b"weights")
    digest = hashlib.sha256(b"weights").hexdigest()[:8]
    assert model_name("clnet", str(weights)) == f"clnet clnet-seed0/model.pt {digest}"


def test_a_relative_path_is_named_as_an_absolute_one(tmp_path, monkeypatch):
    weights = weights_in(tmp_path / "clnet-seed0", b"weights")
    monkeypatch.chdir(weights.parent)
    assert model_name("vild", "model.pt") == model_name("vild", weights)


def test_other_weights_of_the_same_run_have_another_name(tmp_path):
    first = weights_in(tmp_path / "a" / "run", b"one")
    assert model_name("clnet", first) != model_name("clnet", weights_in(tmp_path / "b" / "run", b"two"))
