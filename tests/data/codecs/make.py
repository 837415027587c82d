"""Makes the files beside it. Needs dcmtk (dcmcjpeg, dcmcjpls); the tests need only the files.

Run: python tests/data/codecs/make.py
"""

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1]))

from dicom_files import mammogram, save, texture  # noqa: E402

ENCODERS = {
    "jpeg_baseline_8bit": ("dcmcjpeg", "+eb", "+q", "95"),
    "jpeg_extended_12bit": ("dcmcjpeg", "+ee", "+q", "95"),
    "jpeg_lossless": ("dcmcjpeg", "+el"),
    "jpeg_lossless_sv1": ("dcmcjpeg", "+e1"),
    "jpeg_ls_lossless": ("dcmcjpls", "+el"),
    "jpeg_ls_near_lossless": ("dcmcjpls", "+en"),
}

for name, command in ENCODERS.items():
    pixels = texture(bits=8 if name.endswith("8bit") else 12)
    tags = {
        "SOPInstanceUID": "1.2.826.0.1.3680043.8.498.2",
        "SeriesInstanceUID": "1.2.826.0.1.3680043.8.498.3",
    }
    plain = save(HERE / "plain.tmp", mammogram(pixels, **tags))
    subprocess.run([*command, "+un", str(plain), str(HERE / f"{name}.dcm")], check=True)
    plain.unlink()
