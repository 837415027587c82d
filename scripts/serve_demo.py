"""Orthanc sends a phantom study to `clnet serve`, which sends its reports back; OHIF shows them.

python scripts/serve_demo.py [--stay] [--pictures DIR]
"""

import argparse
import json
import secrets
import shutil
import signal
import sys
from pathlib import Path

import yaml
from browser import open_browser
from ohif import OhifPage, serve_ohif
from servers import ask_orthanc, free_port, running, start_orthanc, wait_for

from clnet.phantom import PhantomSettings, make_phantom

OUTPUT = Path("output") / "serve_demo"
SIZE, STATUS_SIZE = (1500, 950), (1150, 560)


def main(words: list[str]) -> None:
    """Run the demo."""
    parser = argparse.ArgumentParser(prog="./scripts/serve_demo", description=__doc__)
    parser.add_argument("--stay", action="store_true", help="keep the servers running until Ctrl+C")
    parser.add_argument("--pictures", type=Path, default=OUTPUT, metavar="DIR", help="for screenshots")
    options = parser.parse_args(words)
    shutil.rmtree(OUTPUT, ignore_errors=True)
    (OUTPUT / "orthanc").mkdir(parents=True)
    make_phantom(OUTPUT / "phantom", PhantomSettings(2), workers=1)

    dicom, http, token = free_port(), free_port(), secrets.token_urlsafe(12)
    (OUTPUT / "token").write_text(token)
    with start_orthanc(
        (OUTPUT / "orthanc").absolute(),
        DicomModalities={"clnet": ["CLNET", "127.0.0.1", dicom]},
        DicomAet="ORTHANC",
    ) as orthanc:
        config = OUTPUT / "serve.yaml"
        config.write_text(
            yaml.safe_dump(
                {
                    "folder": str(OUTPUT / "node"),
                    "model": "phantom",
                    "quiet_seconds": 3,
                    "dicom": {"port": dicom},
                    "http": {"port": http, "status_page": True, "token_file": str(OUTPUT / "token")},
                    "destinations": [{"name": "orthanc", "stow": f"{orthanc}/dicom-web"}],
                }
            )
        )
        node = [sys.executable, "-m", "clnet.cli", "serve", "--config", config]
        address = f"http://127.0.0.1:{http}"
        with running(node, OUTPUT / "node.log", f"{address}/ready"), serve_ohif(orthanc) as ohif:
            for file in (OUTPUT / "phantom" / "images").glob("*.dcm"):
                ask_orthanc(orthanc, "/instances", file.read_bytes())
            (study,) = ask_orthanc(orthanc, "/studies")
            print("Orthanc has a study of four mammograms, and sends it to clnet")
            job = json.dumps({"Resources": [study], "Synchronous": True}).encode()
            ask_orthanc(orthanc, "/modalities/clnet/store", job)
            series = wait_for(lambda: _all_series(orthanc, study))
            print("clnet has sent its reports back:")
            for one in series:
                tags = ask_orthanc(orthanc, f"/series/{one}")["MainDicomTags"]
                print(f"  {tags['Modality']}  {tags.get('SeriesDescription', '')}".rstrip())
            uid = ask_orthanc(orthanc, f"/studies/{study}")["MainDicomTags"]["StudyInstanceUID"]
            _take_pictures(
                options.pictures, ohif, uid, len(series), f"http://demo:{token}@127.0.0.1:{http}/status"
            )
            if options.stay:
                print(f"OHIF         {ohif}/viewer?StudyInstanceUIDs={uid}")
                print(f"status page  {address}/status (any user; the password is {token})")
                print("Ctrl+C ends it")
                signal.sigwait({signal.SIGINT})


def _all_series(orthanc: str, study: str) -> list[str]:
    """The series of the study when the reports are among them."""
    series: list[str] = ask_orthanc(orthanc, f"/studies/{study}")["Series"]
    return series if len(series) >= 4 + 3 else []


def _take_pictures(folder: Path, ohif: str, study: str, series: int, status: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with open_browser((OUTPUT / "profile").absolute(), SIZE, webgl=True) as browser:
        page = OhifPage(browser, ohif)
        page.open([study], series)
        page.show("CL-Net masses")
        page.preview()
        browser.save_screenshot(str(folder / "serve_ohif.png"))
        browser.set_window_size(*STATUS_SIZE)
        browser.get(status)
        wait_for(lambda: "clnet serve" in browser.title)
        browser.save_screenshot(str(folder / "serve_status.png"))
    print(f"pictures  {folder / 'serve_ohif.png'}, {folder / 'serve_status.png'}")


if __name__ == "__main__":
    main(sys.argv[1:])
