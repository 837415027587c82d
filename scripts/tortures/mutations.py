"""Damaged copies of a file, all of which follow from a random number generator."""

import copy
import io
import json
import random
from typing import Any

import pydicom

INTERESTING = (0x00, 0x01, 0x7F, 0x80, 0xFE, 0xFF)
NUMBERS = (
    "0",
    "-1",
    "1",
    "3",
    "255",
    "256",
    "32767",
    "65535",
    "1e308",
    "nan",
    "inf",
    "9" * 20,
    "",
)
TEXTS = ("", "\0", "x" * 2000, "\\" * 50, "Ünï\x1b[31m", "../../etc/passwd", "\udce9", "<script>", "%s%n")
JSON_VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 0.5, 1e308, -1e308, 2**63, 10**30, float("nan"), float("inf")),
    *("", "\0", "x" * 2000, "\ud800", "../../etc/passwd", [], {}, [[]], [0] * 100, {"": 0}, [None]),
)


def mutate_bytes(data: bytes, chance: random.Random) -> bytes:
    """A copy with one to four kinds of damage, near each other or anywhere."""
    changed = bytearray(data)
    for _ in range(chance.choice((1, 1, 1, 2, 4))):
        if not changed:
            break
        # Half of all damage is where the headers are.
        most = len(changed) if chance.random() < 0.5 else min(len(changed), 2048)
        at = chance.randrange(most)
        length = min(chance.choice((1, 1, 2, 4, 16, 64, 1024)), len(changed) - at)
        kind = chance.randrange(8)
        if kind == 0:
            del changed[at:]
        elif kind == 1:
            del changed[at : at + length]
        elif kind == 2:
            changed[at : at + length] = chance.randbytes(length)
        elif kind == 3:
            changed[at : at + length] = bytes([chance.choice(INTERESTING)]) * length
        elif kind == 4:
            changed[at] ^= 1 << chance.randrange(8)
        elif kind == 5:
            changed[at:at] = changed[at : at + length] * chance.choice((1, 2, 16))
        elif kind == 6:
            changed[at:at] = chance.randbytes(length)
        else:
            other = chance.randrange(len(changed))
            changed[at : at + length] = changed[other : other + length]
    return bytes(changed)


def mutate_dicom(data: bytes, chance: random.Random) -> bytes:
    """A well-formed DICOM file of which one to three tags have values that make no sense."""
    dataset = pydicom.dcmread(io.BytesIO(data))
    for _ in range(chance.randint(1, 3)):
        element = chance.choice([*dataset.file_meta, *dataset][1:])
        owner = dataset.file_meta if element.tag in dataset.file_meta else dataset
        if chance.random() < 0.15:
            del owner[element.tag]
        elif element.VR in ("US", "UL", "SS", "SL"):
            element.value = chance.choice((0, 1, 2, 3, 7, 15, 17, 255, 4096, 32767))
        elif element.VR in ("DS", "IS"):
            owner.add(pydicom.DataElement(element.tag, "LO", chance.choice(NUMBERS)[:60]))
        elif element.VR in ("OB", "OW"):
            element.value = mutate_bytes(element.value, chance)
        elif element.VR == "SQ":
            element.value = []
        else:
            owner.add(pydicom.DataElement(element.tag, element.VR, chance.choice((*TEXTS[:5], *NUMBERS[:9]))))
    file = io.BytesIO()
    dataset.save_as(file, enforce_file_format=False)
    return file.getvalue()


def mutate_json(data: bytes, chance: random.Random) -> bytes:
    """A copy in which one to three values, keys or lists of the JSON are others."""
    content = json.loads(data)
    for _ in range(chance.randint(1, 3)):
        owner, key = chance.choice(list(_places(content)))
        kind = chance.randrange(5)
        if kind == 0:
            del owner[key]
        elif kind == 1 and isinstance(owner, dict):
            owner[chance.choice((*TEXTS[:5], "boxes", "schema"))] = owner.pop(key)
        elif kind == 2 and isinstance(owner, list):
            owner.insert(key, copy.deepcopy(owner[key]))
        else:
            owner[key] = copy.deepcopy(chance.choice(JSON_VALUES))  # as later damage may change it
        if not content:
            break
    text = json.dumps(content)
    if chance.random() < 0.02:  # deeper than a parser can follow, and longer than a number may be
        text = text.replace("1", chance.choice(("[" * 100_000, "1" * 5000)), 1)
    return text.encode()


def _places(content: Any) -> Any:
    """Every (container, key) of a JSON value."""
    keys = list(content) if isinstance(content, dict) else list(range(len(content)))
    for key in keys:
        yield content, key
        if isinstance(content[key], dict | list):
            yield from _places(content[key])
