"""Remakes the pictures in docs/images that are taken of pages: `python scripts/screenshots.py report [DIR]`.

DIR is the folder of an evaluation. Without one, a phantom is evaluated with findings that are made from its
truth: boxes moved, some masses missed, some tissue taken for a mass. Needs Debian's chromium and
chromium-driver, and Python's selenium.
"""

import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from clnet.data.datalist import read_datalist
from clnet.data.pair import Pair
from clnet.data.phantom import PhantomSettings, make_phantom
from clnet.evaluation.folder import evaluate_files, report_on_folder
from clnet.inference.findings import Attention, Detections, Findings, Link, PairFindings, write_findings

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests" / "evaluation"))
CANDIDATES = 12  # detections in a view
GAP = 8  # pixels between two screens


def made_up_findings(pairs: tuple[Pair, ...], rng: np.random.Generator) -> Findings:
    """Findings such as a fair detector with a linker would have."""
    return Findings("a made-up detector", tuple(_found(pair, rng) for pair in pairs))


def _found(pair: Pair, rng: np.random.Generator) -> PairFindings:
    """Most lesions with a box near theirs, the tissue that looks like one, and what nobody believes."""
    boxes: dict[str, list[list[float]]] = {}
    logits: dict[str, list[float]] = {}
    found: dict[str, dict[str, int]] = {}
    for name, view in pair.views.items():
        kept = [n for n in range(len(view.boxes)) if rng.random() < 0.9]
        for index, n in enumerate(kept):
            found.setdefault(view.lesion_ids[n], {})[name] = index
        side = view.boxes[kept, 2:3] - view.boxes[kept, :1]
        boxes[name] = (view.boxes[kept] + rng.normal(0, 0.13, (len(kept), 4)) * side).tolist()
        logits[name] = rng.normal(2, 1.4, len(kept)).tolist()
        mimics = pair.attributes["mimics"][name]
        boxes[name] += mimics
        logits[name] += rng.normal(-1.2, 1.3, len(mimics)).tolist()
        while len(boxes[name]) < CANDIDATES:
            corner = rng.uniform((20, 90), (90, 200)) + ((0, 0) if pair.laterality == "L" else (80, 0))
            boxes[name].append([*corner, *(corner + rng.uniform(12, 34, 2))])
            logits[name].append(rng.normal(-4, 1))
    links = [_link(ends.get("cc"), ends.get("mlo"), rng.uniform(0.6, 1), rng) for ends in found.values()]
    links.append(_link(*map(int, rng.integers(len(found), CANDIDATES, 2)), rng.uniform(0.1, 0.6), rng))
    views = {name: Detections(boxes[name], 1 / (1 + np.exp(-np.array(logits[name])))) for name in pair.views}
    return PairFindings(pair.pair_id, **views, links=tuple(links))


def _link(cc: int | None, mlo: int | None, score: float, rng: np.random.Generator) -> Link:
    def weights(index: int | None) -> tuple[float, ...]:
        attended = rng.dirichlet(np.full(CANDIDATES + 1, 0.3)) * 0.45
        attended[CANDIDATES if index is None else index] += 0.55
        return tuple(np.round(attended, 3).tolist())

    return Link(cc, mlo, float(score), Attention(weights(cc), weights(mlo)))


def made_up_evaluation(folder: Path) -> Path:
    """Evaluate made-up findings on a phantom of 60 pairs; the folder of the evaluation."""
    make_phantom(folder / "phantom", PhantomSettings(pairs=60, seed=7))
    pairs = read_datalist(folder / "phantom")["training"]
    write_findings(made_up_findings(pairs, np.random.default_rng(7)), folder / "findings.json")
    evaluate_files(folder / "phantom", "training", folder / "findings.json", folder / "evaluation")
    return folder / "evaluation"


def report(evaluation: Path | None = None) -> None:
    """docs/images/report.png: the head of the page, and below it the viewer with a link held."""
    from browser import open_browser

    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        page = report_on_folder(evaluation) if evaluation else made_up_evaluation(folder) / "report.html"
        with open_browser(folder / "profile", size=(1400, 1110)) as browser:
            browser.get(page.resolve().as_uri())
            browser.save_screenshot(str(folder / "head.png"))
            browser.execute_script("document.getElementById('viewer').scrollIntoView()")
            _hold_a_link(browser)
            browser.save_screenshot(str(folder / "viewer.png"))
        screens = [Image.open(folder / name).convert("RGB") for name in ("head.png", "viewer.png")]
    width, height = screens[0].size
    both = Image.new("RGB", (width, 2 * height + GAP), "#b9b6b0")
    for place, screen in enumerate(screens):
        both.paste(screen, (0, place * (height + GAP)))
    both.save(ROOT / "docs" / "images" / "report.png", optimize=True)


def _hold_a_link(browser: Any) -> None:
    """Go to the first pair whose surest link is right, and choose it; stay at the last if there is none."""
    while browser.find_element("id", "next").is_enabled():
        links = browser.find_elements("css selector", "#pair-links li")
        if links and "right" in links[0].text and "dustbin" not in links[0].text:
            break
        browser.find_element("id", "next").click()
    browser.find_element("css selector", "body").send_keys("l")


if __name__ == "__main__":
    if sys.argv[1:2] != ["report"] or len(sys.argv) > 3:
        sys.exit(__doc__)
    report(*map(Path, sys.argv[2:]))
