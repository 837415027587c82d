"""OHIF, a DICOM viewer, in a headless browser: its page is served beside the archive that it shows."""

import base64
import io
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from selenium.webdriver import ActionChains, Chrome
from selenium.webdriver.remote.webelement import WebElement
from servers import wait_for

DIST = Path(__file__).parent.parent / ".ohif" / "package" / "dist"  # ./scripts/setup_ohif
ARCHIVE = "/dicom-web"
CANVAS = "canvas.cornerstone-canvas"
# The image on the page; boxes with their text: those of a report, and the selected one if it has this label.
IMAGE = """const [shown] = window.cornerstone?.getEnabledElements() ?? [];
    return shown?.viewport.getCurrentImageId?.() ?? null"""
_LINES = "[...text.querySelectorAll('tspan')].map((line) => line.textContent)"
PREVIEW = f"""const boxes = document.querySelectorAll("svg.svg-layer polyline");
    return [...document.querySelectorAll("svg.svg-layer g[data-annotation-uid]")].map((text, place) => {{
        const {{x, y, width, height}} = boxes[place].getBBox();
        return [[x, y, x + width, y + height], {_LINES}]
    }})"""
SELECTED = f"""const [uid] = window.cornerstoneTools.annotation.selection.getAnnotationsSelected();
    const box = document.querySelector(`svg.svg-layer rect[data-id="${{uid}}-rect"]`);
    const text = document.querySelector(`svg.svg-layer g[data-annotation-uid="${{uid}}"]`);
    const measurement = window.services.measurementService.getMeasurement(uid);
    if (!box || !text || measurement.label !== arguments[0]) return null;
    const {{x, y, width, height}} = box.getBBox();
    return [[x, y, x + width, y + height], {_LINES}]"""
# Whether the lists of all studies are open; opens those that are not. The page opens some of them itself, at
# a moment of its own, so a click may close one: the next look opens it again.
OPENED = """const lists = [...document.querySelectorAll('[data-cy="TrackingHeader"]')];
    const closed = lists.filter((list) => list.getAttribute("aria-expanded") === "false");
    closed.forEach((list) => list.click());
    return lists.length > 0 && closed.length === 0"""
CONFIG = """window.config = {
  routerBasename: null, extensions: [], modes: [], showStudyList: true,
  customizationService: [{'ohif.tours': {$set: []}}],
  investigationalUseDialog: {option: 'never'},
  showCPUFallbackMessage: false, maxNumberOfWebWorkers: 1,
  defaultDataSourceName: 'archive',
  dataSources: [{
    namespace: '@ohif/extension-default.dataSourcesModule.dicomweb', sourceName: 'archive',
    configuration: {
      friendlyName: 'archive', name: 'archive',
      wadoUriRoot: '/dicom-web', qidoRoot: '/dicom-web', wadoRoot: '/dicom-web',
      qidoSupportsIncludeField: false, imageRendering: 'wadors', thumbnailRendering: 'wadors',
      enableStudyLazyLoad: true, supportsFuzzyMatching: false, supportsWildcard: true,
      bulkDataURI: {enabled: true}, omitQuotationForMultipartRequest: true,
    }}],
};"""


