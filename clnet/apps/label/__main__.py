"""Start the server: ``python -m clnet.apps.label STUDIES [--app FOLDER] [--port 8000]``."""

import argparse
import json
import os
import sys
from pathlib import Path

MAIN = "from clnet.apps.label.app import ClnetLabelApp  # noqa: F401\n"


def main() -> None:
    """Set what MONAI Label needs to know about mammograms, and start it."""
    parser = argparse.ArgumentParser("clnet.apps.label", description=__doc__)
    parser.add_argument("studies", help="a folder of DICOM or PNG files, or the address of a DICOMweb server")
    parser.add_argument("--app", type=Path, default=Path("output/label"), help="for models and logs")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000)
    options, more = parser.parse_known_args()
    os.environ.setdefault("MONAI_LABEL_DATASTORE_FILE_EXT", json.dumps(["*.dcm", "*.DCM", "*.dicom", "*.png", "*.PNG"]))
    options.app.mkdir(parents=True, exist_ok=True)
    (options.app / "main.py").write_text(MAIN, encoding="utf-8")
    from clnet.apps.label import compatibility  # noqa: F401
    from monailabel.main import Main

    words = ["--app", str(options.app), "--studies", options.studies, "--host", options.host]
    words += ["--port", str(options.port), "--uvicorn_app", "clnet.apps.label.server:app", *more]
    sys.argv = ["monailabel", "start_server", *words]
    sys.stdout.write(f"The page for pairs: http://{options.host}:{options.port}/clnet/\n")
    Main().run()


if __name__ == "__main__":
    main()
