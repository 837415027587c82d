"""The page of one table, docs/evidence/NAME.md, and the list of all runs with the time that each took."""

from collections.abc import Mapping, Sequence
from typing import Any

from ablations.evidence import IOU, RATE
from ablations.settings import SETTINGS
from ablations.tables import PAPER_RATES, Row, Table
from ablations.words import FINDINGS
from page_text import by_seed, percent, points
from page_text import table as table_text

LOOSER_IOU = "iou=0.2"
LINK_HEADS = ("precision", "recall", "accuracy", "accuracy with several masses")
FALSE_POSITIVE_HEADS = {
    "recall": f"R@{RATE}",
    "recall_duplicates_counted": f"R@{RATE}, duplicates counted",
    "on_mimics": "mimics among false positives",
}
Content = Mapping[str, Any]


def table_page(
    name: str, table: Table, content: Content, all_runs: Sequence[Content], command: str
) -> list[str]:
    """The paragraphs of the page; `content` is the table's part of docs/evidence.json."""
    rows = list(zip(table.rows, content["rows"], strict=True))
    parts = [f"# {table.title}", table.about]
    runs = [run for run in all_runs if run["setting"] in {row.setting for row in table.rows}]
    return [
        *parts,
        FINDINGS.get(name, ""),
        f"Recall in % on the {table.section} section at IoU ≥ 0.5:",
        _recall_table(table, rows),
        *_difference_table(table, rows, content["contrasts"]),
        *(_link_table(table, rows) if table.links else ()),
        "Recall in % at IoU ≥ 0.2:",
        _recall_table(table, rows, LOOSER_IOU, brief=True),
        *(_false_positive_table(table, rows) if table.false_positives else ()),
        _order_words(table, content["order"]),
        f"```bash\n{command} --only {name}\n```",
        f"trains these {len(runs)} runs, which took {hours(runs)} in all ([one by one](machine_time.md)). "
        "How to read the tables: [README.md](README.md).",
    ]


def _recall_table(
    table: Table, rows: Sequence[tuple[Row, Content]], iou: str = IOU, brief: bool = False
) -> str:
    rates = _rates(table)
    has_paper = any(row.paper for row in table.rows) and not brief
    heads = [*table.heads, *(f"R@{rate}" for rate in rates)]
    heads += [] if brief else [f"R@{RATE} by seed"]
    heads += ["paper, DDSM"] if has_paper else []
    lines = []
    for row, content in rows:
        numbers = content["numbers"]
        if numbers is None:
            cells = ["not run"] + [""] * (len(rates) - (1 if brief else 0))
        else:
            recall = numbers[iou]["recall"]
            cells = [percent(recall[rate], brief) for rate in rates]
            cells += [] if brief else [by_seed(recall[RATE])]
        cells += [" / ".join(f"{value:.1f}" for value in row.paper)] if has_paper else []
        lines.append([*_labels(table, row), *cells])
    return table_text(heads, lines)


def _difference_table(
    table: Table, rows: Sequence[tuple[Row, Content]], contrasts: Sequence[Content]
) -> list[str]:
    names = {row.setting: row.words for row in table.rows}
    lines = []
    for row, content in rows:
        minus = content["numbers"] and content["numbers"][IOU]["minus_reference"]
        if minus:
            reference = names.get(table.reference, "CL-Net") if row.view is None else "both views"
            lines.append((f"{row.words} − {reference}", minus))
    for contrast in contrasts:
        if contrast["numbers"]:
            words = f"{names[contrast['ours']]} − {names[contrast['theirs']]}"
            lines.append((words, contrast["numbers"][IOU]))
    if not lines:
        return []
    rates = _rates(table)
    cells = [[words, *(points(found["recall"][rate]) for rate in rates)] for words, found in lines]
    return ["Differences in points, with p:", table_text(["", *(f"R@{rate}" for rate in rates)], cells)]


