"""Draws what the film model links in breasts with several masses, for a person to judge.

    python scripts/look_at_links.py FILMS [--output DIR]

Nobody has annotated which mass is which in these breasts, so a person looks at 30 of them: all of the test
and validation sections, then of the training section in the order of their ids. DIR (default output/links)
gets a picture of each. docs/evidence/links_by_eye.json lists the links between the views; the judgement of
each is written there by hand: "plausible", "wrong", or "undecided". Judgements of the same links are kept.
./scripts/ablation puts them on the page.
"""

import argparse
import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from monai.bundle.config_parser import ConfigParser
from PIL import Image
from record_files import read, write
from shipped import ROOT, evaluate_shipped

from clnet.data.datalist import Datalist, read_datalist, write_datalist
from clnet.data.pair import VIEW_NAMES, Pair
from clnet.data.pictures import PAPER
from clnet.data.reader import read_image
from clnet.findings.lesions import merge_into_lesions
from clnet.findings.types import FINDINGS_FILE, PairFindings, read_findings
from clnet.reports.picture import findings_picture

BREASTS = 30
SECTIONS = ("test", "validation", "training")
JUDGEMENTS = ROOT / "docs" / "evidence" / "links_by_eye.json"
SHEET = ROOT / "docs" / "images" / "links_by_eye.jpg"
COLUMNS, HEIGHT, LETTER = 5, 420, 16


def chosen_of(datalist: Datalist) -> list[tuple[str, Pair]]:
    """Breasts with both views and several masses in one of them, each with its section."""
    found = [
        (section, pair)
        for section in SECTIONS
        for pair in sorted(datalist[section], key=lambda pair: pair.pair_id)
        if len(pair.views) == 2 and max(len(view.boxes) for view in pair.views.values()) > 1
    ]
    return found[:BREASTS]


def draw(section: str, pair: Pair, found: PairFindings, min_score: float) -> tuple[Image.Image, int]:
    """A picture of a breast, and how many lesions of it have a box in both views."""
    lesions = merge_into_lesions(found, min_score)
    linked = [lesion for lesion in lesions if set(lesion.views) == set(VIEW_NAMES)]
    picture = findings_picture(
        {name: read_image(view.image).pixels for name, view in pair.views.items()},
        linked,
        f"{pair.pair_id}, {section}",
        {name: view.boxes.tolist() for name, view in pair.views.items()},
        side=pair.laterality,
        height=HEIGHT,
        letter=LETTER,
    )
    return picture, len(linked)


def sheet(pictures: Iterable[Image.Image]) -> Image.Image:
    """The pictures in rows."""
    pictures = list(pictures)
    width, height = (max(getattr(picture, side) for picture in pictures) for side in ("width", "height"))
    rows = -(-len(pictures) // COLUMNS)
    page = Image.new("RGB", (COLUMNS * width, rows * height), PAPER)
    for place, picture in enumerate(pictures):
        page.paste(picture, (place % COLUMNS * width, place // COLUMNS * height))
    return page


def judged(links: dict[tuple[str, str], int], weights: str, before: dict[str, Any]) -> dict[str, Any]:
    """What is to be judged, with the judgements of earlier looks at the same model."""
    known = (
        {breast["pair"]: breast["links"] for breast in before["breasts"]}
        if before.get("weights") == weights
        else {}
    )
    breasts = [
        {"pair": pair, "section": section, "links": known.get(pair, [""] * number)}
        for (section, pair), number in links.items()
    ]
    return {"weights": weights, "breasts": breasts}


def main() -> None:
    """Evaluate, draw, and list the links."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("films", type=Path, metavar="FILMS", help="films with a datalist")
    parser.add_argument("--output", type=Path, default=ROOT / "output" / "links", metavar="DIR")
    options = parser.parse_args()
    output = options.output.absolute()
    chosen = chosen_of(read_datalist(options.films))
    (output / "data").mkdir(parents=True, exist_ok=True)
    pairs = Datalist("several masses", {"test": tuple(pair for _, pair in chosen)})
    write_datalist(pairs, output / "data" / "datalist.json")
    folder = evaluate_shipped(output / "data", output, "links", "test", "clnet-links", configs=("film",))
    findings = {found.pair_id: found for found in read_findings(folder / FINDINGS_FILE)}
    min_score = ConfigParser.load_config_file(ROOT / "bundle" / "configs" / "inference.yaml")["min_score"]
    links, unseen = {}, []
    for section, pair in chosen:
        picture, number = draw(section, pair, findings[pair.pair_id], min_score)
        picture.save(output / f"{pair.pair_id}.png")
        links[section, pair.pair_id] = number
        if section != "training":
            unseen.append(picture)
    sheet(unseen).save(SHEET, quality=80)
    weights = hashlib.sha256((ROOT / "bundle" / "models" / "model.pt").read_bytes()).hexdigest()
    write(JUDGEMENTS, judged(links, weights, read(JUDGEMENTS) if JUDGEMENTS.exists() else {}))
    print(f"{sum(links.values())} links in {len(links)} breasts: {output}; judge them in {JUDGEMENTS}")


if __name__ == "__main__":
    main()
