"""What a site runs on is what everything else here is tested with."""

from pathlib import Path

from apps.pins import differing_pins, pins

ROOT = Path(__file__).parents[2]
REQUIREMENTS = ROOT / "clnet" / "apps" / "federated" / "requirements.txt"


def test_versions_are_those_of_constraints_txt():
    assert differing_pins(REQUIREMENTS, ROOT / "constraints.txt") == set()
    assert {"nvflare", "torch", "monai"} <= set(pins(REQUIREMENTS))


def test_packages_that_two_apps_share_are_of_one_version():
    assert differing_pins(REQUIREMENTS, ROOT / "clnet" / "apps" / "label" / "requirements.txt") == set()
