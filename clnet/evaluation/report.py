"""The report of an evaluation: one self-contained HTML file that needs no network.

It consists of the files in ``report_page`` and of data as JSON: one block with all numbers, and one per pair
of the viewer, which is parsed only when the pair is shown.
"""

import base64
import html
import io
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from PIL import Image
from tqdm import tqdm

from clnet import __version__
from clnet.data.header import may_show_text
from clnet.data.image_errors import ImageError
from clnet.data.pair import VIEW_NAMES, Pair, View
from clnet.data.pictures import to_grey
from clnet.data.reader import read_image
from clnet.errors import ClnetError
from clnet.evaluation.error_types import ERROR_TYPES, Error
from clnet.evaluation.protocols import find_protocol, protocol_words
from clnet.evaluation.record import iou_words
from clnet.evaluation.report_pairs import shown_pairs, worst_first
from clnet.evaluation.tables import UNIT_NAMES
from clnet.files import write_text
from clnet.findings.types import Findings

FILE_NAME = "report.html"
MAX_PAIRS = 200
"""The default number of pairs in the viewer. A pair of films takes about 50 kB."""
PICTURE_SIDE = 800  # pixels of the longer side
JPEG_QUALITY = 80
MAX_THREADS = 8  # each holds a film of some hundred megabytes
PAGE = Path(__file__).with_name("report_page")
SCRIPTS = (
    "elements.js",
    "tables.js",
    "curve.js",
    "drawing.js",
    "facts.js",
    "viewer.js",
    "gallery.js",
    "page.js",
)


class ReportPageError(ClnetError):
    """A report that cannot be written; the message says why."""


class Picture(NamedTuple):
    """An image in the report."""

    rows: int
    """Rows and columns are those of the stored image."""
    columns: int
    jpeg: str
    """Base64, its longer side at most `PICTURE_SIDE`."""


def write_report(
    folder: Path,
    metrics: Mapping[str, Any],
    errors: Sequence[Error],
    pairs: Sequence[Pair],
    findings: Findings,
    max_pairs: int = MAX_PAIRS,
) -> Path:
    """Write the report of an evaluation and return its path. The same evaluation gives the same bytes.

    Args:
        folder: the folder to write to.
        metrics: the content of ``metrics.json``.
        errors: all errors of the evaluation.
        pairs: the section that was evaluated.
        findings: the findings that were evaluated.
        max_pairs: the maximum number of pairs in the viewer; those with the worst errors come first.
    """
    if max_pairs < 0:
        raise ReportPageError(f"max_pairs is {max_pairs}; expected 0 or more")
    numbers = worst_first(pairs, errors, max_pairs)
    iou, matching = metrics["errors"]["iou"], metrics["settings"]["matching"]
    shown = list(shown_pairs(pairs, numbers, findings, errors, iou, matching)) if numbers else []
    pictures = _pictures([pairs[number] for number in numbers])
    for pair, of_pair in zip(shown, pictures, strict=True):
        for name, picture in of_pair.items():
            view = pair["views"][name]
            view["picture"] = picture.jpeg if picture else None
            if picture:
                view["rows"], view["columns"] = picture.rows, picture.columns
    path = folder / FILE_NAME
    write_text(path, _page(_overview(metrics, pairs, shown), shown))
    return path


def _overview(
    metrics: Mapping[str, Any], pairs: Sequence[Pair], shown: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """Everything that the report shows apart from single pairs."""
    views = [view for pair in shown for view in pair["views"].values() if view]
    scores = np.array([score for view in views for score in view["scores"]])
    settings = metrics["settings"]
    protocol = find_protocol(settings["protocol"])
    kept = ("settings", "counts", "detection", "links", "errors", "subgroups")
    return {
        "model": _without_ids(metrics["model"], pairs),
        "data": {"name": _without_ids(metrics["data"]["name"], pairs), "section": metrics["data"]["section"]},
        **{name: metrics[name] for name in kept},
        "protocol": protocol_words(settings),
        "protocol_description": protocol.description,
        "overlaps": {key: iou_words(key, settings["matching"]) for key in metrics["detection"]},
        "version": __version__,
        "rates": protocol.shown_rates,
        "units": UNIT_NAMES,
        "error_types": ERROR_TYPES,
        "viewer": {
            "pairs": len(pairs),
            "views": len(views),
            "pictures": sum(view["picture"] is not None for view in views),
            "score_range": [float(scores.min()), float(scores.max())] if len(scores) else [0.0, 1.0],
        },
        "shown": [{name: pair[name] for name in ("number", "laterality", "errors")} for pair in shown],
    }


def _without_ids(text: str, pairs: Sequence[Pair]) -> str:
    """A free text without the ids of these pairs and patients."""
    ids = {name for pair in pairs for name in (pair.pair_id, pair.patient_id) if name in text}
    for name in sorted(ids, key=len, reverse=True):
        text = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", "…", text)
    return text


def _page(overview: Mapping[str, Any], shown: Sequence[Mapping[str, Any]]) -> str:
    parts = {
        "title": html.escape(f"{overview['model']} on {overview['data']['name']}"),
        "style": (PAGE / "page.css").read_text(encoding="utf-8"),
        "script": "\n".join((PAGE / name).read_text(encoding="utf-8") for name in SCRIPTS),
        "data": _json_block("overview", overview)
        + "".join(_json_block(f"pair-{place}", pair) for place, pair in enumerate(shown)),
    }
    page = (PAGE / "page.html").read_text(encoding="utf-8")
    # In one pass, so that filled-in text is never taken for a placeholder.
    return re.sub(r"\[\[(\w+)\]\]", lambda match: parts[match[1]], page)


def _json_block(name: str, content: Any) -> str:
    """A script element with JSON. Without `<`, nothing in it can close the element or open another."""
    text = json.dumps(content, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")
    return f'<script type="application/json" id="{name}">{text}</script>\n'


def _pictures(pairs: Sequence[Pair]) -> Iterator[dict[str, Picture | None]]:
    """The pictures of each pair by view; None for an image that cannot be read or may name the patient."""
    views = [view for pair in pairs for view in pair.views.values()]
    with ThreadPoolExecutor(min(os.cpu_count() or 1, MAX_THREADS)) as pool:
        made = iter(
            tqdm(pool.map(_picture, views), "report", len(views), unit="image", disable=None, leave=False)
        )
        for pair in pairs:
            yield {name: next(made) for name in VIEW_NAMES if name in pair.views}


def _picture(view: View) -> Picture | None:
    try:
        image = read_image(view.image)
    except ImageError:
        return None
    if may_show_text(image.header.warnings):
        return None
    picture = to_grey(image.pixels)
    picture.thumbnail((PICTURE_SIDE, PICTURE_SIDE), Image.Resampling.LANCZOS)
    file = io.BytesIO()
    picture.save(file, "JPEG", quality=JPEG_QUALITY, optimize=True)
    rows, columns = image.pixels.shape
    return Picture(rows, columns, base64.b64encode(file.getvalue()).decode("ascii"))
