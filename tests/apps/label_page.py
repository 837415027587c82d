"""The annotation page in a browser: what a user sees and does there."""

import io
import json
import sys
import time
from pathlib import Path
from urllib.parse import quote

import numpy as np
from label_client import Client
from label_server import TOKEN
from PIL import Image
from selenium.webdriver import ActionChains
from selenium.webdriver.common.actions.action_builder import ActionBuilder
from selenium.webdriver.common.actions.mouse_button import MouseButton
from selenium.webdriver.common.actions.wheel_input import ScrollOrigin
from selenium.webdriver.common.by import By

from clnet.phantom.dicom import ImageIdentity, write_dicom

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))
from browser import missing_programs, open_browser  # noqa: F401  for the tests of the page

ROWS, COLUMNS = 2600, 1800
TARGETS = {"cc": (300, 900, 620, 1400), "mlo": (700, 1500, 1000, 1810)}  # white on black
PATIENCE = 120  # seconds; a first answer of the model may take long on a busy machine
MARGIN = 8  # pixels that the page leaves free around an image that fits
# Found and measured in one step: the page may redraw its marks at any time.
PLACE = """const [found, ...more] = document.querySelectorAll(arguments[0]);
    if (!found || more.length) throw new Error(`${arguments[0]}: ${found ? "several" : "none"}`);
    const r = found.getBoundingClientRect(); return [r.left, r.top, r.right, r.bottom]"""


