"""Remakes the pictures in docs/images that are taken of pages: `python scripts/screenshots.py report [DIR]`.

DIR is the folder of an evaluation. Without one, a phantom is evaluated with findings that are made from its
truth: boxes moved, some masses missed, some tissue taken for a mass. Needs Debian's chromium and
chromium-driver, and Python's selenium.
"""

import sys
import tempfile
from pathlib import Path

import numpy as np

from clnet.data.datalist import read_datalist
from clnet.data.pair import Pair
from clnet.data.phantom import PhantomSettings, make_phantom
from clnet.evaluation.folder import evaluate_files, report_on_folder
from clnet.inference.findings import Attention, Detections, Findings, Link, PairFindings, write_findings

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests" / "evaluation"))
CANDIDATES = 12  # detections in a view


def made_up_findings(pairs: tuple[Pair, ...], rng: np.random.Generator) -> Findings:
    """Findings such as a fair detector with a linker would have."""
    return Findings("a made-up detector", tuple(_found(pair, rng) for pair in pairs))


def _found(pair: Pair, rng: np.random.Generator) -> PairFindings:
    boxes: dict[str, list[list[float]]] = {"cc": [], "mlo": []}
    scores: dict[str, list[float]] = {"cc": [], "mlo": []}
    ends: dict[str, dict[str, int]] = {}
    for name, view in pair.views.items():
        for box, lesion_id in zip(view.boxes.tolist(), view.lesion_ids, strict=True):
            if rng.random() < 0.12:
                continue
            side = box[2] - box[0]
            ends.setdefault(lesion_id, {})[name] = len(scores[name])
            boxes[name].append((np.array(box) + rng.normal(0, 0.06 * side, 4)).tolist())
            scores[name].append(float(1 / (1 + np.exp(-rng.normal(1.6, 1.2)))))
        mimics = pair.attributes["mimics"][name]
        while len(scores[name]) < CANDIDATES:
            if mimics and rng.random() < 0.3:
                corner, size = np.array(mimics[0][:2]), np.array(mimics[0][2:]) - mimics[0][:2]
                mimics, score = mimics[1:], rng.normal(-0.6, 1.2)
            else:
                corner, size, score = rng.uniform(30, 150, 2), rng.uniform(12, 34, 2), rng.normal(-3.6, 1.0)
            boxes[name].append([*corner, *(corner + size)])
            scores[name].append(float(1 / (1 + np.exp(-score))))
    links = [
        _link(seen.get("cc"), seen.get("mlo"), float(rng.uniform(0.55, 0.98)), rng) for seen in ends.values()
    ]
    wrong = [int(rng.integers(len(ends), CANDIDATES)) for _ in range(2)]
    links.append(_link(wrong[0], wrong[1], float(rng.uniform(0.05, 0.6)), rng))
    views = {name: Detections(boxes[name], scores[name]) for name in boxes}
    return PairFindings(pair.pair_id, **views, links=tuple(links))


def _link(cc: int | None, mlo: int | None, score: float, rng: np.random.Generator) -> Link:
    def weights(index: int | None) -> tuple[float, ...]:
        attended = rng.dirichlet(np.full(CANDIDATES + 1, 0.3)) * 0.45
        attended[CANDIDATES if index is None else index] += 0.55
        return tuple(np.round(attended, 3).tolist())

    return Link(cc, mlo, score, Attention(weights(cc), weights(mlo)))


def made_up_evaluation(folder: Path) -> Path:
    """Evaluate made-up findings on a phantom of 60 pairs; the folder of the evaluation."""
    make_phantom(folder / "phantom", PhantomSettings(pairs=60, seed=7))
    pairs = read_datalist(folder / "phantom")["training"]
    write_findings(made_up_findings(pairs, np.random.default_rng(7)), folder / "findings.json")
    evaluate_files(folder / "phantom", "training", folder / "findings.json", folder / "evaluation")
    return folder / "evaluation"


def report(evaluation: Path | None = None) -> None:
    """docs/images/report.png: the report with a link held, two screens of it one above the other."""
    from browser import open_browser
    from PIL import Image

    with tempfile.TemporaryDirectory() as temporary:
        page = (
            report_on_folder(evaluation)
            if evaluation
            else made_up_evaluation(Path(temporary)) / "report.html"
        )
        with open_browser(Path(temporary) / "profile", size=(1400, 1000)) as browser:
            browser.get(page.resolve().as_uri())
            browser.save_screenshot(str(Path(temporary) / "top.png"))
            browser.execute_script(
                "document.documentElement.style.scrollBehavior = 'auto';"
                "document.getElementById('viewer').scrollIntoView()"
            )
            browser.find_element("css selector", "#pair-links button").click()
            browser.save_screenshot(str(Path(temporary) / "viewer.png"))
        screens = [Image.open(Path(temporary) / name).convert("RGB") for name in ("top.png", "viewer.png")]
        sheet = Image.new("RGB", (screens[0].width, sum(screen.height for screen in screens)))
        sheet.paste(screens[0], (0, 0))
        sheet.paste(screens[1], (0, screens[0].height))
        sheet.quantize(160).save(ROOT / "docs" / "images" / "report.png", optimize=True)


if __name__ == "__main__":
    if sys.argv[1:2] != ["report"] or len(sys.argv) > 3:
        sys.exit(__doc__)
    report(*map(Path, sys.argv[2:]))
