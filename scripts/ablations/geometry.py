"""The page docs/evidence/links.md: links by the linker and by geometry, measured by compare_links.py."""

from collections.abc import Mapping
from typing import Any

from ablations.words import LINKS_BESIDE_GEOMETRY
from page_text import percent, points
from page_text import table as table_text


def links_table(content: Mapping[str, Any], measures: tuple[str, ...] = ()) -> str:
    """A row for each way to link, then the linker minus each of the others; all measures, or those named."""
    measures = measures or tuple(next(iter(content["links"].values())))
    lines = [
        [name, *(percent(numbers[measure]) for measure in measures)]
        for name, numbers in content["links"].items()
    ]
    lines += [
        [f"linker − {name}", *(points(numbers[measure]) for measure in measures)]
        for name, numbers in content["linker_minus"].items()
    ]
    return table_text(["links by", *(measure.replace("f1", "F1") for measure in measures)], lines)


def links_page(content: Mapping[str, Any]) -> list[str]:
    """The paragraphs of the page."""
    chosen = ", ".join(
        f"{name}: minimum score {rule['min_score']:g}" for name, rule in content["rules"].items()
    )
    return [
        *LINKS_BESIDE_GEOMETRY,
        "Links in % on the test section, IoU ≥ 0.5:",
        links_table(content),
        "The parameters of each rule were chosen by F1 on the validation section: the standard deviation of "
        f"depths in the phantom, and the minimum score of detections that are linked ({chosen}).",
        "```bash\n./scripts/compare_links\n```",
        f"Evaluating and linking took {content['seconds'] / 60:.0f} minutes on a machine that did other work "
        "at the same time.",
    ]
