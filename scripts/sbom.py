"""The software bill of materials of clnet: every package that it needs to run, with version and licence.

cyclonedx-py describes a whole environment; packages that only tests and scripts need are left out of it.
"""

import json
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent


def runtime_packages() -> set[str]:
    """The names of clnet and of everything that it requires without extras, directly or not."""
    found: set[str] = set()
    waiting = [Requirement("clnet")]
    while waiting:
        requirement = waiting.pop()
        names = {canonicalize_name(requirement.name), *map(canonicalize_name, requirement.extras)}
        if names <= found:
            continue
        found.add(canonicalize_name(requirement.name))
        try:
            needed = distribution(requirement.name).requires or ()
        except PackageNotFoundError:  # not needed on this machine, such as what only Windows has
            found.discard(canonicalize_name(requirement.name))
            continue
        for line in needed:
            further = Requirement(line)
            extras = requirement.extras or {""}
            if further.marker is None or any(further.marker.evaluate({"extra": extra}) for extra in extras):
                waiting.append(further)
    return found


def bill_of_materials() -> dict[str, Any]:
    """The CycloneDX document."""
    command = [sys.executable, "-m", "cyclonedx_py", "environment", "--pyproject", ROOT / "pyproject.toml"]
    words = [*command, "--output-reproducible", sys.executable]
    said = subprocess.run(list(map(str, words)), capture_output=True, text=True, check=True)
    bill: dict[str, Any] = json.loads(said.stdout)
    needed = runtime_packages()
    bill["components"] = [
        part for part in bill["components"] if canonicalize_name(part["name"]) in needed - {"clnet"}
    ]
    kept = {bill["metadata"]["component"]["bom-ref"], *(part["bom-ref"] for part in bill["components"])}
    bill["dependencies"] = [
        {
            **edge,
            **(
                {"dependsOn": [ref for ref in edge["dependsOn"] if ref in kept]}
                if "dependsOn" in edge
                else {}
            ),
        }
        for edge in bill["dependencies"]
        if edge["ref"] in kept
    ]
    return bill


def main(words: list[str]) -> None:
    """Write it to the file that is named."""
    (file,) = words
    bill = bill_of_materials()
    Path(file).write_text(json.dumps(bill, indent=1) + "\n", encoding="utf-8")
    print(f"{len(bill['components'])} packages written to {file}")


if __name__ == "__main__":
    main(sys.argv[1:])