class _Handler(SimpleHTTPRequestHandler):
    """The files of OHIF, its configuration, and what the archive answers."""

    orthanc = ""

    def __init__(self, *words: Any) -> None:
        super().__init__(*words, directory=str(DIST))

    def log_message(self, *_: Any) -> None:
        pass

    def do_GET(self) -> None:
        if self.path.startswith(ARCHIVE):
            self._pass_on()
        elif self.path == "/app-config.js":
            self._answer(200, "text/javascript", CONFIG.encode())
        else:
            if not (DIST / self.path.partition("?")[0].lstrip("/")).is_file():
                self.path = "/index.html"  # a page of the application, such as /viewer
            super().do_GET()

    def _pass_on(self) -> None:
        names = ("Accept", "Host")  # Orthanc makes its links of the second
        headers = {name: self.headers[name] for name in names if name in self.headers}
        request = urllib.request.Request(f"{self.orthanc}{self.path}", headers=headers)  # noqa: S310
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310  loopback
                self._answer(answer.status, answer.headers["Content-Type"], answer.read())
        except urllib.error.HTTPError as error:
            self._answer(error.code, error.headers["Content-Type"], error.read())

    def _answer(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@contextmanager
def serve_ohif(orthanc: str) -> Iterator[str]:
    """OHIF on the loopback interface; yields its address.

    Args:
        orthanc: the address of the archive that it shows.
    """
    handler = type("Handler", (_Handler,), {"orthanc": orthanc})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@dataclass(frozen=True)
class Region:
    """A box on the page.

    Attributes:
        image: SOPInstanceUID of the image that it is drawn on.
        box: xyxy in pixels of the canvas.
        lines: the text beside it.
    """

    image: str
    box: tuple[float, ...]
    lines: tuple[str, ...]


class OhifPage:
    """The page of OHIF: what a person sees and does there.

    Args:
        browser: with WebGL.
        address: of `serve_ohif`.
    """

    def __init__(self, browser: Chrome, address: str) -> None:
        self.browser, self.address = browser, address

    def open(self, studies: Sequence[str], series: int) -> None:
        """Show studies, and wait for their series.

        Args:
            studies: their StudyInstanceUIDs.
            series: the number of series of all these studies.
        """
        self.browser.get("about:blank")
        self.errors()  # those of the page before
        self.browser.get(f"{self.address}/viewer?StudyInstanceUIDs={','.join(studies)}")
        wait_for(lambda: len(self._thumbnails()) >= series)
        wait_for(lambda: self.browser.execute_script(IMAGE))

    def series(self) -> list[str]:
        """What is written beside the thumbnail of each series."""
        return [entry.text for entry in self._thumbnails()]

    def show(self, words: str) -> None:
        """Double click on the series whose entry has these words."""
        (entry,) = (entry for entry in self._thumbnails() if words in entry.text)
        ActionChains(self.browser).double_click(entry).perform()

    def preview(self) -> list[Region]:
        """The boxes of the report that is shown, on the first image that has some."""
        drawn = wait_for(lambda: self.browser.execute_script(PREVIEW))
        return [Region(self.image(), tuple(box), tuple(lines)) for box, lines in drawn]

    def track(self) -> None:
        """Take over the boxes of the report that is shown as measurements, and open their list."""
        self._one("yes-hydrate-btn").click()
        self._one("trackedMeasurements-btn").click()
        wait_for(lambda: self.browser.execute_script(OPENED))

    def measurements(self) -> list[str]:
        """The labels in the list of measurements."""

        def labels() -> list[str]:
            titles = [title.text for title in self._find("data-row-title")]
            return titles if all(titles) else []  # lists that open show their text later

        return list(wait_for(labels))

    def select(self, label: str) -> None:
        """Click on a measurement in the list: the page goes to its image."""
        (title,) = (title for title in self._find("data-row-title") if title.text == label)
        self.browser.execute_script("arguments[0].click()", title)  # wherever the list has moved to

    def selected(self, label: str) -> Region:
        """The box of a measurement that was selected."""
        box, lines = wait_for(lambda: self.browser.execute_script(SELECTED, label))
        return Region(self.image(), tuple(box), tuple(lines))

    def image(self) -> str:
        """SOPInstanceUID of the image that is shown."""
        shown: str = self.browser.execute_script(IMAGE)
        return shown.split("/instances/")[1].split("/")[0]

    def text(self) -> str:
        """What the part of the page for images says."""
        return self._one("viewport-pane").text

    def pixels(self) -> NDArray[np.uint8]:
        """The canvas, grey [H, W]."""
        url = self.browser.execute_script(f"return document.querySelector('{CANVAS}').toDataURL('image/png')")
        picture = Image.open(io.BytesIO(base64.b64decode(url.partition(",")[2])))
        return np.asarray(picture.convert("L"))

    def errors(self) -> list[str]:
        """What the console calls an error, since the last time."""
        entries = self.browser.get_log("browser")
        return [entry["message"] for entry in entries if entry["level"] == "SEVERE"]

    def _thumbnails(self) -> list[WebElement]:
        return self._find("study-browser-thumbnail") + self._find("study-browser-thumbnail-no-image")

    def _one(self, name: str) -> WebElement:
        (found,) = wait_for(lambda: self._find(name))
        return found

    def _find(self, name: str) -> list[WebElement]:
        return self.browser.find_elements("css selector", f'[data-cy="{name}"]')
