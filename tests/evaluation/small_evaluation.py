"""An evaluation of four breasts, small enough to know everything about it by hand.

At 0.5 false positives per image three of the five false positives may pass in seven images: scores above 0.2.
"""

import numpy as np
from PIL import Image

from clnet.data.datalist import Datalist, write_datalist
from clnet.data.pair import Pair, View
from clnet.evaluation.folder import evaluate_files
from clnet.evaluation.protocols import EvaluationSettings
from clnet.findings.types import Attention, Detections, Findings, Link, PairFindings, write_findings

ROWS, COLUMNS = 200, 100
# What must not be on a page.
IDENTITY = ("DOE_JANE", "ROE_RICHARD", "birthmark", "1957", ".png", "datalist.json", "findings.json")
ATTENTION = Attention(cc=(0.7, 0.1, 0.05, 0.15), mlo=(0.9, 0.06, 0.04))


def datalist(folder, images=True):
    """The data; the order of the pairs is that of their numbers on the page."""

    def view(name, boxes=(), ids=()):
        file = folder / f"DOE_JANE_1957_{name}.png"
        if images:
            grey = np.linspace(0, 255, ROWS * COLUMNS).reshape(ROWS, COLUMNS).astype(np.uint8)
            Image.fromarray(grey).save(file)
        return View(file, boxes, ids, (ROWS, COLUMNS))

    one = {"cc": view("a_cc", [[20, 50, 40, 80]], ["birthmark"])}
    one["mlo"] = view("a_mlo", [[30, 60, 50, 90]], ["birthmark"])
    two = {"cc": view("b_cc", [[10, 10, 30, 30]], ["birthmark"])}
    two["mlo"] = view("b_mlo", [[10, 10, 30, 30]], ["birthmark"])
    notes = {"note": "of DOE_JANE, born 1957"}
    pairs = (
        Pair("DOE_JANE_L", "DOE_JANE", "L", **one, attributes=notes),
        Pair("DOE_JANE_R", "DOE_JANE", "R", **two),
        Pair("ROE_RICHARD_L", "ROE_RICHARD", "L", cc=view("c_cc"), mlo=view("c_mlo")),
        Pair("ROE_RICHARD_R", "ROE_RICHARD", "R", mlo=view("d_mlo")),
    )
    return Datalist("four breasts", {"test": pairs})


def findings(model="a model"):
    """Pair 1: both boxes found and linked, three false positives. Pair 2: found in CC alone."""
    return Findings(
        model,
        (
            PairFindings(
                "DOE_JANE_L",
                Detections([[21, 51, 40, 80], [60, 100, 80, 130], [10, 150, 30, 170]], [0.9, 0.6, 0.1]),
                Detections([[30, 60, 50, 90], [70, 120, 90, 150]], [0.8, 0.3]),
                (Link(0, 0, 0.95, ATTENTION), Link(1, None, 0.7), Link(1, 1, 0.1)),
            ),
            PairFindings(
                "DOE_JANE_R",
                Detections([[10, 10, 30, 30], [60, 60, 80, 80]], [0.7, 0.5]),
                Detections([[60, 60, 80, 80]], [0.2]),
            ),
            PairFindings("ROE_RICHARD_L", Detections(), Detections()),
            PairFindings("ROE_RICHARD_R", None, Detections()),
        ),
    )


def small_evaluation(folder, images=True, model="a model", **more):
    """Write the data, the findings and their evaluation; the folder of the evaluation."""
    (folder / "data").mkdir(parents=True)
    write_datalist(datalist(folder / "data", images), folder / "data" / "datalist.json")
    write_findings(findings(model), folder / "findings.json")
    settings = EvaluationSettings(resamples=50)
    evaluate_files(folder / "data", folder / "findings.json", "test", folder / "out", settings, **more)
    return folder / "out"
