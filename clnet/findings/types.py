"""Findings: what a system says about pairs of images, in the pixels of the stored files.

Inference writes this file and evaluation reads it; any other system may write it too::

    {"schema": 1, "model": "…", "pairs": [
      {"pair_id": "…",
       "views": {"cc": {"boxes": [[x_min, y_min, x_max, y_max], …], "scores": […]}, "mlo": {…}},
       "links": [{"cc": 0, "mlo": 3, "score": 0.91}, {"cc": 1, "mlo": null, "score": 0.40}]}]}

Links point at boxes by their index; null is the dustbin: not seen in that view. A view that was not looked at
is null or absent. A link may say where the linker looked, a weight for each box of a view and one, the last,
for the dustbin: ``"attention": {"cc": [0.9, 0.06, 0.04], "mlo": […]}``. A pair may have a ``"consistency"``
from 0 to 1: how well its two views fit together, see `clnet.findings.consistency`. Every object here is
checked when it is made.
"""

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from clnet.data.pair import VIEW_NAMES
from clnet.errors import ClnetError
from clnet.files import write_text

SCHEMA_VERSION = 1
FINDINGS_FILE = "findings.json"  # in the folders of runs, evaluations and predictions


class FindingsError(ClnetError):
    """Findings that cannot be used; the message names file, pair, view, index and value."""


@dataclass(frozen=True)
class Detection:
    """One box in a view.

    Attributes:
        box: (x_min, y_min, x_max, y_max) in pixels of the stored image.
        score: of the box; higher is surer.
        index: its place among the detections of the view.
    """

    box: tuple[float, float, float, float]
    score: float
    index: int


@dataclass(frozen=True, eq=False)
class Detections:
    """What was found in one view.

    Attributes:
        boxes: [n, 4] float32, xyxy in pixels of the stored image (see `clnet.boxes`). They may pass the edge
            of the image and may have no area; such boxes hit nothing.
        scores: [n] float64, finite; higher is surer. Only their order counts, so logits will do.
    """

    boxes: NDArray[np.float32] = field(default_factory=lambda: np.zeros((0, 4), np.float32))
    scores: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))

    def __post_init__(self) -> None:
        boxes = _numbers(self.boxes, (4,), "boxes", "[x_min, y_min, x_max, y_max]", np.float32)
        scores = _numbers(self.scores, (), "scores", "a number", np.float64)
        object.__setattr__(self, "boxes", boxes)
        object.__setattr__(self, "scores", scores)
        if len(boxes) != len(scores):
            raise FindingsError(f"{len(boxes)} boxes but {len(scores)} scores; each box needs a score")
        senseless = ~np.isfinite(boxes).all(1) | (boxes[:, 0] > boxes[:, 2]) | (boxes[:, 1] > boxes[:, 3])
        if senseless.any():
            index = int(senseless.argmax())
            raise FindingsError(
                f"boxes[{index}] is {boxes[index].tolist()}; expected finite [x_min, y_min, x_max, y_max] "
                "with x_min <= x_max and y_min <= y_max"
            )
        if not np.isfinite(scores).all():
            index = int((~np.isfinite(scores)).argmax())
            raise FindingsError(f"scores[{index}] is {scores[index]}; a finite number is expected")

    def __len__(self) -> int:
        return len(self.scores)

    def __getitem__(self, index: int) -> Detection:
        x_min, y_min, x_max, y_max = _shortest(self.boxes[index])
        return Detection((x_min, y_min, x_max, y_max), float(self.scores[index]), index)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Detections):
            return NotImplemented
        return np.array_equal(self.boxes, other.boxes) and np.array_equal(self.scores, other.scores)


class Attention(NamedTuple):
    """Where the linker looked for a link: weights in [0, 1] on the n boxes of each view, then on the dustbin.

    The n + 1 weights of a view sum to 1, less what went to boxes that were not written.
    """

    cc: tuple[float, ...]
    mlo: tuple[float, ...]


@dataclass(frozen=True)
class Link:
    """One lesion across the views.

    Attributes:
        cc, mlo: the index of its box in each view; None for the dustbin.
        score: how sure.
        attention: of the linker, where the system has one and it was asked for.
    """

    cc: int | None
    mlo: int | None
    score: float
    attention: Attention | None = None


