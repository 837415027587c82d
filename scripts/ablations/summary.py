"""What the tables answer, in a few lines at the top of the page."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from ablations.numbers import Numbers
from ablations.tables import PAPER_RATES, TABLES
from page_text import points
from page_text import table as table_text

IOU, RATE = "iou=0.5", PAPER_RATES[0]


@dataclass(frozen=True)
class Question:
    """What somebody wants to know first, and the difference of two settings that answers it."""

    words: str
    difference: str
    table: str
    ours: str
    theirs: str


QUESTIONS = (
    Question(
        "Do two views find more than each by itself?",
        "CL-Net − Deformable DETR",
        *("components", "clnet", "deformable_detr"),
    ),
    Question("Does the linker add to inter-attention?", "CL-Net − VILD", *("components", "clnet", "vild")),
    Question(
        "Does it help without inter-attention?",
        "linker only − Deformable DETR",
        *("components", "linker_only", "deformable_detr"),
    ),
    Question(
        "Every two detections compared, in its place?",
        "Pair Verification − CL-Net",
        *("match_learning", "pair_verification", "clnet"),
    ),
    Question(
        "One query for both views, in its place?",
        "Paired Lesion Query − CL-Net",
        *("match_learning", "paired_query", "clnet"),
    ),
    Question(
        "The paper to the letter: no temperature?",
        "temperature 1 − 0.1",
        *("temperature", "temperature_1", "clnet"),
    ),
    Question("An encoder layer?", "1 − 0 layers", *("encoder_depth", "encoder_1", "clnet")),
)


def answers(numbers: Numbers) -> list[dict[str, Any]]:
    """The questions whose runs are there, each with its difference at R@0.25, IoU 0.5."""
    found = []
    for question in QUESTIONS:
        contrast = numbers.contrast(TABLES[question.table], question.ours, question.theirs)
        if contrast:
            found.append({**asdict(question), "numbers": contrast[IOU]["recall"][RATE]})
    return found


def in_short(content: Mapping[str, Any]) -> str:
    """The answers as a table with ways to the whole, and how many orders are the paper's."""
    if not content["answers"]:
        return ""
    lines = []
    for answer in content["answers"]:
        title, minus = content["tables"][answer["table"]]["title"], answer["numbers"]
        by_seed = ", ".join(f"{100 * value:+.1f}" for value in minus["by_seed"].values())
        lines.append(
            [
                f"[{answer['words']}](#{title.lower().replace(' ', '-')})",
                answer["difference"],
                points(minus),
                by_seed,
            ]
        )
    compared = [pair for table in content["tables"].values() for pair in table["order"]]
    against = [pair for pair in compared if pair["ours"]["value"] < 0]
    beyond = [pair for pair in against if pair["ours"]["high"] < 0]
    orders = (
        f"\n\nThe paper's tables tell {len(compared)} pairs of rows apart; {len(compared) - len(against)} of "
        f"them stand in its order here, {len(against) - len(beyond)} in the other order within the interval, "
        f"{len(beyond)} beyond it. Each is named below its table."
    )
    heads = ["", "difference", f"points at R@{RATE}, with p", "by seed"]
    return f"## In short\n\n{table_text(heads, lines)}{orders if compared else ''}"
