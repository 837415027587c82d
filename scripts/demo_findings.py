"""What a model found in some pairs of a data set, beside what is there.

Run as ``python scripts/demo_findings.py DATASET_DIR FINDINGS.json OUT.png``.
"""

import sys
from pathlib import Path

from clnet.data.datalist import read_datalist
from clnet.data.pictures import sheet
from clnet.data.reader import read_image
from clnet.inference.findings import read_findings
from clnet.inference.picture import findings_picture

MIN_SCORE = 0.4
PAIRS = 3


def main(dataset: Path, findings: Path, out: Path) -> None:
    """Draw the pairs with the most masses."""
    found = {pair.pair_id: pair for pair in read_findings(findings)}
    pairs = sorted(read_datalist(dataset)["test"], key=lambda pair: -len(pair.links))[:PAIRS]
    pictures = [
        findings_picture(
            {name: read_image(view.image).pixels for name, view in pair.views.items()},
            found[pair.pair_id],
            "white: there, coloured: found with score",
            MIN_SCORE,
            {name: view.boxes.tolist() for name, view in pair.views.items()},
        )
        for pair in pairs
    ]
    sheet(pictures, columns=PAIRS).save(out)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3]))