@dataclass(frozen=True)
class PairFindings:
    """What was found in one breast.

    Attributes:
        pair_id: of the datalist.
        cc, mlo: what was found in each view; None where the view was not looked at.
        links: which detections are the same lesion.
        consistency: in [0, 1], how well the two views fit together; None if nobody asked, or for one view.
    """

    pair_id: str
    cc: Detections | None = None
    mlo: Detections | None = None
    links: tuple[Link, ...] = ()
    consistency: float | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.pair_id, str) or not self.pair_id:
            raise FindingsError(f"pair_id is {self.pair_id!r}; a text is expected")
        object.__setattr__(self, "links", tuple(self.links))
        if self.consistency is not None and not _is_share(self.consistency):
            raise FindingsError(
                f"pair {self.pair_id!r}: consistency is {_short(self.consistency)}; a number from 0 to 1 is "
                "expected"
            )
        for number, link in enumerate(self.links):
            where = f"pair {self.pair_id!r}: links[{number}]"
            for view in VIEW_NAMES:
                index, detections = getattr(link, view), getattr(self, view)
                count = len(detections) if detections else 0
                if index is not None and (type(index) is not int or not 0 <= index < count):
                    raise FindingsError(
                        f"{where}: {view} is {index!r}; expected null or the index of one of "
                        f"the {count} boxes of the view"
                    )
            if link.cc is None and link.mlo is None:
                raise FindingsError(f"{where}: cc and mlo are both null; a link names at least one box")
            if isinstance(link.score, bool) or not isinstance(link.score, int | float):
                raise FindingsError(f"{where}: score is {link.score!r}; a number is expected")
            if not math.isfinite(link.score):
                raise FindingsError(f"{where}: score is {link.score}; a finite number is expected")
            if link.attention is not None:
                self._check_attention(link.attention, where)

    def _check_attention(self, attention: Attention, where: str) -> None:
        for view in VIEW_NAMES:
            detections, weights = getattr(self, view), np.array(getattr(attention, view))
            count = len(detections) if detections else 0
            if weights.shape != (count + 1,):
                raise FindingsError(
                    f"{where}: attention has {len(weights)} weights in {view}; expected {count + 1}, "
                    "one for each box and the last for the dustbin"
                )
            outside = ~((weights >= 0) & (weights <= 1))
            if outside.any():
                index = int(outside.argmax())
                raise FindingsError(
                    f"{where}: attention, {view}[{index}] is {weights[index]}; "
                    "a weight from 0 to 1 is expected"
                )

    @property
    def views(self) -> dict[str, Detections]:
        """The views that were looked at, by name."""
        return {name: view for name in VIEW_NAMES if (view := getattr(self, name)) is not None}


@dataclass(frozen=True)
class Findings:
    """The findings of one model on a set of pairs, each of which appears once."""

    model: str
    pairs: tuple[PairFindings, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "pairs", tuple(self.pairs))
        seen: set[str] = set()
        for pair in self.pairs:
            if pair.pair_id in seen:
                raise FindingsError(f"pair {pair.pair_id!r} appears twice; a pair has one entry")
            seen.add(pair.pair_id)

    def __iter__(self) -> Iterator[PairFindings]:
        return iter(self.pairs)

    def __len__(self) -> int:
        return len(self.pairs)


def read_findings(path: str | Path) -> Findings:
    """Read and check a findings file."""
    content = read_json(path)
    try:
        return _findings_from_json(content)
    except FindingsError as error:
        raise FindingsError(f"{path}: {error}") from error


def read_json(path: str | Path) -> Any:
    """The content of a JSON file with findings."""
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise FindingsError(f"{path}: no such file; give a findings file") from None
    except (OSError, ValueError, RecursionError) as error:
        raise FindingsError(f"{path}: cannot be read as JSON: {error}") from error


def write_findings(findings: Findings, path: str | Path) -> None:
    """Write a findings file, a line for each pair. The same findings give the same bytes."""
    lines = ",".join(f"\n  {json.dumps(_pair_to_json(pair), ensure_ascii=False)}" for pair in findings)
    model = json.dumps(findings.model, ensure_ascii=False)
    write_text(path, f'{{"schema": {SCHEMA_VERSION},\n "model": {model},\n "pairs": [{lines}]}}\n')


# A JSON schema would take minutes over a million boxes, and would not say which of them is wrong in words.
def _findings_from_json(content: Any) -> Findings:
    _check_keys(content, "the top", required=("schema", "model", "pairs"))
    if content["schema"] != SCHEMA_VERSION:
        raise FindingsError(f"schema is {content['schema']!r}; this version reads {SCHEMA_VERSION}")
    if not isinstance(content["model"], str):
        raise FindingsError(f"model is {content['model']!r}; a text is expected")
    if not isinstance(content["pairs"], list):
        raise FindingsError(f"pairs is {_short(content['pairs'])}; a list is expected")
    return Findings(
        content["model"], tuple(map(_pair_from_json, content["pairs"], range(len(content["pairs"]))))
    )


