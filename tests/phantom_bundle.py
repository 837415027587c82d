"""A bundle whose own model is that of the phantom, for tests of what is done with findings."""

import shutil
from pathlib import Path

BUNDLE = Path(__file__).parents[1] / "bundle"


def make_phantom_bundle(folder):
    """Make the bundle in a new folder, and give the folder back."""
    shutil.copytree(BUNDLE, folder)
    shutil.copy(folder / "models" / "phantom.pt", folder / "models" / "model.pt")
    config = folder / "configs" / "inference.yaml"
    config.write_text(config.read_text().replace("trained_by: film ", "trained_by: null "))
    return folder