class LabelPage:
    """The page of a server in a window of the given size."""

    def __init__(self, browser, address, size=(1280, 800), token=TOKEN):
        self.browser, self.address, self.client = browser, address, Client(address)
        width, height = size
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        if token:
            browser.get(f"{address}/clnet/#token={quote(token)}")

    # The server.

    def pair(self, pair_id):
        """A pair, as the server returns it."""
        return self.client.get(f"/clnet/pairs/{pair_id}")

    def label(self, pair_id):
        """The saved label, or None."""
        return self.pair(pair_id)["label"]

    def findings(self, pair_id, min_score=0.3):
        """The model's findings in a pair."""
        return self.client.get(f"/clnet/pairs/{pair_id}/findings", min_score=min_score)["lesions"]

    # What a user sees.

    def open(self, pair_id=""):
        """Reload the page with a pair, and wait for its views and findings."""
        self.load(pair_id)
        return self.settle()

    def load(self, pair_id=""):
        """Reload the page with a pair."""
        self.browser.get("about:blank")  # else another pair would not reload the page
        for kind in ("browser", "performance"):
            self.browser.get_log(kind)
        self.browser.get(f"{self.address}/clnet/#{quote(pair_id, safe='')}")

    def settle(self):
        """Wait until the requested pair is shown."""
        self.wait(lambda: self.text("#pair-side"), "the pair")
        self.next_frame()
        loading = (
            "return [...document.querySelectorAll('.view .instead')].some((e) => /Load/.test(e.innerText))"
        )
        self.wait(lambda: not self.browser.execute_script(loading), "the images")
        self.wait(lambda: "running" not in self.text("#model-words"), "the model")
        self.next_frame()
        return self

    def wait(self, condition, what):
        """Wait until a condition holds."""
        until = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < until, f"{what} did not come"
            time.sleep(0.02)

    def find(self, selector):
        """All elements that match a selector."""
        return self.browser.find_elements(By.CSS_SELECTOR, selector)

    def one(self, selector):
        """The only element that matches a selector."""
        (element,) = self.find(selector)
        return element

    def text(self, selector):
        """The text of an element."""
        return self.one(selector).text

    def place(self, selector):
        """(left, top, right, bottom) on the screen."""
        return self.browser.execute_script(PLACE, selector)

    def pane(self, view):
        """(left, top, right, bottom) of a view on the screen."""
        return self.place(f"#view-{view}")

    def marks(self, kind, name):
        """(view, lesion or finding) → where the box is on the screen."""
        script = f"""return [...document.querySelectorAll("#overlay rect[data-kind={kind}]")].map((rect) => {{
            const r = rect.getBoundingClientRect();
            return [rect.dataset.view, rect.dataset.{name}, [r.left, r.top, r.right, r.bottom]]; }})"""
        return {(view, of): place for view, of, place in self.browser.execute_script(script)}

    def boxes(self):
        """The label's boxes on the screen."""
        return self.marks("box", "lesion")

    def model_boxes(self):
        """The model's boxes on the screen, without those that the label covers."""
        return self.marks("model", "finding")

    def links(self, kind="link"):
        """The links that are drawn."""
        return self.find(f"#overlay path[data-kind={kind}]")

    def ends(self, selector):
        """Where a link begins and ends on the screen."""
        return self.browser.execute_script(
            """const path = document.querySelector(arguments[0]), at = path.getScreenCTM();
            const length = path.getTotalLength();
            return [0, length].map((way) => path.getPointAtLength(way).matrixTransform(at))
                              .map(({x, y}) => [x, y])""",
            selector,
        )

    def fitted(self, view, size):
        """(scale, left, top) of an image of {rows, columns} that is shown whole in the middle of a pane."""
        left, top, right, bottom = self.pane(view)
        width, height = right - left, bottom - top
        scale = min((width - 2 * MARGIN) / size["columns"], (height - 2 * MARGIN) / size["rows"])
        return (
            scale,
            left + (width - scale * size["columns"]) / 2,
            top + (height - scale * size["rows"]) / 2,
        )

    def on_screen(self, view, size, box):
        """Where a box in pixels of a fitted image is on the screen."""
        scale, left, top = self.fitted(view, size)
        return [edge * scale + (top if side % 2 else left) for side, edge in enumerate(box)]

    def greys(self, view):
        """Grey values [rows, columns] of a pane on the screen, without its border and the text in it."""
        screen = Image.open(io.BytesIO(self.browser.get_screenshot_as_png())).convert("L")
        left, top, right, bottom = (round(edge) for edge in self.pane(view))
        return np.asarray(screen.crop((left + 2, top + 34, right - 2, bottom - 34))), (left + 2, top + 34)

    # What a user does.

    def press(self, *keys):
        """Press one key after the other."""
        self.one("body").send_keys(*keys)
        self.next_frame()

    def click(self, selector):
        """Click an element."""
        self.one(selector).click()
        self.next_frame()

    def click_at(self, x, y):
        """Click a point of the screen."""
        self.drag((x, y), (x, y))

    def press_with(self, held, key):
        """Press a key while another is held."""
        ActionChains(self.browser).key_down(held).send_keys(key).key_up(held).perform()
        self.next_frame()

    def drag(self, start, end, button=MouseButton.LEFT, held=None):
        """Drag with a stop on the way, as by hand, and optionally with a key held down."""
        if held:
            ActionChains(self.browser).key_down(held).perform()
        actions = ActionBuilder(self.browser, duration=10)
        mouse = actions.pointer_action
        mouse.move_to_location(*map(round, start))
        mouse.pointer_down(button)
        if start != end:
            mouse.move_to_location(*(round((a + b) / 2) for a, b in zip(start, end, strict=True)))
            mouse.move_to_location(*map(round, end))
        mouse.pointer_up(button)
        actions.perform()
        if held:
            ActionChains(self.browser).key_up(held).perform()
        self.next_frame()

    def wheel(self, view, x, y, units):
        """Turn the wheel at a point of a pane, relative to its upper left corner."""
        pane = self.one(f"#view-{view}")
        left, top, right, bottom = self.pane(view)
        origin = ScrollOrigin.from_element(pane, round(x - (right - left) / 2), round(y - (bottom - top) / 2))
        ActionChains(self.browser, duration=10).scroll_from_origin(origin, 0, units).perform()
        self.next_frame()

    def next_frame(self):
        """Wait until the last change is drawn."""
        self.browser.execute_async_script("requestAnimationFrame(() => requestAnimationFrame(arguments[0]))")

    def save(self):
        """Save, and wait until the page confirms it."""
        self.press("s")
        self.wait(lambda: self.text("#save") == "Saved", "the confirmation")

    def requests(self):
        """The URLs requested since the page was opened."""
        events = [json.loads(entry["message"])["message"] for entry in self.browser.get_log("performance")]
        return [e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"]

    def errors(self):
        """The errors on the console since the page was opened."""
        return [e["message"] for e in self.browser.get_log("browser") if e["level"] == "SEVERE"]


def write_targets(images):
    """A pair of black images, each with one white rectangle: the boxes drawn around them are known."""
    for view, (left, top, right, bottom) in TARGETS.items():
        pixels = np.zeros((ROWS, COLUMNS), np.uint16)
        pixels[top:bottom, left:right] = 4000
        identity = ImageIdentity("targets", 77, "L", view)
        write_dicom(images / f"target_{view}.dcm", pixels, 0.1, 0.0, "A", identity)


def draw_around_target(page, view):
    """Drag from corner to corner of the white rectangle on the screen."""
    greys, (left, top) = page.greys(view)
    rows, columns = np.nonzero(greys > 128)
    page.drag(
        (left + columns.min(), top + rows.min()),
        (left + columns.max() + 1, top + rows.max() + 1),
    )


def middle(place):
    left, top, right, bottom = place
    return (left + right) / 2, (top + bottom) / 2
