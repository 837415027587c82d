"""Start the server: ``python -m clnet.apps.label STUDIES [--app FOLDER] [--port 8000]``."""

import argparse
import json
import os
import secrets
import sys
from pathlib import Path

from clnet.files import write_text

# MONAI Label reads its settings when it is imported, so it must not be imported up here.
PATTERNS = [f"*.{ending}" for ending in ("dcm", "DCM", "dicom", "png", "PNG", "jpg", "JPG", "jpeg")]
APP_MODULE = "from clnet.apps.label.app import ClnetLabelApp  # noqa: F401\n"


def main() -> None:
    """Configure MONAI Label for mammograms and start it; unknown options are passed on to it."""
    parser = argparse.ArgumentParser("clnet.apps.label", description=__doc__)
    parser.add_argument(
        "studies", help="a folder of DICOM, PNG or JPEG files, or the address of a DICOMweb server"
    )
    parser.add_argument("--app", type=Path, default=Path("output/label/app"), help="models, runs and logs")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--verbose", default="WARNING", help="INFO logs every request with its image names")
    options, more = parser.parse_known_args()
    is_folder = not options.studies.startswith(("http://", "https://"))
    if is_folder and not Path(options.studies).is_dir():
        parser.error(f"{options.studies}: no such folder")
    defaults = {
        "MONAI_LABEL_DATASTORE_FILE_EXT": PATTERNS,
        "MONAI_LABEL_DICOMWEB_SEARCH_FILTER": {"Modality": "MG"},
        "MONAI_LABEL_SESSIONS": False,  # they unpack uploaded archives, and nothing here needs them
    }
    for name, value in defaults.items():
        os.environ.setdefault(name, json.dumps(value))
    write_text(options.app / "main.py", APP_MODULE)
    sys.argv = ["monailabel", "start_server", "--app", str(options.app), "--studies", options.studies]
    sys.argv += ["--host", options.host, "--port", str(options.port), "--verbose", options.verbose]
    sys.argv += ["--uvicorn_app", "clnet.apps.label.server:app", *more]
    os.environ.setdefault("CLNET_LABEL_TOKEN", secrets.token_urlsafe())
    from monailabel.main import Main

    from clnet.apps.label.access import token

    words = f"#token={token()}" if token() else ""
    sys.stdout.write(f"Annotation page: {address_of(options.host, options.port, more)}/clnet/{words}\n")
    sys.stdout.flush()
    Main().run()


def address_of(host: str, port: int, more: list[str]) -> str:
    """The address of the server; `more` are the options for MONAI Label, which may turn on encryption."""
    is_encrypted = any(word.partition("=")[0] == "--ssl_certfile" for word in more)
    return f"{'https' if is_encrypted else 'http'}://{host}:{port}"


if __name__ == "__main__":
    main()
