"""The part of the page on links by the linker and by geometry, from what scripts/compare_links.py keeps."""

from collections.abc import Mapping
from typing import Any

from page_text import percent, points
from page_text import table as table_text

BEFORE = """## Links beside geometry

Whether the linker knows more than that a mass has nearly the same depth and size in both views: the
detections of [the shipped model](../bundle/docs/README.md#results), linked by its
linker, and by the rule that [links data sets without links](datasets.md#links).

```bash
./scripts/compare_links
```"""

WHERE = "Links in % on the test section, IoU ≥ 0.5:"

FINDINGS = """The linker beats both rules in F1. The rule that knows how exactly the phantom keeps depth
links as many masses rightly, with more wrong links beside them: it does not know which detections are masses.
Where a breast has several masses, the difference between the two is within its interval. In patients depth is
kept less exactly, so that this rule would lose; what the linker would lose is not known."""


def links_table(content: Mapping[str, Any]) -> str:
    """A row for each way to link; below them, the linker minus each of the others."""
    lines = [[name, *map(percent, numbers.values())] for name, numbers in content["links"].items()]
    lines += [
        [f"linker − {name}", *map(points, numbers.values())]
        for name, numbers in content["linker_minus"].items()
    ]
    measures = [name.replace("f1", "F1") for name in next(iter(content["links"].values()))]
    return table_text(["links by", *measures], lines)


def geometry_part(content: Mapping[str, Any] | None) -> str:
    """The part of the page; nothing if it was not measured."""
    if content is None:
        return ""
    chosen = ", ".join(
        f"{name}: a least score of {rule['least_score']:g}" for name, rule in content["rules"].items()
    )
    about = (
        f"What a rule leaves open was chosen by F1 on the validation section: the deviation of depths in the "
        f"phantom, and from which score on detections are linked ({chosen})."
    )
    took = (
        f"Evaluating and linking took {content['seconds'] / 60:.0f} minutes, in which the machine did other "
        "work, too."
    )
    return "\n\n".join([BEFORE, took, WHERE, links_table(content), about, FINDINGS])
