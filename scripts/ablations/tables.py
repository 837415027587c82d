"""The tables of the evidence, and the questions that their rows answer."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """A setting and what to call it.

    Attributes:
        setting: a name in `settings.SETTINGS`.
        name: what tables and figures call it.
        seeds: how many are trained.
        paper: R@t in % on DDSM at the first of `RATES`, where the paper has it.
    """

    setting: str
    name: str
    seeds: int
    paper: tuple[float, ...] = ()


@dataclass(frozen=True)
class Table:
    """Rows on one data set.

    Attributes:
        title: the heading of its page.
        about: the data and the rules of counting.
        rows: from top to bottom.
        iou: the overlap of a hit that comes first.
        gain: ours and theirs, whose difference is shown by groups of boxes.
    """

    title: str
    about: str
    rows: tuple[Row, ...]
    iou: float
    gain: tuple[str, str] | None = None


RATES = ("0.25", "0.5", "1", "2", "4")

_PAPER = {
    "deformable_detr": (73.8, 78.4, 83.7, 88.7, 93.7),
    "vild": (76.1, 81.7, 86.4, 91.7, 94.4),
    "linker_only": (74.1, 80.1, 86.0, 88.7, 93.4),
    "clnet": (78.1, 83.1, 88.0, 92.4, 95.0),
    "pair_verification": (75.7, 82.1, 86.4, 90.7),
    "paired_query": (68.8, 75.1, 81.7, 87.0),
}
_NAMES = {
    "deformable_detr": "Deformable DETR: each view alone",
    "vild": "VILD: views look at each other",
    "linker_only": "Lesion Linker without VILD",
    "clnet": "CL-Net: VILD and Lesion Linker",
    "pair_verification": "VILD and Pair Verification",
    "paired_query": "VILD and Paired Lesion Query",
    "one_view": "Geometric CL-Net, each view alone",
    "pretrained": "Geometric CL-Net, started on the phantom",
    "geometric": "Geometric CL-Net",
}


def _rows(ending: str, **seeds: int) -> tuple[Row, ...]:
    return tuple(
        Row(f"{name}{ending}", _NAMES[name], number, _PAPER.get(name, ())) for name, number in seeds.items()
    )


TABLES: dict[str, Table] = {
    "film": Table(
        "Films",
        "CBIS-DDSM's official test section: scanned films with at least one mass each. `film.yaml`, and the "
        "networks of the paper on top of it.",
        _rows(
            "_film",
            **{"deformable_detr": 3, "vild": 3, "linker_only": 3, "clnet": 3},
            **{"pair_verification": 1, "paired_query": 1, "one_view": 3, "pretrained": 1, "geometric": 3},
        ),
        iou=0.2,
        gain=("geometric_film", "one_view_film"),
    ),
    "phantom": Table(
        "The phantom",
        "The test section of the [phantom](../phantom.md), on which one view cannot tell masses from mimics. "
        "`train.yaml`, and the networks of the paper on top of it.",
        _rows("", deformable_detr=3, vild=3, clnet=5, one_view=1, geometric=5),
        iou=0.5,
    ),
    "patient": Table(
        "The phantom, depths as in patients",
        "The same with difficulty `patient`: depths differ between the views as in patients, and a tenth of "
        "the masses is outside one view.",
        _rows("_patient", clnet=3, geometric=3),
        iou=0.5,
    ),
}


@dataclass(frozen=True)
class Question:
    """A question that a difference of two rows answers.

    Attributes:
        words: the question.
        table: a name in `TABLES`.
        ours, theirs: the settings.
        measure: a measure in `numbers`, at the table's IoU.
        unit: what the measure is, for a reader.
    """

    words: str
    table: str
    ours: str
    theirs: str
    measure: str = f"recall/{RATES[0]}"
    unit: str = f"R@{RATES[0]}"


_TWO_VIEWS = {"measure": f"both views/recall/{RATES[0]}", "unit": f"R@{RATES[0]}, breasts with two views"}
_LINKS = {"measure": "links/f1", "unit": "link F1"}

QUESTIONS = (
    Question(
        "Is Geometric CL-Net better than single views?",
        "film",
        "geometric_film",
        "deformable_detr_film",
        **_TWO_VIEWS,
    ),
    Question("Does the second view help it?", "film", "geometric_film", "one_view_film", **_TWO_VIEWS),
    Question(
        "Does the second view help the paper's network?",
        "film",
        "vild_film",
        "deformable_detr_film",
        **_TWO_VIEWS,
    ),
    Question("Does the linker help detection?", "film", "clnet_film", "vild_film", **_TWO_VIEWS),
    Question("Does geometry, with proposals?", "film", "geometric_film", "clnet_film", **_TWO_VIEWS),
    Question("Does geometry help links?", "film", "geometric_film", "clnet_film", **_LINKS),
    Question(
        "Does training on the phantom first?", "film", "pretrained_film", "geometric_film", **_TWO_VIEWS
    ),
    Question("Does the second view help?", "phantom", "vild", "deformable_detr"),
    Question("Does the linker help detection?", "phantom", "clnet", "vild"),
    Question("Does geometry?", "phantom", "geometric", "clnet"),
    Question("Does geometry help links?", "phantom", "geometric", "clnet", **_LINKS),
    Question("Does geometry with depths as in patients?", "patient", "geometric_patient", "clnet_patient"),
    Question("And its links?", "patient", "geometric_patient", "clnet_patient", **_LINKS),
)
"""What the front page answers; p-values are corrected for their number."""
