"""Remakes the pictures in docs/images that are taken of pages.

    python scripts/screenshots.py report DIR       of the evaluation in a folder
    python scripts/screenshots.py mlflow OUTPUT    of the ablation in an output folder, by MLflow's own page

Needs Debian's chromium and chromium-driver, and Python's selenium.
"""

import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

from browser import open_browser
from mlflow import MlflowClient
from PIL import Image
from selenium.webdriver.common.by import By

from clnet.evaluation.folder import report_on_folder

ROOT = Path(__file__).parent.parent
IMAGES = ROOT / "docs" / "images"
GAP = 8  # pixels between two screens
PORT = 5123


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
    pictures = {"report": report, "mlflow": mlflow}
    if len(sys.argv) != 3 or sys.argv[1] not in pictures:
        sys.exit(__doc__)
    pictures[sys.argv[1]](Path(sys.argv[2]))
