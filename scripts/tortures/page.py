"""The page docs/reliability.md, from the figures."""

from collections.abc import Mapping
from typing import Any

from page_text import table

KILLED = {
    "predict": "`clnet predict`",
    "training": "a training of the bundle",
    "label": "a label saved in the Label app",
    "serve": "`clnet serve`",
    "full_disk": "`clnet predict`, disk full",
    "vanishing": "`clnet predict`, an input vanishes",
}
ABOUT_KILLS = {
    "predict": "Killed after a random share of what a run computes, and started again until it ends by "
    "itself. After each kill every published file must be that of an undisturbed run, byte for "
    "byte, and at the end all of them must be there.",
    "training": "The same; at the end all weights, both checkpoints with their optimiser and counters, "
    "must equal those of an undisturbed run to the bit.",
    "label": "Killed at points spread evenly over all calls of a save. The old or the new label must be "
    "there whole, and the next save must succeed.",
    "serve": "Killed at random moments, a fifth of them while it starts, while studies are sent to it "
    "and its destination is away for a third of the time. Every study must arrive once.",
    "full_disk": "Disks of as many sizes, from one that holds nothing. The run must end with status 3 and "
    "say that the disk is full, and with more room be as one that was left alone.",
    "vanishing": "An image is removed at a random moment. The run must end, and all other breasts be as "
    "before.",
}
ABOUT_COUNTS = (
    "- `clnet predict`, trainings and `clnet serve` are forked off a process that has imported "
    "PyTorch and MONAI, so that the kills hit their work and not these seconds; some are started "
    "from nothing.\n"
    "- An orphan is a process that is alive five minutes after the one that had started it was "
    "killed. MB are of the largest process."
)
HEAD = """# Reliability

What a power cut, a full disk and an attacker would find. This command kills `clnet`, fills its disks, damages
its files, sends it nonsense, counts what is lost, and writes this page:

```bash
./scripts/torture
```

It takes some minutes. `./scripts/torture --full` takes hours; `--resume` adds to the figures that are there.
[SECURITY.md](../SECURITY.md) says what is promised."""


def page_of(result: Mapping[str, Any]) -> str:
    """The Markdown."""
    parts = [
        HEAD,
        *_kills(result),
        *_inputs(result),
        *_fuzzing(result),
        *_http(result),
        *_failures(result),
        *_where(result),
    ]
    return "\n\n".join(parts) + "\n"


def _kills(result: Mapping[str, Any]) -> list[str]:
    done = [name for name in KILLED if name in result]
    if not done:
        return []
    heads = ["", "tried", "survived", "lost", "torn", "orphans", "does not start", "seconds", "most MB"]
    keys = ("tried", "survived", "lost", "torn", "orphans", "stuck")
    rows = [
        [
            KILLED[name],
            *(f"{result[name][key]:,}" for key in keys),
            f"{result[name]['seconds']:,.0f}",
            f"{result[name]['peak_mb']:,}",
        ]
        for name in done
    ]
    words = [f"- {KILLED[name]}. {ABOUT_KILLS[name]}{_notes(result[name])}" for name in done]
    words.append(ABOUT_COUNTS)
    return ["## Kills and disks", table(heads, rows, numbers_right=True), "\n".join(words)]


def _notes(part: Mapping[str, Any]) -> str:
    notes = "; ".join(f"{number:,.0f} × {name}" for name, number in part["notes"].items())
    return f" {notes}." if notes else ""


def _inputs(result: Mapping[str, Any]) -> list[str]:
    if "inputs" not in result:
        return []
    part = result["inputs"]
    notes = dict(part["notes"])
    formats, slowest = notes.pop("formats and transfer syntaxes", 0), notes.pop("slowest, seconds", 0)
    wrong = notes.pop("not refused by name", 0)
    rows = [[f"`{name}`" if name != "read" else name, f"{number:,.0f}"] for name, number in notes.items()]
    return [
        "## Damaged files",
        f"{part['tried']:,} damaged copies of {formats:.0f} kinds of files: DICOM in every transfer syntax "
        "that is "
        "read (the high-throughput ones hold a JPEG 2000 stream), PNG, JPEG, NIfTI, datalists and "
        "findings. Bytes "
        "are cut, turned, repeated, moved and replaced; tags and JSON values become others that make no "
        "sense. Each "
        f"was read or refused by name: {wrong:.0f} other errors, {part['stuck']} crashes or hangs, the "
        "slowest "
        f"{slowest:.2f} s of a core, at most {part['peak_mb']:,} MB.",
        table(["outcome", "inputs"], rows, numbers_right=True),
        "A message names the file, can be printed, is not long, and never holds the patient's name.",
    ]


def _fuzzing(result: Mapping[str, Any]) -> list[str]:
    if "fuzzing" not in result:
        return []
    part, names = result["fuzzing"], ("ljpeg", "overlay", "ics", "stream")
    about = {
        "ljpeg": "DDSM's lossless JPEG",
        "overlay": "DDSM's `.OVERLAY`",
        "ics": "DDSM's `.ics`",
        "stream": "sizes and tiles of compressed streams",
    }
    rows = [
        [
            about[name],
            *(
                f"{part['notes'].get(f'{name}, {what}', 0):,.0f}"
                for what in ("inputs", "edges covered", "inputs that covered something new")
            ),
        ]
        for name in names
    ]
    return [
        "## Readers of bytes",
        "The readers that are not a library's are fuzzed by [atheris](https://github.com/google/atheris), "
        "which "
        "looks for inputs that reach new code, from a small corpus in `scripts/tortures/corpus`: "
        f"{part['tried'] - part['survived']} of {part['tried']:,} inputs crashed, took more than 5 s or 2 "
        "GB, or "
        "were refused without a name.",
        table(["reader", "inputs", "edges covered", "inputs kept"], rows, numbers_right=True),
    ]


def _http(result: Mapping[str, Any]) -> list[str]:
    names = {"serve_http": "`clnet serve`", "label_http": "the Label server"}
    rows = []
    for name, words in names.items():
        if name in result:
            notes = dict(result[name]["notes"])
            slowest = notes.pop("slowest, seconds")
            statuses = ", ".join(
                f"{key.removeprefix('status ')}: {value:,.0f}" for key, value in notes.items()
            )
            rows.append(
                [words, f"{result[name]['tried']:,}", f"{result[name]['lost']}", f"{slowest:.1f}", statuses]
            )
    if not rows:
        return []
    return [
        "## HTTP",
        "[schemathesis](https://schemathesis.io) makes requests from the OpenAPI of each server, by its "
        "token; the "
        "routes of Label that start trainings and inference have tests of their own. None may be answered "
        "with a "
        "status of 500, or not at all.",
        table(["server", "requests", "500 or none", "slowest, s", "statuses"], rows),
    ]


def _failures(result: Mapping[str, Any]) -> list[str]:
    lines = [
        f"- {name}: `{failure[:300]}`"
        for name, part in result.items()
        for failure in part.get("failures", ())
    ]
    return ["## Failures", "\n".join(lines)] if lines else []


def _where(result: Mapping[str, Any]) -> list[str]:
    places: dict[str, list[str]] = {}
    for name, part in result.items():
        about = part["about"]
        versions = ", ".join(f"{package} {number}" for package, number in about["versions"].items())
        place = (
            f"{about['date']}, {about['machine']['processor']}, {about['machine']['cores']} cores; {versions}"
        )
        places.setdefault(place, []).append(f"`{name}` (seed {about['seed']})")
    lines = [f"- {', '.join(names)}: {place}" for place, names in places.items()]
    return ["## Where", "\n".join(lines)] if lines else []
