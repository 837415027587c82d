"""Draws docs/images/film.png: a mass that was found and linked, one that was missed, and a false positive.

    python scripts/film_figure.py EVALUATION [--min-score S] [--image FILE]

EVALUATION is the folder of an evaluation of the film model. Shown are breasts with one mass in each view and
what `clnet predict` reports about them. Of each kind the breast is taken whose score is nearest to the median
of its kind, not the best:

found           the mass is found in both views and linked, nothing else is reported; the score of the lesion
missed          the mass is found in neither view; the highest score of a detection on it, 0 without one
false positive  the mass is found in a view, and a lesion is reported that is on no mass; its score
"""

import argparse
from collections.abc import Iterable, Mapping
from pathlib import Path
from statistics import median
from typing import NamedTuple

import numpy as np
from monai.bundle.config_parser import ConfigParser
from PIL import Image, ImageDraw, ImageFont

from clnet.boxes import box_iou
from clnet.data.datalist import read_datalist
from clnet.data.pair import VIEW_NAMES, Pair
from clnet.data.pictures import INK, PAPER
from clnet.data.reader import read_image
from clnet.evaluation.folder import read_metrics
from clnet.findings.lesions import Lesion, merge_into_lesions
from clnet.findings.types import PairFindings, read_findings
from clnet.reports.picture import findings_picture

ROOT = Path(__file__).parent.parent
IOU = 0.2
HEIGHT, LETTER, SPACE = 560, 28, 40  # pixels
TITLES = {
    "found": "found in both views and linked",
    "missed": "missed in both views",
    "false positive": "with a false positive",
}
LEGEND = "Solid, with scores: the model. Dashed white: the radiologists. One name in both views: one lesion."
SOURCE = "CBIS-DDSM, {section} section, Sawyer-Lee et al. 2016, CC BY 3.0, reduced."


class Example(NamedTuple):
    """A breast with what is reported about it; the score decides which of its kind is shown."""

    kind: str
    score: float
    pair: Pair
    lesions: list[Lesion]


def examples(pairs: Iterable[Pair], findings: Mapping[str, PairFindings], min_score: float) -> list[Example]:
    """The breasts with one mass in each view that are of one of the kinds."""
    found = []
    for pair in pairs:
        if len(pair.views) == 2 and all(len(view.boxes) == 1 for view in pair.views.values()):
            found += _example(pair, findings[pair.pair_id], min_score)
    return found


def _example(pair: Pair, found: PairFindings, min_score: float) -> list[Example]:
    lesions = merge_into_lesions(found, min_score)
    hits = [{name for name in lesion.views if _on_mass(pair, name, lesion)} for lesion in lesions]
    false = [lesion.score for lesion, hit in zip(lesions, hits, strict=True) if not hit]
    if not any(hits):
        overlaps = [
            (float(score), float(box_iou(box[None], pair.views[name].boxes)[0, 0]))
            for name, view in found.views.items()
            for box, score in zip(view.boxes, view.scores, strict=True)
        ]
        best = max((score for score, overlap in overlaps if overlap >= IOU), default=0.0)
        return [Example("missed", best, pair, lesions)]
    if false:
        return [Example("false positive", max(false), pair, lesions)]
    if len(lesions) == 1 and hits[0] == set(VIEW_NAMES):
        return [Example("found", lesions[0].score, pair, lesions)]
    return []


def _on_mass(pair: Pair, name: str, lesion: Lesion) -> bool:
    box = np.array([lesion.views[name].box], np.float32)
    return float(box_iou(box, pair.views[name].boxes)[0, 0]) >= IOU


def nearest_to_median(found: Iterable[Example], kind: str) -> Example:
    """Of a kind the example whose score is nearest to the median; of equal ones the first by id."""
    of_kind = [example for example in found if example.kind == kind]
    if not of_kind:
        raise SystemExit(f"no breast of the kind {kind!r}")
    middle = median(example.score for example in of_kind)
    return min(of_kind, key=lambda example: (abs(example.score - middle), example.pair.pair_id))


def draw(chosen: Iterable[Example], section: str) -> Image.Image:
    """The breasts side by side, with a legend and the source below."""
    pictures = [
        findings_picture(
            {name: read_image(view.image).pixels for name, view in example.pair.views.items()},
            example.lesions,
            TITLES[example.kind],
            {name: view.boxes.tolist() for name, view in example.pair.views.items()},
            side=example.pair.laterality,
            height=HEIGHT,
            letter=LETTER,
        )
        for example in chosen
    ]
    width = sum(picture.width for picture in pictures) + SPACE * (len(pictures) - 1)
    page = Image.new("RGB", (width, pictures[0].height + 4 * LETTER), PAPER)
    left = 0
    for picture in pictures:
        page.paste(picture, (left, 0))
        left += picture.width + SPACE
    words = f"{LEGEND}\n{SOURCE.format(section=section)}"
    font = ImageFont.load_default(size=LETTER)
    ImageDraw.Draw(page).multiline_text((8, pictures[0].height + LETTER), words, fill=INK, font=font)
    return page


def main() -> None:
    """Choose the breasts, say which, and draw them."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("evaluation", type=Path, metavar="EVALUATION", help="folder of an evaluation")
    parser.add_argument("--min-score", type=float, metavar="S", help="of lesions (default: the bundle's)")
    parser.add_argument("--image", type=Path, default=ROOT / "docs" / "images" / "film.png", metavar="FILE")
    options = parser.parse_args()
    config = ConfigParser.load_config_file(ROOT / "bundle" / "configs" / "inference.yaml")
    min_score = config["min_score"] if options.min_score is None else options.min_score
    data = read_metrics(options.evaluation)["data"]
    findings = {pair.pair_id: pair for pair in read_findings(options.evaluation / data["findings"])}
    pairs = read_datalist(options.evaluation / data["datalist"])[data["section"]]
    found = examples(pairs, findings, min_score)
    chosen = [nearest_to_median(found, kind) for kind in TITLES]
    for example in chosen:
        count = sum(other.kind == example.kind for other in found)
        print(f"{example.kind}: {example.pair.pair_id}, score {example.score:.2f}, one of {count}")
    draw(chosen, data["section"]).save(options.image, optimize=True)


if __name__ == "__main__":
    main()