def _link_table(table: Table, rows: Sequence[tuple[Row, Content]]) -> list[str]:
    lines = []
    for row, content in rows:
        links = content["numbers"] and content["numbers"][IOU]["links"]
        if links:
            lines.append([*_labels(table, row), *map(percent, links.values())])
    return ["Links in %, IoU ≥ 0.5:", table_text([*table.heads, *LINK_HEADS], lines)] if lines else []


def _false_positive_table(table: Table, rows: Sequence[tuple[Row, Content]]) -> list[str]:
    lines = [
        [*_labels(table, row), seed, *(f"{100 * look[name]:.1f}" for name in FALSE_POSITIVE_HEADS)]
        for row, content in rows
        for seed, look in content["false_positives"].items()
    ]
    if not lines:
        return []
    return [
        f"A closer look at the false positives at R@{RATE}, IoU ≥ 0.5. In all other tables a second box on a "
        "mass that is already hit is not a false positive "
        f"([evaluation.md](../evaluation.md#what-is-counted)). Here R@{RATE} is also given with such boxes "
        "counted (`--count-duplicates`), and so is the share of false positives, in %, that show a mimic "
        "(IoU with it ≥ 0.2). Runs without this record are left out:",
        table_text([*table.heads, "seed", *FALSE_POSITIVE_HEADS.values()], lines),
    ]


def _order_words(table: Table, compared: Sequence[Content]) -> str:
    if not compared:
        return ""
    against = [pair for pair in compared if pair["ours"]["value"] < 0]
    words = (
        f"The paper orders {len(compared)} pairs of these rows by R@{RATE}; {len(compared) - len(against)} "
        "have the same order here."
    )
    for pair in against:
        better, worse = row_names(table, pair)
        words += (
            f" The paper has *{better}* above *{worse}* by {pair['paper']:.1f}; here the difference is "
            f"{points(pair['ours'])}."
        )
    return words


def row_names(table: Table, pair: Content) -> tuple[str, str]:
    """What to call the better and the worse row of a pair that the paper orders."""
    names = {row.setting: row.words for row in table.rows}
    return names[pair["better"]], names[pair["worse"]]


def machine_time_page(runs: Sequence[Content]) -> list[str]:
    """All runs, one by one."""
    of_cpu = [run.get("training_cpu_seconds") if is_trained(run) else None for run in runs]
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
    cpu_time = (
        f" CPU time was recorded for {len(known)} trainings: {sum(known) / 3600:.1f} hours." if known else ""
    )
    machines = sorted({f"{run['machine']['processor']}, {run['machine']['cores']} cores" for run in runs})
    return [
        "# Machine time",
        f"{len(runs)} runs, {sum(map(is_trained, runs))} of them trained, one thread each, on "
        f"{'; '.join(machines)}: {hours(runs)} from start to end of each, summed. That includes pauses, and "
        f"time in which the machine did other work.{cpu_time}",
        table_text(["setting", "seed", "minutes", "CPU minutes", "best epoch", "commit"], lines),
    ]


def hours(runs: Sequence[Content]) -> str:
    """The time of all runs."""
    return f"{sum(map(_seconds, runs)) / 3600:.1f} hours"


def is_trained(run: Content) -> bool:
    """Whether a run is more than an evaluation of another run's weights."""
    return SETTINGS[run["setting"]].trained


def _seconds(run: Content) -> float:
    """From start to end of a run, its evaluations included."""
    training = run["training_seconds"] if is_trained(run) else 0.0
    return float(training + sum(run["evaluation_seconds"].values()))


def _rates(table: Table) -> Sequence[str]:
    """Those of the paper's table, or all."""
    return PAPER_RATES[: max(len(row.paper) for row in table.rows) or len(PAPER_RATES)]


def _labels(table: Table, row: Row) -> list[str]:
    return [f"**{label}**" if row.setting == table.reference and label else label for label in row.labels]
