"""Remakes docs/images/label.png: the annotation page with one finding accepted and the others to review.

python tests/apps/label_picture.py    needs what the tests of the page need, and about two minutes
"""

import io
import tempfile
from pathlib import Path

from label_page import LabelPage, middle, open_browser
from label_server import ROOT, start_server
from PIL import Image

from clnet.phantom.dataset import PhantomSettings, make_phantom

SIZE = (1440, 900)
PHANTOM = PhantomSettings(pairs=8, seed=5, rows=1600, columns=1120)
SHOWN, LABELLED = "00000_L_CC.dcm", ("00001_L_CC.dcm", "00001_R_CC.dcm", "00003_L_CC.dcm")


def take(folder):
    """The picture, of a phantom and a server in a folder of their own."""
    make_phantom(folder / "phantom", PHANTOM)
    with (
        start_server(folder / "phantom" / "images", folder / "app") as address,
        open_browser(folder / "profile") as browser,
    ):
        page = LabelPage(browser, address, SIZE)
        pairs = {pair["cc"]: pair["pair_id"] for pair in page.client.get("/clnet/pairs")["pairs"]}
        for name in LABELLED:
            page.open(pairs[name]).press("a")
            page.save()
        page.open(pairs[SHOWN]).press("1")
        page.click_at(*middle(page.boxes()["cc", "1"]))
        return Image.open(io.BytesIO(browser.get_screenshot_as_png())).convert("RGB")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        take(Path(temporary)).save(ROOT / "docs" / "images" / "label.png", optimize=True)
