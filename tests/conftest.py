"""What holds for all tests; its place makes `tests/` importable, for the helpers that they share."""

import os
from contextlib import suppress
from pathlib import Path

with suppress(ImportError):  # the venvs of the apps have no hypothesis
    from hypothesis import settings

    settings.register_profile(
        "busy machine", deadline=None
    )  # time is measured by benchmarks, never by a test
    settings.load_profile("busy machine")

# MONAI imports transformers wherever it is installed, which costs each process that a test starts seconds.
# It is an extra of the tests, so these processes run without it, like those of users.
os.environ["PYTHONPATH"] = os.pathsep.join(
    [str(Path(__file__).parent / "without_transformers"), *filter(None, [os.environ.get("PYTHONPATH")])]
)

# Files that take longest come first, so that at the end no worker is left alone with one of them.
LONGEST_FIRST = [
    "test_wheel.py",
    "bundle/test_real_data_page.py",
    "test_house_rules.py",
    "scripts/test_ablation.py",
    "runs/test_overfit.py",
    "test_docs.py",
]


def pytest_collection_modifyitems(items):
    """Order files by `LONGEST_FIRST`; the rest as they are."""
    order = {Path(__file__).parent / name: rank for rank, name in enumerate(LONGEST_FIRST)}
    items.sort(key=lambda item: order.get(item.path, len(order)))
