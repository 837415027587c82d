"""The account of a conversion: what was used, what was not and why; for a terminal and as JSON."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clnet.converters.marked import Skipped
from clnet.data.pair import LINK_SOURCES, Pair

SHOWN_WARNINGS = 5


@dataclass(frozen=True)
class ConversionReport:
    """What became of a data set.

    Attributes:
        name: of the data set.
        settings: what the user chose.
        sections: counts by section, and "all" for their sum: `pairs`, `one_view` (pairs of which a view is
            missing), `views`, `masses` (boxes), `lesions` (linked boxes count once), `links`, by source, and
            `unlinked` (masses that might have a partner: both views have masses, and none was linked).
        skipped: what was not used, ordered.
        warnings: what was used, and is unusual.
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
        skipped: Sequence[Skipped],
        warnings: Sequence[str],
    ) -> "ConversionReport":
        """Count the pairs of a datalist."""
        counts = {section: _count(pairs) for section, pairs in sections.items()}
        counts["all"] = _count([pair for pairs in sections.values() for pair in pairs])
        ordered = sorted(skipped, key=lambda item: (item.reason, item.item, item.detail))
        return cls(name, settings, counts, tuple(ordered), tuple(sorted(warnings)))

    @property
    def skipped_by_reason(self) -> dict[str, int]:
        """How many items were skipped for each reason."""
        return dict(sorted(Counter(item.reason for item in self.skipped).items()))


def write_account(account: ConversionReport, path: Path) -> None:
    """Write an account as JSON, an item a line; the same account gives the same bytes."""
    content: dict[str, Any] = {
        "schema": 1,
        "name": account.name,
        "settings": account.settings,
        "sections": account.sections,
        "skipped_by_reason": account.skipped_by_reason,
    }
    lines = [f"{json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}" for key, value in content.items()]
    skipped = ",".join(f"\n  {json.dumps(vars(item), ensure_ascii=False)}" for item in account.skipped)
    warnings = ",".join(f"\n  {json.dumps(warning, ensure_ascii=False)}" for warning in account.warnings)
    lines += [f'"skipped": [{skipped}]', f'"warnings": [{warnings}]']
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("{" + ",\n ".join(lines) + "}\n", encoding="utf-8")


def describe(account: ConversionReport) -> str:
    """The tables for a terminal."""
    return "\n\n".join(
        filter(None, [_section_table(account), _skipped_table(account), _warning_lines(account)])
    )


def _section_table(account: ConversionReport) -> str:
    names = list(account.sections)
    rows = [["", *names]]
    for count in next(iter(account.sections.values())):
        rows.append([count.replace("_", " "), *(str(account.sections[name][count]) for name in names)])
    width = max(len(row[0]) for row in rows) + 1
    return "\n".join(f"{row[0]:<{width}}" + "".join(f"{cell:>12}" for cell in row[1:]) for row in rows)


def _skipped_table(account: ConversionReport) -> str:
    if not account.skipped:
        return "skipped    nothing"
    rows = [f"  {number:>6}  {reason}" for reason, number in account.skipped_by_reason.items()]
    return "\n".join(["skipped", *rows])


def _warning_lines(account: ConversionReport) -> str:
    more = len(account.warnings) - SHOWN_WARNINGS
    lines = [f"warning    {warning}" for warning in account.warnings[:SHOWN_WARNINGS]]
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
    """Masses without a link in a breast that has masses in both views."""
    if not (pair.cc and pair.mlo and pair.cc.lesion_ids and pair.mlo.lesion_ids):
        return 0
    return sum(i not in pair.links for view in pair.views.values() for i in view.lesion_ids)
