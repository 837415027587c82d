"""The page docs/evidence.md and docs/evidence.json, from the kept runs alone."""

import json
from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

from ablations.figure import draw
from ablations.geometry import geometry_part
from ablations.numbers import Numbers
from ablations.settings import SETTINGS
from ablations.summary import answers, in_short
from ablations.tables import PAPER_RATES, REFERENCE, TABLES, Row, Table
from ablations.words import AFTER, BEFORE, FINDINGS
from page_text import percent, points
from page_text import table as table_text

NOT_RUN = "not run"
IOUS = ("iou=0.5", "iou=0.2")
LINK_HEADS = ("precision", "recall", "accuracy", "accuracy with several masses")
FIRST = PAPER_RATES[0]
FALSE_POSITIVE_HEADS = {
    "recall": f"R@{FIRST}",
    "recall_duplicates_counted": f"R@{FIRST}, duplicates counted",
    "on_mimics": "mimics among false positives",
}


def evidence(
    numbers: Numbers, epochs: int, command: str, links: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Everything that the page tells, as data; `links` is what scripts/compare_links.py has kept."""
    runs = [run.content for run in numbers.runs.values()]
    reference = next((run["settings"] for run in runs if run["setting"] == REFERENCE), {})
    return {
        "command": command,
        "epochs": epochs,
        "resamples": numbers.resamples,
        "reference": REFERENCE,
        "answers": answers(numbers),
        "tables": {
            name: {
                "title": table.title,
                "section": table.section,
                "rows": [
                    {
                        "setting": row.setting,
                        "labels": row.labels,
                        "words": row.words,
                        "view": row.view,
                        "paper": dict(zip(PAPER_RATES, row.paper, strict=False)) or None,
                        "numbers": numbers.row(table, row),
                        "false_positives": numbers.false_positives(table, row),
                    }
                    for row in table.rows
                ],
                "contrasts": [
                    {"ours": ours, "theirs": theirs, "numbers": numbers.contrast(table, ours, theirs)}
                    for ours, theirs in table.contrasts
                ],
                "order": order(numbers, table),
            }
            for name, table in TABLES.items()
        },
        "links_beside_geometry": links,
        "settings": reference,
        "runs": [
            {
                **{key: value for key, value in run.items() if key not in ("sections", "settings")},
                "changed": {k: v for k, v in run["settings"].items() if reference.get(k) != v},
                "evaluation_seconds": {name: part["seconds"] for name, part in run["sections"].items()},
                "metrics": {k: v for part in run["sections"].values() for k, v in part["metrics"].items()},
            }
            for run in runs
        ],
    }


def order(numbers: Numbers, table: Table) -> list[dict[str, Any]]:
    """Every two rows with numbers of the paper: whether R@0.25 orders them as there.

    Returns:
        For each ``better`` and ``worse``, settings in the paper's order; ``paper``, its difference in points;
        and ``ours``, difference, interval and p, as shares, at IoU 0.5.
    """
    compared = []
    for pair in combinations([row for row in table.rows if row.paper], 2):
        better, worse = sorted(pair, key=lambda row: -row.paper[0])
        found = numbers.contrast(table, better.setting, worse.setting)
        if found and better.paper[0] != worse.paper[0]:
            compared.append(
                {
                    "better": better.setting,
                    "worse": worse.setting,
                    "paper": round(better.paper[0] - worse.paper[0], 1),
                    "ours": found[IOUS[0]]["recall"][FIRST],
                }
            )
    return compared


def page(content: Mapping[str, Any], has_picture: bool) -> str:
    """The Markdown."""
    pairs = content["runs"][0]["pairs"] if content["runs"] else {}
    parts = ["# Evidence"]
    if has_picture:
        parts.append("![Recall at 0.25 false positives per image of every row](images/evidence.png)")
    parts.append(BEFORE.format(**content, training=pairs.get("training", 0), test=pairs.get("test", 0)))
    parts.append(in_short(content))
    for name, table in TABLES.items():
        command = f"{content['command']} --only {name}"
        parts += _part(name, table, content["tables"][name], command, content["runs"])
    parts += [geometry_part(content["links_beside_geometry"]), AFTER.format(**content)]
    parts.append(_cost(content["runs"]))
    return "\n\n".join(part for part in parts if part) + "\n"


def write(numbers: Numbers, epochs: int, command: str, docs: Path) -> None:
    """Write both files."""
    links = docs / "evidence" / "links.json"
    kept = json.loads(links.read_text(encoding="utf-8")) if links.exists() else None
    content = evidence(numbers, epochs, command, kept)
    (docs / "images").mkdir(parents=True, exist_ok=True)
    has_picture = draw(content["tables"], docs / "images" / "evidence.png")
    text = json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False)
    (docs / "evidence.json").write_text(text + "\n", encoding="utf-8")
    (docs / "evidence.md").write_text(page(content, has_picture), encoding="utf-8")


def _part(
    name: str, table: Table, content: Mapping[str, Any], command: str, runs: Sequence[Mapping[str, Any]]
) -> list[str]:
    """A table's part of the page."""
    rows = list(zip(table.rows, content["rows"], strict=True))
    parts = [f"## {table.title}", table.about, f"```bash\n{command}\n```"]
    if all(row["numbers"] is None for _, row in rows):
        return [*parts, "Not run yet."]
    its = [run for run in runs if run["setting"] in {row.setting for row in table.rows}]
    parts.append(f"Runs: {len(its)}, {_hours(its)} in all ([one by one](#machine-time)).")
    where = "validation" if table.section == "validation" else "test"
    parts += [f"Recall in % on the {where} section at IoU ≥ 0.5:", _recall_table(table, rows, IOUS[0])]
    differences = _difference_table(table, rows, content["contrasts"])
    if differences:
        parts += ["Differences in points, with p:", differences]
    if table.links:
        parts += [_link_table(table, rows)]
    parts += ["At IoU ≥ 0.2:", _recall_table(table, rows, IOUS[1], brief=True)]
    if table.false_positives:
        parts += [_false_positive_table(table, rows)]
    return [*parts, _order_words(table, content["order"]), FINDINGS.get(name, "")]


def _recall_table(
    table: Table, rows: Sequence[tuple[Row, Mapping[str, Any]]], iou: str, brief: bool = False
) -> str:
    rates = _rates(table)
    has_paper = any(row.paper for row in table.rows) and not brief
    heads = [*table.heads, *(f"R@{rate}" for rate in rates)]
    heads += [] if brief else [f"R@{FIRST} by seed"]
    heads += ["paper, DDSM"] if has_paper else []
    lines = []
    for row, content in rows:
        numbers = content["numbers"]
        if numbers is None:
            cells = [NOT_RUN] + [""] * (len(rates) - (1 if brief else 0))
        else:
            recall = numbers[iou]["recall"]
            cells = [percent(recall[rate], brief) for rate in rates]
            by_seed = recall[FIRST]["by_seed"].values()
            cells += [] if brief else [", ".join(f"{100 * value:.1f}" for value in by_seed)]
        cells += [" / ".join(f"{value:.1f}" for value in row.paper)] if has_paper else []
        lines.append([*_labels(row), *cells])
    return table_text(heads, lines)


def _difference_table(
    table: Table, rows: Sequence[tuple[Row, Mapping[str, Any]]], contrasts: Sequence[Mapping[str, Any]]
) -> str:
    names = {row.setting: row.words for row in table.rows}
    lines = []
    for row, content in rows:
        minus = content["numbers"] and content["numbers"][IOUS[0]]["minus_reference"]
        if minus:
            reference = names.get(REFERENCE, "CL-Net") if row.view is None else "both views"
            lines.append((f"{row.words} − {reference}", minus))
    for contrast in contrasts:
        if contrast["numbers"]:
            words = f"{names[contrast['ours']]} − {names[contrast['theirs']]}"
            lines.append((words, contrast["numbers"][IOUS[0]]))
    rates = _rates(table)
    cells = [[words, *(points(found["recall"][rate]) for rate in rates)] for words, found in lines]
    return table_text(["", *(f"R@{rate}" for rate in rates)], cells) if lines else ""


def _link_table(table: Table, rows: Sequence[tuple[Row, Mapping[str, Any]]]) -> str:
    lines = []
    for row, content in rows:
        links = content["numbers"] and content["numbers"][IOUS[0]]["links"]
        if links:
            lines.append([*_labels(row), *map(percent, links.values())])
    if not lines:
        return ""
    return "Links in %, IoU ≥ 0.5:\n\n" + table_text([*table.heads, *LINK_HEADS], lines)


def _false_positive_table(table: Table, rows: Sequence[tuple[Row, Mapping[str, Any]]]) -> str:
    lines = [
        [*_labels(row), seed, *(f"{100 * look[name]:.1f}" for name in FALSE_POSITIVE_HEADS)]
        for row, content in rows
        for seed, look in content["false_positives"].items()
    ]
    if not lines:
        return ""
    return (
        f"A closer look at the false positives, at R@{FIRST} and IoU ≥ 0.5. In all other tables a further "
        "box on a mass that is already hit does not count as one "
        f"([evaluation.md](evaluation.md#what-is-counted)). Here R@{FIRST} is also given with such boxes "
        "counted (`--count-duplicates`), and the share of false positives, in %, that show a mimic (IoU "
        "with it ≥ 0.2). Runs without this record are left out:\n\n"
        + table_text([*table.heads, "seed", *FALSE_POSITIVE_HEADS.values()], lines)
    )


def _order_words(table: Table, compared: Sequence[Mapping[str, Any]]) -> str:
    if not compared:
        return ""
    names = {row.setting: row.words for row in table.rows}
    against = [pair for pair in compared if pair["ours"]["value"] < 0]
    words = (
        f"Pairs of rows that the paper tells apart at R@{FIRST}: {len(compared)}; of these stand in its "
        f"order here: {len(compared) - len(against)}."
    )
    for pair in against:
        words += (
            f" The paper has *{names[pair['better']]}* above *{names[pair['worse']]}* by "
            f"{pair['paper']:.1f}; here the difference is {points(pair['ours'])}."
        )
    return words


def _cost(runs: Sequence[Mapping[str, Any]]) -> str:
    """The runs, one by one."""
    if not runs:
        return ""
    of_cpu = [run.get("training_cpu_seconds") if _is_trained(run) else None for run in runs]
    lines = [
        [
            f"`{run['setting']}`",
            str(run["seed"]),
            f"{_seconds(run) / 60:.1f}",
            "" if cpu is None else f"{cpu / 60:.1f}",
            str((run["best"] or {}).get("epoch", "")),
            f"{run['git_commit'][:12]}{'-dirty' * run['git_commit'].endswith('-dirty')}",
        ]
        for run, cpu in zip(runs, of_cpu, strict=True)
    ]
    known = [cpu for cpu in of_cpu if cpu is not None]
    told = (
        f"CPU time was recorded for {len(known)} trainings: {sum(known) / 3600:.1f} hours." if known else ""
    )
    machines = sorted({f"{run['machine']['processor']}, {run['machine']['cores']} cores" for run in runs})
    heads = ["setting", "seed", "minutes", "of CPU", "best epoch", "commit"]
    return (
        f"## Machine time\n\n{len(runs)} runs, {sum(map(_is_trained, runs))} of them trained, one thread "
        f"each, on {'; '.join(machines)}: {_hours(runs)} from start to end of each, summed. That includes "
        f"pauses, and time in which the machine did other work. {told}\n\n" + table_text(heads, lines)
    )


def _seconds(run: Mapping[str, Any]) -> float:
    """From start to end of a run, its evaluations included."""
    training = run["training_seconds"] if _is_trained(run) else 0.0
    return float(training + sum(run["evaluation_seconds"].values()))


def _is_trained(run: Mapping[str, Any]) -> bool:
    """Whether it is more than an evaluation of another run's weights."""
    return SETTINGS[run["setting"]].trained_as is None


def _hours(runs: Sequence[Mapping[str, Any]]) -> str:
    return f"{sum(map(_seconds, runs)) / 3600:.1f} hours"


def _rates(table: Table) -> Sequence[str]:
    """Those of the paper's table, or all."""
    return PAPER_RATES[: max(len(row.paper) for row in table.rows) or len(PAPER_RATES)]


def _labels(row: Row) -> list[str]:
    return [f"**{label}**" if row.setting == REFERENCE and label else label for label in row.labels]