def _pair_from_json(content: Any, number: int) -> PairFindings:
    _check_keys(content, f"pairs[{number}]", required=("pair_id", "views"), optional=("links", "consistency"))
    where = f"pair {content['pair_id']!r}"
    _check_keys(content["views"], f"{where}, views", optional=VIEW_NAMES)
    links = content.get("links", [])
    if not isinstance(links, list):
        raise FindingsError(f"{where}: links is {_short(links)}; a list is expected")
    views = {}
    for name, view in content["views"].items():
        if view is None:
            continue
        _check_keys(view, f"{where}, {name}", required=("boxes", "scores"))
        try:
            views[name] = Detections(view["boxes"], view["scores"])
        except FindingsError as error:
            raise FindingsError(f"{where}, {name}: {error}") from error
    made = tuple(_link_from_json(link, f"{where}, links[{index}]") for index, link in enumerate(links))
    return PairFindings(content["pair_id"], **views, links=made, consistency=content.get("consistency"))


def _link_from_json(content: Any, where: str) -> Link:
    _check_keys(content, where, required=("cc", "mlo", "score"), optional=("attention",))
    if content.get("attention") is None:
        return Link(content["cc"], content["mlo"], content["score"])
    where = f"{where}, attention"
    _check_keys(content["attention"], where, required=VIEW_NAMES)
    try:
        weights = [
            tuple(_numbers(content["attention"][view], (), view, "a weight", np.float64).tolist())
            for view in VIEW_NAMES
        ]
    except FindingsError as error:
        raise FindingsError(f"{where}: {error}") from error
    return Link(content["cc"], content["mlo"], content["score"], Attention(*weights))


def _pair_to_json(pair: PairFindings) -> dict[str, Any]:
    def view(detections: Detections | None) -> dict[str, Any] | None:
        if detections is None:
            return None
        boxes = [_shortest(box) for box in detections.boxes]
        return {"boxes": boxes, "scores": detections.scores.tolist()}

    content: dict[str, Any] = {
        "pair_id": pair.pair_id,
        "views": {name: view(getattr(pair, name)) for name in VIEW_NAMES},
        "links": [_link_to_json(link) for link in pair.links],
    }
    if pair.consistency is not None:
        content["consistency"] = pair.consistency
    return content


def _link_to_json(link: Link) -> dict[str, Any]:
    content: dict[str, Any] = {"cc": link.cc, "mlo": link.mlo, "score": link.score}
    if link.attention is not None:
        content["attention"] = link.attention._asdict()
    return content


def _check_keys(
    content: Any, where: str, required: tuple[str, ...] = (), optional: tuple[str, ...] = ()
) -> None:
    if not isinstance(content, Mapping):
        raise FindingsError(f"{where} is {_short(content)}; an object is expected")
    for key in required:
        if key not in content:
            raise FindingsError(f"{where}: {key!r} is missing")
    for key in content:
        if key not in required and key not in optional:
            raise FindingsError(f"{where}: unknown key {key!r}; expected {', '.join((*required, *optional))}")


def _numbers(values: Any, entry_shape: tuple[int, ...], name: str, expected: str, dtype: Any) -> NDArray[Any]:
    """An array [n, *entry_shape]; the error names the first entry that does not fit."""
    array = _array(values)
    if array is not None and array.size == 0 and array.ndim <= 1 + len(entry_shape):
        return np.zeros((0, *entry_shape), dtype)
    if array is not None and array.dtype.kind in "fiu" and array.shape[1:] == entry_shape and array.ndim:
        with np.errstate(over="ignore"):  # what becomes infinite is refused as such
            return array.astype(dtype)
    for index, value in enumerate(values if isinstance(values, list | tuple) else ()):
        entry = _array(value)
        if entry is None or entry.dtype.kind not in "fiu" or entry.shape != entry_shape:
            raise FindingsError(f"{name}[{index}] is {_short(value)}; {expected} is expected")
    raise FindingsError(f"{name} is {_short(values)}; a list with {expected} each is expected")


def _shortest(box: NDArray[np.float32]) -> list[float]:
    """The shortest decimals that read back as the same float32."""
    return [float(str(edge)) for edge in box]


def _array(values: Any) -> NDArray[Any] | None:
    try:
        return np.asarray(values)
    except ValueError:  # ragged
        return None


def _is_share(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1


def _short(value: Any) -> str:
    words = repr(value)
    return words if len(words) <= 80 else f"{words[:77]}…"
