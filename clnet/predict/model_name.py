"""The name of a model in findings."""

import hashlib
from pathlib import Path


def weights_digest(weights: str | Path) -> str:
    """Eight hexadecimal digits of the SHA-256 of the weights."""
    return hashlib.sha256(Path(weights).read_bytes()).hexdigest()[:8]


def model_name(variant: str, weights: str | Path) -> str:
    """Variant, run and a digest: ``clnet clnet-seed0/model.pt 1a2b3c4d``.

    Findings are shared, so that the name has no more of the path than the folder of the run.
    """
    weights = Path(weights).absolute()
    return f"{variant} {weights.parent.name}/{weights.name} {weights_digest(weights)}"
