"""A headless Chromium, driven by Selenium; both programs are Debian's."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service

PROGRAMS = ("chromium", "chromedriver")


def missing_programs() -> list[str]:
    """Which of the two programs are not there; in CI they have to be."""
    missing = [name for name in PROGRAMS if shutil.which(name) is None]
    if missing and os.environ.get("CI"):
        raise RuntimeError(f"{', '.join(missing)} missing; ./scripts/apt installs them")
    return missing


@contextmanager
def open_browser(
    profile: Path, size: tuple[int, int] = (1400, 1000), webgl: bool = False, *further: str
) -> Iterator[Chrome]:
    """A browser with a profile of its own, which asks nobody for anything; it logs console and network.

    Args:
        profile: a folder for the profile.
        size: of the window.
        webgl: draw WebGL, by the CPU.
        further: command-line arguments.
    """
    options = ChromeOptions()
    options.binary_location = shutil.which("chromium") or "chromium"
    for argument in (
        "--headless=new",
        "--no-sandbox",  # root has none
        *(["--use-angle=swiftshader", "--enable-unsafe-swiftshader"] if webgl else ["--disable-gpu"]),
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--disable-dev-shm-usage",
        "--hide-scrollbars",
        "--force-prefers-reduced-motion",  # where a click scrolls to is where it clicks
        f"--window-size={size[0]},{size[1]}",
        f"--user-data-dir={profile}",
        *further,
    ):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    # A path of our own keeps Selenium from fetching a driver.
    browser = Chrome(options, Service(shutil.which("chromedriver") or "chromedriver"))
    try:
        yield browser
    finally:
        browser.quit()
