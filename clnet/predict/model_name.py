"""What findings call the model that made them."""

import hashlib
from pathlib import Path


def weights_digest(weights: str | Path) -> str:
    """Eight letters that other weights do not have."""
    return hashlib.sha256(Path(weights).read_bytes()).hexdigest()[:8]


def model_name(variant: str, weights: str | Path) -> str:
    """Variant, run and a digest: ``clnet clnet-seed0/model.pt 1a2b3c4d``.

    Findings are passed on and reports are put on walls: where the file is on whose machine stays here.
    """
    weights = Path(weights).absolute()
    return f"{variant} {weights.parent.name}/{weights.name} {weights_digest(weights)}"
