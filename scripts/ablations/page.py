"""The evidence pages: docs/evidence.md, and the tables behind it in docs/evidence/."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ablations.by_eye import by_eye_page
from ablations.figure import draw
from ablations.geometry import links_page
from ablations.tables import RATES, TABLES, Table
from ablations.words import (
    ABOUT,
    TRUST,
    data_words,
    first_sentence,
    missing_words,
    more_answers,
    setting_names,
    short_name,
    verdict,
)
from page_text import by_seed, percent
from page_text import table as table_text

Content = Mapping[str, Any]


def pages(content: Content) -> dict[str, str]:
    """Every page as Markdown, by its path below docs/."""
    files = {"evidence.md": _front_page(content)}
    for name, numbers in content["tables"].items():
        files[f"evidence/{name}.md"] = _table_page(TABLES[name], numbers)
    if content["links_beside_geometry"]:
        files["evidence/links.md"] = links_page(content["links_beside_geometry"])
    if content["links_by_eye"]:
        files["evidence/links_by_eye.md"] = by_eye_page(content["links_by_eye"])
    files["evidence/README.md"] = _index(content, files)
    if content["runs"]:
        files["evidence/machine_time.md"] = _machine_time(content["runs"])
    return {name: "\n\n".join(filter(None, parts)) + "\n" for name, parts in files.items()}


def readme_passage(content: Content) -> str:
    """What the first page of the project says: whether the second view helps, on films and on the phantom."""
    return "\n\n".join(
        part
        for name in ("film", "phantom")
        if name in content["tables"]
        for part in (
            f"{TABLES[name].title}, IoU ≥ {TABLES[name].iou:g}, duplicates are false positives, 95% "
            "intervals over patients and seeds:",
            _recall_table(TABLES[name], content["tables"][name]["rows"], RATES[:3], links=True, paper=False),
        )
    )


def write(content: Content, docs: Path) -> None:
    """Write the data, the picture and the pages."""
    for folder in ("images", "evidence"):
        (docs / folder).mkdir(parents=True, exist_ok=True)
    text = json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False)
    (docs / "evidence.json").write_text(text + "\n", encoding="utf-8")
    if content["tables"]:
        draw(content["tables"], docs / "images" / "evidence.png")
    for name, page in pages(content).items():
        (docs / name).write_text(page, encoding="utf-8")


def _front_page(content: Content) -> list[str]:
    tables = [
        part
        for name, numbers in content["tables"].items()
        for part in (
            f"## {TABLES[name].title}",
            f"{TABLES[name].about.replace('../', '')} [The whole table](evidence/{name}.md).",
            _recall_table(TABLES[name], numbers["rows"], RATES[:3], links=True),
            missing_words(numbers["missing"]),
        )
    ]
    return [
        "# Evidence",
        first_sentence(content["answers"]),
        "![Recall at 0.25 false positives per image](images/evidence.png)" if tables else "",
        *_answers(content["answers"]),
        *more_answers(content),
        ABOUT,
        *tables,
        *_cost(content),
        TRUST.strip(),
    ]


def _answers(answers: Sequence[Content]) -> list[str]:
    if not answers:
        return []
    names = setting_names()
    lines = [
        [
            f"{answer['words']} [{data_words(answer['table'])}](evidence/{answer['table']}.md)",
            f"{short_name(names[answer['ours']])} − {short_name(names[answer['theirs']])}, {answer['unit']}",
            verdict(answer),
        ]
        for answer in answers
    ]
    return ["## Answers", table_text(["question", "difference", "points"], lines)]


def _recall_table(
    table: Table,
    rows: Sequence[Content],
    rates: Sequence[str],
    links: bool = False,
    part: str = "",
    iou: float | None = None,
    paper: bool = True,
) -> str:
    key = f"iou={iou or table.iou:g}"
    heads = ["", *(f"R@{rate}" for rate in rates), *(["link F1"] if links else []), "seeds"]
    has_paper = paper and any(row["paper"] for row in rows) and not part and iou is None
    lines = []
    for row in rows:
        numbers = row["numbers"]
        cells = [percent(numbers[f"{key}/{part}recall/{rate}"]) for rate in rates]
        if links:
            f1 = numbers.get(f"{key}/links/f1")
            cells.append(percent(f1) if f1 and f1["value"] is not None else "")
        theirs = " / ".join(f"{row['paper'][rate]:.1f}" for rate in rates if rate in row["paper"])
        lines.append([row["name"], *cells, str(len(row["seeds"])), *([theirs] if has_paper else [])])
    return table_text([*heads, *(["paper, DDSM"] if has_paper else [])], lines)


def _table_page(table: Table, content: Content) -> list[str]:
    rows, iou = content["rows"], table.iou
    other = 0.5 if iou == 0.2 else 0.2
    return [
        f"# {table.title}",
        table.about,
        f"Recall in %, IoU ≥ {iou:g}, duplicates are false positives; in brackets 95% intervals over "
        "patients and seeds, of a row with one seed over patients alone:",
        _recall_table(table, rows, RATES),
        "The same in breasts with both views:",
        _recall_table(table, rows, RATES, part="both views/"),
        f"All breasts, IoU ≥ {other:g}:",
        _recall_table(table, rows, RATES, iou=other),
        f"R@{RATES[0]} seed by seed:",
        table_text(
            ["", "seeds", f"R@{RATES[0]}"],
            [
                [
                    row["name"],
                    ", ".join(map(str, row["seeds"])),
                    by_seed(row["numbers"][f"iou={iou:g}/recall/{RATES[0]}"]),
                ]
                for row in rows
            ],
        ),
        *_links(table, rows),
        *_groups(table, content),
    ]


def _links(table: Table, rows: Sequence[Content]) -> list[str]:
    """Link measures of the rows that link."""
    columns = {
        "precision": "links/precision",
        "recall": "links/recall",
        "F1": "links/f1",
        "found in both views, linked correctly": "links/accuracy",
        "the same, several masses": "links of several/accuracy",
        "the same, one mass in each view": "links of single pairs/accuracy",
    }
    key = f"iou={table.iou:g}"
    lines = []
    for row in rows:
        if row["numbers"].get(f"{key}/links/f1", {}).get("value") is not None:
            cells = [percent(row["numbers"][f"{key}/{measure}"]) for measure in columns.values()]
            lines.append([row["name"], *cells])
    alone = [
        [row["name"], *(_mean_of(row["only_in_one_view"], name) for name in ("precision", "recall"))]
        for row in rows
        if any(row["only_in_one_view"].values())
    ]
    if not lines:
        return []
    return [
        f"Links in %, IoU ≥ {table.iou:g}:",
        table_text(["", *columns], lines),
        "Links that say *only in this view*, in %, means over seeds:",
        table_text(["", "precision", "recall"], alone),
    ]


def _mean_of(by_seed: Mapping[str, Content | None], name: str) -> str:
    known = [100 * of[name] for of in by_seed.values() if of and of[name] is not None]
    return f"{sum(known) / len(known):.1f}" if known else "none"


def _groups(table: Table, content: Content) -> list[str]:
    """Recall by group of boxes, and its difference between two rows."""
    rows = {row["setting"]: row["numbers"] for row in content["rows"]}
    if not content["gain"] or table.gain is None:
        return []
    key, ending, titles = f"iou={table.iou:g}/", f"/recall/{RATES[0]}", setting_names()
    lines = [
        [
            name.removeprefix(key[:-1]).removesuffix(ending).strip("/").replace("/", " ") or "all",
            *(percent(rows[setting][name]) for setting in table.gain),
            percent(difference, signed=True),
        ]
        for name, difference in content["gain"].items()
        if name.startswith(key) and name.endswith(ending)
    ]
    return [
        f"R@{RATES[0]} by group of boxes, at the thresholds of the whole section:",
        table_text(["", *(titles[setting] for setting in table.gain), "difference in points"], lines),
    ]


def _cost(content: Content) -> list[str]:
    runs = content["runs"]
    if not runs:
        return []
    hours = sum(run["training_cpu_seconds"] or 0 for run in runs) / 3600
    return [
        "## What does it cost?",
        f"{len(runs)} trainings took {hours:.1f} CPU hours, one thread each "
        "([one by one](evidence/machine_time.md)). They are kept in `docs/evidence/runs`, so that this "
        "command trains only what is missing, and with `--page` writes the pages again without training:",
        f"```bash\n{content['command']}\n```",
        "Without `--film` it leaves out the films.",
    ]


def _index(content: Content, files: Mapping[str, Any]) -> list[str]:
    titles = {name: TABLES[name].title for name in content["tables"]}
    if "evidence/links.md" in files:
        titles["links"] = "Links beside geometry"
    if "evidence/links_by_eye.md" in files:
        titles["links_by_eye"] = "Links in breasts with several masses, by eye"
    if content["runs"]:
        titles["machine_time"] = "Machine time"
    return [
        "# Tables behind the evidence",
        "The answers are in [evidence.md](../evidence.md); these are the numbers that they rest on.",
        "\n".join(f"- [{title}]({name}.md)" for name, title in titles.items()),
    ]


def _machine_time(runs: Sequence[Content]) -> list[str]:
    lines = [
        [
            f"`{run['setting']}`",
            str(run["seed"]),
            f"{(run['training_cpu_seconds'] or 0) / 60:.0f}",
            str(run["best"]["epoch"]),
            f"{100 * run['best']['value']:.1f}",
            _last_quarter(run),
            run["git_commit"] if " " in run["git_commit"] else run["git_commit"][:12],
        ]
        for run in runs
    ]
    machines = sorted({f"{run['machine']['processor']}, {run['machine']['cores']} cores" for run in runs})
    return [
        "# Machine time",
        f"{len(runs)} trainings, one thread each, on {'; '.join(machines)}. *Last quarter* is the mean "
        "recall of the last validation minus that of the first one in the last quarter of the training, in "
        "points: near zero where it was long enough.",
        table_text(
            ["setting", "seed", "CPU minutes", "best epoch", "its mean recall", "last quarter", "commit"],
            lines,
        ),
    ]


def _last_quarter(run: Content) -> str:
    """How much validation rose in the last quarter of a training."""
    late = [value for epoch, value in run["validation"].items() if int(epoch) >= 0.75 * run["epochs"]]
    return f"{100 * (late[-1] - late[0]):+.1f}"
