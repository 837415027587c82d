"""The page docs/performance.md and its figure, from the measurements."""

from pathlib import Path
from typing import Any

from benchmarks.clocks import ROUNDS
from matplotlib.figure import Figure
from page_text import table as table_text

AXES = {
    "rows": "rows of the image (twice its columns)",
    "queries": "object queries per view",
    "batch": "pairs per batch",
    "threads": "threads",
}


def table(heads: list[str], rows: list[list[str]]) -> str:
    """A Markdown table, numbers to the right."""
    return table_text(heads, rows, numbers_right=True) + "\n"


def versus(measured: dict[str, Any], kinds: dict[str, str], theirs: str) -> str:
    """CPU seconds of ours and theirs, and the largest difference of the outputs."""
    rows = []
    for size, values in measured.items():
        for kind, words in kinds.items():
            ours, other = values[kind]["ours"]["cpu"], values[kind][theirs]["cpu"]
            rows.append(
                [
                    f"{words}, {size.replace('x', '×')}",
                    f"{ours:.3f}",
                    f"{other:.3f}",
                    f"**{other / ours:.2f}×**",
                    f"{values['greatest_difference']:.0e}",
                ]
            )
    return table(["", "ours", theirs, "times as fast", "largest difference"], rows)


def draw_growth(growth: dict[str, Any], file: Path) -> None:
    """One panel for each thing that was changed."""
    figure = Figure(figsize=(11, 2.8), layout="constrained")
    for axes, (name, points) in zip(figure.subplots(1, len(growth)), growth.items(), strict=True):
        places = [float(value) for value in points]
        for clock, style in (("cpu", "o-"), ("wall", "s--")):
            axes.plot(places, [times[clock] for times in points.values()], style, label=clock, markersize=4)
        axes.set(xlabel=AXES[name], xscale="log", yscale="log" if name == "rows" else "linear")
        axes.set_xticks(places, list(points), minor=False)
        axes.minorticks_off()
        if name == "rows":  # few decades: ticks at the measured seconds, rounded
            seconds = [times["wall"] for times in points.values()]
            axes.set_yticks(seconds, [f"{value:.2g}" for value in seconds], minor=False)
            axes.tick_params(axis="y", which="minor", left=False, labelleft=False)
        else:
            axes.set_ylim(bottom=0)
        axes.spines[["top", "right"]].set_visible(False)
    figure.axes[0].set_ylabel("seconds")
    figure.axes[0].legend(frameon=False)
    figure.savefig(file, dpi=120)


def write_page(result: dict[str, Any], docs: Path) -> None:
    """Write performance.md and its picture; what was not measured is left out."""
    if "growth" in result:
        (docs / "images").mkdir(exist_ok=True)
        draw_growth(result["growth"], docs / "images" / "performance.png")
    (docs / "performance.md").write_text(page_of(result), encoding="utf-8")


