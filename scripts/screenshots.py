"""Remakes the pictures in docs/images that are taken of pages.

    python scripts/screenshots.py report DIR       of the evaluation in a folder
    python scripts/screenshots.py mlflow OUTPUT    of the ablation in an output folder, by MLflow's own page
    python scripts/screenshots.py viewer DIR       of reports in OHIF, on a phantom that it makes in a folder

Needs Debian's chromium and chromium-driver, and Python's selenium.
"""

import io
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pydicom
from browser import open_browser
from mlflow import MlflowClient
from ohif import OhifPage, serve_ohif
from PIL import Image
from selenium.webdriver.common.by import By
from servers import ask_orthanc, start_orthanc

from clnet.evaluation.folder import report_on_folder
from clnet.phantom import PhantomSettings, make_phantom
from clnet.predict.folder_run import PredictSettings, predict

ROOT = Path(__file__).parent.parent
IMAGES = ROOT / "docs" / "images"
GAP = 8  # pixels between two screens
PORT = 5123
VIEWER = (1500, 1150)
COLOURS = 256


def report(evaluation: Path) -> None:
    """docs/images/report.png: the head of the page, and below it the viewer with a link held."""
    page = report_on_folder(evaluation)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
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
    both.save(IMAGES / "report.png", optimize=True)


def _hold_a_link(browser: Any) -> None:
    """Go to the first pair whose surest link is right, and choose it; stay at the last if there is none."""
    while browser.find_element("id", "next").is_enabled():
        links = browser.find_elements("css selector", "#pair-links li")
        if links and "right" in links[0].text and "dustbin" not in links[0].text:
            break
        browser.find_element("id", "next").click()
    browser.find_element("css selector", "body").send_keys("l")


def mlflow(output: Path) -> None:
    """docs/images/mlflow.png: the curves of the ablation's second seeds, in MLflow's chart view."""
    store = f"sqlite:///{output.resolve()}/mlflow.db"
    experiment = MlflowClient(store).get_experiment_by_name("clnet-ablation")
    if experiment is None:
        sys.exit(f"{output} has no experiment clnet-ablation; ./scripts/ablation makes it")
    server = subprocess.Popen(
        [sys.executable, "-m", "mlflow", "ui", "--backend-store-uri", store, "--port", str(PORT)]
    )
    address = f"http://127.0.0.1:{PORT}"
    try:
        _wait(lambda: urllib.request.urlopen(address).status == 200)
        with (
            tempfile.TemporaryDirectory() as profile,
            open_browser(Path(profile), size=(1500, 1150)) as browser,
        ):
            browser.get(
                f"{address}/#/experiments/{experiment.experiment_id}/runs"
                "?compareRunsMode=CHART&searchFilter=attributes.run_name%20LIKE%20%27%25seed1-12epochs%27"
            )
            search = "input[placeholder*='Search metric charts']"
            _wait(lambda: browser.find_elements(By.CSS_SELECTOR, search))
            for close in browser.find_elements(By.CSS_SELECTOR, "[aria-label='Close'], [aria-label='close']"):
                close.click()
            children = "[data-component-id*='runnamecellrenderer']"  # of the one parent run
            _wait(lambda: browser.find_elements(By.CSS_SELECTOR, children))
            browser.find_element(By.CSS_SELECTOR, children).click()
            browser.find_element(By.CSS_SELECTOR, search).send_keys("validation/recall_iou0.5")
            time.sleep(8)  # the charts draw themselves, and tell nobody when they are done
            # Tools of the charts, which without a mouse stay in front of the curves.
            browser.execute_script(
                "document.querySelectorAll('.modebar').forEach(bar => { bar.style.display = 'none' })"
            )
            browser.save_screenshot(str(IMAGES / "mlflow.png"))
    finally:
        server.terminate()
        server.wait()


def viewer(folder: Path) -> None:
    """docs/images/viewer_*.png: a report, its measurements on both views, and one that found nothing."""
    make_phantom(folder / "phantom", PhantomSettings(4))
    folder.joinpath("archive").mkdir()
    with (
        start_orthanc(folder / "archive") as orthanc,
        serve_ohif(orthanc) as address,
        open_browser(folder / "profile", VIEWER, webgl=True) as browser,
    ):
        studies = {}
        for number, min_score in enumerate((1.0, 0.05)):
            files = sorted((folder / "phantom" / "images").glob(f"0000{number}_*.dcm"))
            studies[min_score] = pydicom.dcmread(files[0]).StudyInstanceUID
            output = folder / f"output{number}"
            settings = PredictSettings("phantom", min_score=min_score)
            predict(folder / "phantom" / "images", output, settings)
            for file in [*files, *output.glob("studies/*/*.dcm")]:
                if pydicom.dcmread(file).StudyInstanceUID == studies[min_score]:
                    ask_orthanc(orthanc, "/instances", file.read_bytes())

        page = OhifPage(browser, address)
        page.open([studies[0.05]], series=7)
        page.show("CL-Net masses")
        page.preview()
        _keep(browser, "viewer_report")
        page.track()
        browser.execute_script(
            "window.commandsManager.run('setViewportGridLayout', {numRows: 1, numCols: 2})"
        )
        page.select(page.measurements()[0])
        _keep(browser, "viewer_linked")
        page.open([studies[1.0]], series=7)
        page.show("CL-Net masses")
        _wait(lambda: "Qualitative" in page.text())
        _keep(browser, "viewer_none")


def _keep(browser: Any, name: str) -> None:
    """Save what a page that moves no more shows."""
    time.sleep(5)
    picture = Image.open(io.BytesIO(browser.get_screenshot_as_png())).convert("RGB")
    picture.quantize(COLOURS).save(IMAGES / f"{name}.png", optimize=True)


def _wait(condition: Callable[[], Any], seconds: float = 90) -> None:
    """Until something is true; errors on the way are not."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            if condition():
                return
        except OSError:
            pass
        time.sleep(0.5)
    sys.exit(f"not there after {seconds} s")


if __name__ == "__main__":
    pictures = {"report": report, "mlflow": mlflow, "viewer": viewer}
    if len(sys.argv) != 3 or sys.argv[1] not in pictures:
        sys.exit(__doc__)
    pictures[sys.argv[1]](Path(sys.argv[2]))
