"""The versions that a requirements file pins."""

from packaging.requirements import Requirement


def pins(file):
    """Name → version specifier of each requirement that applies here."""
    lines = [line.partition("#")[0].strip() for line in file.read_text().splitlines()]
    requirements = [Requirement(line) for line in lines if line]
    return {r.name.lower(): str(r.specifier) for r in requirements if r.marker is None or r.marker.evaluate()}


def differing_pins(one, two):
    """The packages that two files pin to different versions."""
    ours, theirs = pins(one), pins(two)
    return {name for name in ours.keys() & theirs.keys() if ours[name] != theirs[name]}
