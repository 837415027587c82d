"""Makes the four reduced views in this folder from the full ones of CBIS-DDSM.

Run as ``python tests/data/cbis-ddsm/reduce.py FOLDER_OF_FULL_VIEWS``. Each pixel is the mean of 8 × 8
pixels of the scan; the boxes are the data set's, divided by 8.
"""

import hashlib
import sys
from pathlib import Path

import numpy as np
import pydicom
from pydicom.uid import RLELossless

from clnet.data.datalist import Datalist, write_datalist
from clnet.data.pair import Pair, View

HERE = Path(__file__).parent
FACTOR = 8
# Boxes of patient P_00173 in pixels of the full views, with the lesion ids used here.
BOXES = {
    ("LEFT", "CC"): {"1": (933, 2307, 1237, 2568)},
    ("LEFT", "MLO"): {"1": (767, 3186, 1000, 3466)},
    ("RIGHT", "CC"): {"1": (1809, 2104, 2123, 2426), "2": (2445, 2443, 2863, 2914)},
    ("RIGHT", "MLO"): {"1": (1679, 2588, 1934, 2850), "2": (2700, 1648, 2888, 1883)},
}


def reduce_view(source: Path) -> tuple[str, str, View]:
    """Write the reduced copy of one view; give its side, its view name and its boxes."""
    ds = pydicom.dcmread(source)
    side, name = str(ds.PatientID).split("_")[-2:]
    full = ds.pixel_array
    rows, columns = full.shape[0] // FACTOR, full.shape[1] // FACTOR
    blocks = full[: rows * FACTOR, : columns * FACTOR].reshape(rows, FACTOR, columns, FACTOR)
    small = np.rint(blocks.mean(axis=(1, 3))).astype(np.uint16)

    ds.Rows, ds.Columns = small.shape
    ds.SmallestImagePixelValue, ds.LargestImagePixelValue = int(small.min()), int(small.max())
    ds.ImageType = ["DERIVED", "SECONDARY"]
    ds.DerivationDescription = f"Mean of {FACTOR} x {FACTOR} pixels"
    digest = hashlib.sha256(f"reduced by {FACTOR}: {ds.SOPInstanceUID}".encode()).digest()
    ds.SOPInstanceUID = f"2.25.{int.from_bytes(digest[:16], 'big')}"
    ds.file_meta.MediaStorageSOPInstanceUID = ds.SOPInstanceUID
    ds.compress(RLELossless, small, generate_instance_uid=False)
    target = HERE / f"{side}_{name}.dcm".lower()
    ds.save_as(target, enforce_file_format=True)

    boxes = BOXES[side, name]
    return (
        side,
        name,
        View(target, np.array(list(boxes.values())) / FACTOR, tuple(boxes), size=(rows, columns)),
    )


def main(folder: Path) -> None:
    """Reduce all views in a folder and write the datalist of the two breasts."""
    views = {(side, name): view for side, name, view in map(reduce_view, sorted(folder.glob("*.dcm")))}
    pairs = [
        Pair(
            pair_id=f"P_00173_{side}",
            patient_id="P_00173",
            laterality=side[0],
            cc=views[side, "CC"],
            mlo=views[side, "MLO"],
            links=links,
            attributes={"density": "2"},
        )
        for side, links in (
            ("LEFT", {"1": "single_pair"}),
            ("RIGHT", {"1": "geometric", "2": "geometric"}),
        )
    ]
    write_datalist(Datalist("CBIS-DDSM P_00173, reduced", {"test": pairs}), HERE / "datalist.json")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