def page_of(result: dict[str, Any]) -> str:
    """The Markdown: a section for each part."""
    machine = result["machine"]
    versions = ", ".join(f"{name} {version}" for name, version in result["versions"].items())
    parts = ["# Performance\n"]
    if "growth" in result:
        parts.append(
            "![Seconds of inference over rows, queries, batch and threads](images/performance.png)\n\n"
            "How the cost of inference grows, for a pair in the paper's network; 256 rows, 125 queries, a "
            "batch of 1 and one thread unless varied.\n"
        )
    parts.append(
        "```bash\n./scripts/benchmark\n```\n\nmeasures everything on this page and writes it, with every "
        "number in `docs/performance.json`. Parts may come from separate runs. What is compared was "
        "measured in turn: the film model, attention, networks and the pair are medians of several "
        "rounds, other runtimes of two; growth, start, memory and throughput were measured once. Seconds "
        "are CPU seconds on one thread unless the table says otherwise. They are longer where a machine "
        "is busy with other work, as this one was in some parts, so compare those of one part.\n\n"
        f"{machine['processor']}, {machine['cores']} cores, {machine['system']}, Python {machine['python']}; "
        f"{versions}.\n"
    )
    if any(part in result for part in FILM):
        parts.append(_film(result))
    if "attention" in result:
        kinds = {"forward": "forward", "forward_backward": "forward and backward"}
        parts.append(
            "## Deformable attention\n\nOne layer of the paper's encoder: 8 heads of 32 channels, 4 levels, "
            "4 points, every cell a query. On CPU a fused kernel replaces `grid_sample`; numba compiles it "
            "once, no compiler has to be installed. `CLNET_ATTENTION=reference` in the "
            "environment selects `grid_sample`, which exports always use. GPUs have a kernel of their "
            "own, by Triton, which PyTorch's builds for GPUs bring along. It has not been measured on "
            "a GPU yet: `./scripts/benchmark --gpu` does that and writes a page like this one.\n\n"
            + versus(result["attention"], kinds, "reference")
        )
    networks = {
        name.removeprefix("network_"): values
        for name, values in result.items()
        if name.startswith("network_")
    }
    if networks:
        kinds = {
            name: words + more
            for kind, words in (("inference", "inference"), ("training_step", "forward and backward"))
            for name, more in ((kind, ""), (f"{kind}_memory_kept", ", memory kept"))
        }
        turns = ", ".join(f"{rounds} at {size.replace('x', '×')}" for size, rounds in ROUNDS.items())
        parts.append(
            "## The whole network\n\nWithout inter-attention and linker, at the paper's size (ResNet-50, "
            "6 + 6 layers, 125 queries), it is Deformable DETR; here it is compared with that of Hugging "
            "Face's transformers, with the same weights. Two images at a time, in turn, each network in "
            f"its own process; rounds: {turns}.\n\n"
            + versus(networks, kinds, "transformers")
            + "\nAttention is not all of it: in training, 3×3 convolutions on maps of some size are "
            "Winograd's (`clnet/ops/winograd.py`).\n\n"
            "The C library gives memory that large tensors free back to "
            "the system and has to ask for it again, page by page. Runs of the bundle keep it "
            "(`clnet/runs/allocator.py`), and so do ours "
            "here; transformers does in the rows that say *memory kept*, and is unchanged in the others. "
            "The cost of a page differs between machines, and over time on a shared one.\n"
        )
    if "pair" in result:
        times = result["pair"]
        row = ["inference, 512×256", f"{times['pair']['cpu']:.2f}", f"{times['two_images']['cpu']:.2f}"]
        parts.append(
            "## A pair\n\nThe cost of the second view: CL-Net on a pair, compared with two images in the "
            "network without inter-attention and linker.\n\n"
            + table(["", "pair", "two images", "ratio"], [[*row, f"**{times['pair_over_two_images']:.2f}**"]])
            + "\nA pair takes all the work of two images and a little more: a ratio below 1 is noise.\n"
        )
    if "runtimes" in result:
        rows = [
            [name, f"{values['cpu']:.2f}", f"{values['wall']:.2f}", f"{values['greatest_difference']:.0e}"]
            for name, values in result["runtimes"].items()
        ]
        parts.append(
            "## Other runtimes\n\nA pair of 512×256 in the paper's network: in PyTorch on both paths, and as "
            "ONNX; the difference is the largest from the fused path.\n\n"
            + table(["", "CPU s", "wall s", "largest difference"], rows)
        )
    if "start" in result:
        rows = [
            [name.replace("_", " "), *(f"{seconds:.2f}" for seconds in values.values())]
            for name, values in result["start"].items()
        ]
        heads = [name.replace("_", " ") for name in next(iter(result["start"].values()))]
        parts.append(
            "## The start\n\nWall seconds of a fresh process with the small network. The kernel is compiled "
            "once per machine and then found in numba's cache.\n\n" + table(["", *heads], rows)
        )
    if "memory" in result:
        rows = [
            [name.replace("x", "×"), f"{values['before']:.0f}", f"{values['peak']:.0f}"]
            for name, values in result["memory"].items()
        ]
        parts.append(
            "## Memory\n\nMiB of a process that runs the paper's network on one pair.\n\n"
            + table(["", "network made", "peak"], rows)
        )
    if "activations" in result:
        parts.append(_activations(result["activations"]))
    if "throughput" in result:
        rows = [[name.split("_")[0], f"{value:.1f}"] for name, value in result["throughput"].items()]
        parts.append(
            "## From files to results\n\nThe small network of `train.yaml` on the phantom's DICOM files, one "
            "thread. Training: its steps, with images in memory. Inference: reading and preprocessing "
            "included.\n\n" + table(["", "pairs per second"], rows)
        )
    return "\n".join(parts)


def _activations(result: dict[str, Any]) -> str:
    """What a training step keeps on a GPU, and whether 16 GB are enough for `paper.yaml`."""
    state, pairs = result["state"]["bytes"], result["state"]["pairs"]
    sizes = {size.replace("x", "×"): ways for size, ways in result.items() if size != "state"}
    rows = [
        [f"{size}, {way}", f"{kept / 2**20:.0f}", f"{(state + pairs * kept) / 2**30:.1f}"]
        for size, ways in sizes.items()
        for way, kept in ways.items()
    ]
    return (
        "## Activations\n\nMiB that a training step of the paper's network keeps for the gradients on a "
        "GPU, per pair, weights aside; counted by hooks, on tensors without content. bfloat16 is "
        "`--amp True`; `--checkpointing True` computes each block of the image encoder again instead of "
        f"keeping what happens in it. The last column has {pairs} pairs, as `paper.yaml` on each GPU, and "
        "weights, gradients and moments of AdamW: all fit a GPU of 16 GB, by this count, which leaves out "
        "what the CUDA libraries take for themselves and for single operations.\n\n"
        + table(["", "MiB per pair", f"GiB for {pairs} pairs, in all"], rows)
    )


FILM = {
    "film_training": "training step, 4 breasts",
    "film_inference": "network in inference, one breast",
    "film_files": "two DICOM films to findings",
}


def _film(result: dict[str, Any]) -> str:
    """The film model's part."""
    rows, faster = [], []
    for part in filter(result.get, FILM):
        base = result[part]["float32"]["cpu"]
        for way, seconds in result[part].items():
            name, times = f"{FILM[part]}, {way}", base / seconds["cpu"]
            rows.append([name, f"{seconds['cpu']:.3f}", f"{times:.2f}×"])
            faster += [name] if times >= 1.1 and way != "bfloat16" else []
    return (
        "## The film model\n\nThe network of `film.yaml` at 512×256, each way in a process of its own that "
        "keeps the memory that it frees. A training step has loss, matching and optimiser; the films have "
        "4464 × 2848 pixels, and are read, preprocessed and searched.\n\n"
        + table(["", "CPU s", "times as fast as float32"], rows)
        + "\nTraining on films takes bfloat16 where the CPU has instructions for it (AVX512-BF16), as this "
        "one has. Inference stays in float32, so that results are the same everywhere; `--amp True` for "
        "`monai.bundle run` changes that. "
        + (
            f"At least 1.1 times as fast: {'; '.join(faster)}.\n"
            if faster
            else "No compiler or other runtime reaches 1.1 times, so none is used.\n"
        )
    )
