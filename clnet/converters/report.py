"""The report of a conversion: what was used, and what was skipped and why; for a terminal and as JSON."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clnet.converters.annotated import Skipped
from clnet.data.pair import LINK_SOURCES, Pair
from clnet.files import write_text

SHOWN_WARNINGS = 5


@dataclass(frozen=True)
class ConversionReport:
    """What became of a data set.

    Attributes:
        name: of the data set.
        settings: the user's choices.
        sections: counts by section, and their sum as "all": `pairs`, `one_view` (pairs with a missing view),
            `views`, `masses` (boxes), `lesions` (linked boxes count once), `links_…` by source, and
            `masses_unlinked` (masses without a link in breasts with masses in both views).
        skipped: what was not used, in order.
        warnings: what was used but is unusual, in order.
    """

    name: str
    settings: Mapping[str, Any]
    sections: Mapping[str, Mapping[str, int]]
    skipped: tuple[Skipped, ...]
    warnings: tuple[str, ...]

    @classmethod
    def of(
        cls,
        name: str,
        settings: Mapping[str, Any],
        sections: Mapping[str, Sequence[Pair]],
        skipped: Iterable[Skipped],
        warnings: Iterable[str],
    ) -> "ConversionReport":
        """Count the pairs of a datalist."""
        counts = {section: _count(pairs) for section, pairs in sections.items()}
        counts["all"] = _count([pair for pairs in sections.values() for pair in pairs])
        ordered = sorted(skipped, key=lambda item: (item.reason, item.item, item.detail))
        return cls(name, settings, counts, tuple(ordered), tuple(sorted(warnings)))

    @property
    def skipped_by_reason(self) -> dict[str, int]:
        """The number of skipped items by reason."""
        return dict(sorted(Counter(item.reason for item in self.skipped).items()))


def write_report(report: ConversionReport, path: Path) -> None:
    """Write a report as JSON, one item per line; the same report gives the same bytes."""
    content: dict[str, Any] = {
        "schema": 1,
        "name": report.name,
        "settings": report.settings,
        "sections": report.sections,
        "skipped_by_reason": report.skipped_by_reason,
    }
    lines = [f'"{key}": {_json(value)}' for key, value in content.items()]
    for key, items in (("skipped", [vars(item) for item in report.skipped]), ("warnings", report.warnings)):
        lines.append(f'"{key}": [' + ",".join(f"\n  {_json(item)}" for item in items) + "]")
    write_text(path, "{" + ",\n ".join(lines) + "}\n")


def describe_report(report: ConversionReport) -> str:
    """The tables for a terminal."""
    parts = [_section_table(report), _skipped_table(report), _warning_lines(report)]
    return "\n\n".join(filter(None, parts))


def _section_table(report: ConversionReport) -> str:
    names = list(report.sections)
    rows = [["", *names]]
    for count in next(iter(report.sections.values())):
        rows.append([count.replace("_", " "), *(str(report.sections[name][count]) for name in names)])
    width = max(len(row[0]) for row in rows) + 1
    return "\n".join(f"{row[0]:<{width}}" + "".join(f"{cell:>12}" for cell in row[1:]) for row in rows)


def _skipped_table(report: ConversionReport) -> str:
    if not report.skipped:
        return "skipped    nothing"
    rows = [f"  {number:>6}  {reason}" for reason, number in report.skipped_by_reason.items()]
    return "\n".join(["skipped", *rows])


def _warning_lines(report: ConversionReport) -> str:
    more = len(report.warnings) - SHOWN_WARNINGS
    lines = [f"warning    {warning}" for warning in report.warnings[:SHOWN_WARNINGS]]
    return "\n".join([*lines, *([f"           and {more} more in conversion.json"] if more > 0 else [])])


def _count(pairs: Sequence[Pair]) -> dict[str, int]:
    sources = Counter(source for pair in pairs for source in pair.links.values())
    masses = sum(len(view.lesion_ids) for pair in pairs for view in pair.views.values())
    return {
        "pairs": len(pairs),
        "one_view": sum(len(pair.views) == 1 for pair in pairs),
        "views": sum(len(pair.views) for pair in pairs),
        "masses": masses,
        "lesions": masses - sources.total(),
        **{f"links_{source}": sources[source] for source in LINK_SOURCES},
        "masses_unlinked": sum(map(_unlinked, pairs)),
    }


def _unlinked(pair: Pair) -> int:
    """The number of masses without a link in a breast with masses in both views."""
    if not (pair.cc and pair.mlo and pair.cc.lesion_ids and pair.mlo.lesion_ids):
        return 0
    return sum(i not in pair.links for view in pair.views.values() for i in view.lesion_ids)


def _json(content: Any) -> str:
    return json.dumps(content, ensure_ascii=False)
