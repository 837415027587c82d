"""The evidence pages: docs/evidence.md, and the long tables in docs/evidence/."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ablations.evidence import RATE, evidence
from ablations.figure import draw
from ablations.geometry import links_page, links_table
from ablations.numbers import Numbers
from ablations.table_page import hours, is_trained, machine_time_page, row_names, table_page
from ablations.tables import TABLES
from ablations.words import (
    ABOUT,
    COMPARISON,
    FIGURE_TABLES,
    GEOMETRY_FINDINGS,
    HOW_TO_READ,
    LINKS_ANSWER,
    QUESTIONS,
    SETUP,
    STATISTICS,
    WHAT_DECIDES,
)
from page_text import by_seed, percent, points
from page_text import table as table_text


def pages(content: Mapping[str, Any], has_pictures: bool) -> dict[str, str]:
    """Every page as Markdown, by its path below docs/."""
    files = {"evidence.md": _front_page(content, has_pictures)}
    files["evidence/README.md"] = _index(content, has_pictures)
    for name, numbers in content["tables"].items():
        files[f"evidence/{name}.md"] = table_page(
            name, TABLES[name], numbers, content["runs"], content["command"]
        )
    if content["links_beside_geometry"]:
        files["evidence/links.md"] = links_page(content["links_beside_geometry"])
    if content["runs"]:
        files["evidence/machine_time.md"] = machine_time_page(content["runs"])
    return {name: "\n\n".join(filter(None, parts)) + "\n" for name, parts in files.items()}


def write(numbers: Numbers, epochs: int, command: str, docs: Path) -> None:
    """Write the data, the pictures and the pages."""
    links = docs / "evidence" / "links.json"
    kept = json.loads(links.read_text(encoding="utf-8")) if links.exists() else None
    content = evidence(numbers, epochs, command, kept)
    for folder in ("images", "evidence"):
        (docs / folder).mkdir(parents=True, exist_ok=True)
    text = json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False)
    (docs / "evidence.json").write_text(text + "\n", encoding="utf-8")
    tables = content["tables"]
    has_pictures = draw(tables, docs / "images" / "evidence_tables.png")
    draw({name: tables[name] for name in FIGURE_TABLES if name in tables}, docs / "images" / "evidence.png")
    for name, page in pages(content, has_pictures).items():
        (docs / name).write_text(page, encoding="utf-8")


def _front_page(content: Mapping[str, Any], has_pictures: bool) -> list[str]:
    return [
        "# Evidence",
        "![Recall at 0.25 false positives per image](images/evidence.png)" if has_pictures else "",
        _filled(ABOUT, content),
        *_answers(content),
        *_links(content["links_beside_geometry"]),
        _filled(WHAT_DECIDES, content),
        *_cost(content),
        *_orders(content),
        STATISTICS,
    ]


def _filled(words: str, content: Mapping[str, Any]) -> str:
    """The words with the size of the experiment filled in."""
    pairs = content["runs"][0]["pairs"] if content["runs"] else {}
    return words.format(**content, training=pairs.get("training", 0), test=pairs.get("test", 0))


def _answers(content: Mapping[str, Any]) -> list[str]:
    """The questions in a table, then a sentence on each."""
    if not content["answers"]:
        return []
    lines = [
        [
            f"[{answer['question']}](evidence/{answer['table']}.md)",
            answer["difference"],
            points(answer["numbers"]),
            percent(answer["seeds_resampled"], signed=True) if answer["seeds_resampled"] else "one seed",
            by_seed(answer["numbers"], signed=True),
        ]
        for answer in content["answers"]
    ]
    heads = ["", f"points at R@{RATE}", "patients resampled", "patients and seeds resampled", "by seed"]
    asked = {answer["question"] for answer in content["answers"]}
    sentences = [
        f"- **{question.words}** {question.answer}" for question in QUESTIONS if question.words in asked
    ]
    return ["## Answers", table_text(heads, lines), "\n".join(sentences)]


def _links(content: Mapping[str, Any] | None) -> list[str]:
    if not content:
        return []
    return [
        "## Are its links better than geometry?",
        LINKS_ANSWER,
        links_table(content, ("precision", "recall", "f1")),
        f"{GEOMETRY_FINDINGS} [The whole table](evidence/links.md).",
    ]


def _cost(content: Mapping[str, Any]) -> list[str]:
    runs = content["runs"]
    if not runs:
        return []
    return [
        "## What does it cost?",
        f"{len(runs)} runs, {sum(map(is_trained, runs))} of them trained, took {hours(runs)} in all, on one "
        "CPU thread each ([one by one](evidence/machine_time.md)). Finished runs are kept in "
        "`docs/evidence/runs`, so that this command trains only what is missing, and with `--page` writes "
        "the pages again without training:",
        f"```bash\n{content['command']}\n```",
    ]


def _orders(content: Mapping[str, Any]) -> list[str]:
    compared = [(name, pair) for name, table in content["tables"].items() for pair in table["order"]]
    if not compared:
        return []
    against = [(name, pair) for name, pair in compared if pair["ours"]["value"] < 0]
    beyond = [(name, pair) for name, pair in against if pair["ours"]["high"] < 0]
    words = (
        f"The paper's tables order {len(compared)} pairs of rows; {len(compared) - len(against)} have the "
        f"same order here, {len(against) - len(beyond)} the opposite order within the interval, "
        f"{len(beyond)} beyond it{':' if beyond else '.'}"
    )
    lines = [
        [
            f"[{TABLES[name].title}](evidence/{name}.md)",
            f"{better} above {worse} by {pair['paper']:.1f}",
            points(pair["ours"]),
        ]
        for name, pair in beyond
        for better, worse in [row_names(TABLES[name], pair)]
    ]
    return [
        "## Where does our order differ from the paper's?",
        words,
        table_text(["table", "the paper", "here"], lines) if lines else "",
        COMPARISON,
    ]


def _index(content: Mapping[str, Any], has_pictures: bool) -> list[str]:
    every_page = {name: TABLES[name].title for name in content["tables"]}
    if content["links_beside_geometry"]:
        every_page["links"] = "Links beside geometry"
    if content["runs"]:
        every_page["machine_time"] = "Machine time"
    return [
        "# Tables behind the evidence",
        "The answers are in [evidence.md](../evidence.md); these are the numbers that they rest on.",
        "\n".join(f"- [{title}]({name}.md)" for name, title in every_page.items()),
        _filled(SETUP, content),
        _filled(HOW_TO_READ, content),
        "![Recall at 0.25 false positives per image of every row](../images/evidence_tables.png)"
        if has_pictures
        else "",
    ]
