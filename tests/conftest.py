"""Its place makes `tests/` importable, for the helpers that test modules share."""

import os
from contextlib import suppress
from pathlib import Path

# MONAI imports transformers wherever it is installed, which costs each process that a test starts seconds.
# It is an extra of the tests, so these processes run without it, like those of users.
os.environ["PYTHONPATH"] = os.pathsep.join(
    [str(Path(__file__).parent / "without_transformers"), *filter(None, [os.environ.get("PYTHONPATH")])]
)

# How long an example takes depends on what else the machine does.
with suppress(ImportError):  # the venvs of the apps have no hypothesis
    from hypothesis import settings

    settings.register_profile("clnet", deadline=None)
    settings.load_profile("clnet")
