"""The datalist: the JSON format that every converter writes and every workflow reads.

Its schema is ``datalist.schema.json``, next to this file. Paths are relative to the datalist, so that a data
set and its datalist can be moved as one folder.
"""

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema

from clnet.data.pair import Pair, PairError, View
from clnet.errors import ClnetError
from clnet.files import write_text

SECTIONS = ("training", "validation", "test")
SCHEMA_VERSION = 1


class DatalistError(ClnetError):
    """An invalid datalist; the message names file, section, pair and key."""


@dataclass(frozen=True)
class Datalist:
    """A named set of pairs in sections. All pairs of a patient are in one section.

    Attributes:
        name: of the data set, for reports.
        sections: pairs by section ("training", "validation", "test").
    """

    name: str
    sections: Mapping[str, tuple[Pair, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        unknown = set(self.sections) - set(SECTIONS)
        if unknown:
            raise DatalistError(f"unknown section {min(unknown)!r}; a datalist has {', '.join(SECTIONS)}")
        sections = {name: tuple(self.sections.get(name, ())) for name in SECTIONS}
        object.__setattr__(self, "sections", sections)
        section_of_patient: dict[str, str] = {}
        section_of_pair: dict[str, str] = {}
        for section, pairs in sections.items():
            for pair in pairs:
                first = section_of_patient.setdefault(pair.patient_id, section)
                if first != section:
                    raise DatalistError(
                        f"patient {pair.patient_id!r} is in {first} and in {section} "
                        f"(pair {pair.pair_id!r}); a patient belongs to one section"
                    )
                if pair.pair_id in section_of_pair:
                    raise DatalistError(
                        f"pair_id {pair.pair_id!r} appears twice, in {section_of_pair[pair.pair_id]} "
                        f"and in {section}; pair ids must be unique"
                    )
                section_of_pair[pair.pair_id] = section

    def __getitem__(self, section: str) -> tuple[Pair, ...]:
        if section not in self.sections:
            raise DatalistError(f"unknown section {section!r}; a datalist has {', '.join(SECTIONS)}")
        return self.sections[section]

    def items(self, section: str) -> list[dict[str, Any]]:
        """The pairs of a section as dictionaries for the transforms."""
        return [pair.to_item() for pair in self[section]]


def read_datalist(path: str | Path) -> Datalist:
    """Read and validate a datalist, or the ``datalist.json`` in a folder."""
    path = Path(path)
    if path.is_dir():
        path = path / "datalist.json"
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise DatalistError(
            f"{path}: no such file; give a datalist, or a folder with a datalist.json"
        ) from None
    except (OSError, ValueError, RecursionError) as error:
        raise DatalistError(f"{path}: cannot be read as JSON: {error}") from error
    problem = jsonschema.exceptions.best_match(_validator().iter_errors(content))
    if problem:
        raise DatalistError(f"{path}: at {_place(content, problem.absolute_path)}: {problem.message}")
    try:
        sections = {
            section: tuple(_pair_from_json(pair, path.parent) for pair in content.get(section, ()))
            for section in SECTIONS
        }
        return Datalist(content["name"], sections)
    except (PairError, DatalistError) as error:
        raise DatalistError(f"{path}: {error}") from error


def write_datalist(datalist: Datalist, path: str | Path) -> None:
    """Write a datalist, one line per pair, with image paths relative to the file.

    The same datalist gives the same bytes.
    """
    path = Path(path)
    entries = [f'"schema": {SCHEMA_VERSION}', f'"name": {_json(datalist.name)}']
    for section, pairs in datalist.sections.items():
        lines = ",".join(f"\n  {_json(_pair_to_json(pair, path.parent))}" for pair in pairs)
        entries.append(f'"{section}": [{lines}]')
    write_text(path, "{" + ",\n ".join(entries) + "}\n")


def split_by_patient(
    pairs: Iterable[Pair], fractions: Mapping[str, float], seed: int = 0
) -> dict[str, tuple[Pair, ...]]:
    """Split pairs into sections, with all pairs of a patient in the same section.

    Patients are ordered by a hash of seed and id, so the split depends neither on the order of the pairs nor
    on the machine.

    Args:
        pairs: the pairs of a data set.
        fractions: the share of patients in each section, such as ``{"training": 0.8, "validation": 0.2}``.
        seed: another seed gives another split.
    """
    if any(share < 0 for share in fractions.values()) or abs(sum(fractions.values()) - 1) > 1e-6:
        raise DatalistError(f"fractions are {dict(fractions)}; expected shares from 0 to 1 that sum to 1")
    pairs = list(pairs)
    patients = sorted(
        {pair.patient_id for pair in pairs}, key=lambda p: hashlib.sha256(f"{seed}:{p}".encode()).digest()
    )
    section_of: dict[str, str] = {}
    start, share = 0, 0.0
    for section, fraction in fractions.items():
        share += fraction
        end = int(share * len(patients) + 0.5)
        section_of.update(dict.fromkeys(patients[start:end], section))
        start = end
    return {
        section: tuple(pair for pair in pairs if section_of[pair.patient_id] == section)
        for section in fractions
    }


@cache
def _validator() -> jsonschema.Draft202012Validator:
    schema = json.loads(Path(__file__).with_name("datalist.schema.json").read_text(encoding="utf-8"))
    return jsonschema.Draft202012Validator(schema)


def _place(content: Any, path: Iterable[str | int]) -> str:
    """A readable path into the JSON: training[3] (pair 'x') cc boxes[0]."""
    words = ""
    for key in path:
        content = content[key]
        words += f"[{key}]" if isinstance(key, int) else f" {key}"
        if isinstance(content, dict) and isinstance(content.get("pair_id"), str):
            words += f" (pair {content['pair_id']!r})"
    return words.strip() or "the top level"


def _pair_from_json(content: Mapping[str, Any], folder: Path) -> Pair:
    def view(name: str) -> View | None:
        given = content.get(name)
        if given is None:
            return None
        size = given.get("size")
        try:
            return View(
                image=folder / given["image"],
                boxes=given.get("boxes", ()),
                lesion_ids=given.get("lesion_ids", ()),
                size=(size[0], size[1]) if size else None,
                pixel_size=given.get("pixel_size"),
            )
        except PairError as error:
            raise PairError(f"pair {content['pair_id']!r}, {name}: {error}") from error

    return Pair(
        pair_id=content["pair_id"],
        patient_id=content["patient_id"],
        laterality=content["laterality"],
        cc=view("cc"),
        mlo=view("mlo"),
        links=content.get("links", {}),
        attributes=content.get("attributes", {}),
    )


def _pair_to_json(pair: Pair, folder: Path) -> dict[str, Any]:
    def view(given: View | None) -> dict[str, Any] | None:
        if given is None:
            return None
        content: dict[str, Any] = {"image": Path(os.path.relpath(given.image, folder)).as_posix()}
        if given.size:
            content["size"] = list(given.size)
        if given.pixel_size:
            content["pixel_size"] = [_plain(number) for number in given.pixel_size]
        content["boxes"] = [[_plain(number) for number in box] for box in given.boxes.tolist()]
        content["lesion_ids"] = list(given.lesion_ids)
        return content

    return {
        "pair_id": pair.pair_id,
        "patient_id": pair.patient_id,
        "laterality": pair.laterality,
        "cc": view(pair.cc),
        "mlo": view(pair.mlo),
        "links": dict(pair.links),
        "attributes": dict(pair.attributes),
    }


def _json(content: Any) -> str:
    return json.dumps(content, ensure_ascii=False)


def _plain(number: float) -> int | float:
    """Whole numbers without a trailing .0, to keep the file readable."""
    return int(number) if number == int(number) else number
