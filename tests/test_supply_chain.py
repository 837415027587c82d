"""What clnet is made of: pinned, hashed, and listed in its software bill of materials."""

import json
import re
import subprocess
from importlib.metadata import requires

import pytest
import sbom
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from page_commands import ROOT


def pins(name):
    """Name, version and marker of each requirement of a file, and its hashes."""
    text = (ROOT / name).read_text(encoding="utf-8").replace("\\\n", " ")
    found = {}
    for line in text.splitlines():
        if line.strip() and not line.startswith("#"):
            pin, *hashes = line.split(" --hash=sha256:")
            requirement = Requirement(pin.strip())
            key = (canonicalize_name(requirement.name), str(requirement.specifier), str(requirement.marker))
            found[key] = [value.strip() for value in hashes]
    return found


def test_every_version_that_is_pinned_has_hashes_but_pytorch():
    plain, hashed = pins("constraints.txt"), pins("constraints-hashed.txt")
    assert {key for key in plain if key not in hashed} == {("torch", "==2.13.0", "None")}
    assert hashed.keys() <= plain.keys()
    for key, hashes in hashed.items():
        assert hashes and all(re.fullmatch("[0-9a-f]{64}", value) for value in hashes), key


@pytest.mark.slow
def test_the_bill_of_materials_lists_all_that_clnet_needs_to_run_and_nothing_of_the_tests(tmp_path):
    done = subprocess.run(
        [ROOT / "scripts" / "sbom", tmp_path / "sbom.json"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    bill = json.loads((tmp_path / "sbom.json").read_text())
    assert (bill["bomFormat"], bill["metadata"]["component"]["name"]) == ("CycloneDX", "clnet")
    listed = {canonicalize_name(part["name"]): part["version"] for part in bill["components"]}
    needed = {canonicalize_name(Requirement(line).name) for line in requires("clnet") if "extra" not in line}
    assert needed <= listed.keys()
    assert {"sympy", "sqlalchemy", "requests"} <= listed.keys()  # what these need in turn
    assert not {"pytest", "ruff", "mypy", "selenium", "schemathesis", "cyclonedx-bom"} & listed.keys()
    assert listed["torch"].split("+")[0] == "2.13.0"
    refs = {part["bom-ref"] for part in bill["components"]} | {bill["metadata"]["component"]["bom-ref"]}
    assert {ref for edge in bill["dependencies"] for ref in edge.get("dependsOn", ())} <= refs
    assert str(ROOT) not in json.dumps(bill)


def test_packages_of_the_wheel_are_found_through_those_that_need_them():
    found = sbom.runtime_packages()
    assert {"clnet", "torch", "sympy", "mpmath"} <= found
    assert "pytest" not in found
