"""The page docs/performance_gpu.md, from the measurements of `benchmarks/gpu.py`."""

from typing import Any

from page_text import table


def page_of(result: dict[str, Any]) -> str:
    """The Markdown."""
    machine = result["machine"]
    versions = ", ".join(f"{name} {version}" for name, version in result["versions"].items())
    measured = result["gpu"]
    attention = [
        [
            name.replace("x", "×"),
            words,
            _time(values[f"fused_{kind}"]),
            _time(values[f"reference_{kind}"]),
            f"{values['greatest_difference']:.0e}",
        ]
        for name, values in measured["attention"].items()
        for kind, words in (("forward", "forward"), ("forward_backward", "forward and backward"))
    ]
    network = [
        [
            size.replace("x", "×"),
            way,
            _time(values["inference"]),
            _time(values["training_step"]),
            _memory(values["training_step"]),
            f"{values['greatest_difference']:.0e}" if "greatest_difference" in values else "",
        ]
        for size, ways in measured["network"].items()
        for way, values in ways.items()
    ]
    block = [
        [elements, _time(times["forward"]), _time(times["forward_backward"])]
        for elements, times in measured["block"].items()
    ]
    errors = [
        f"- {size}, {way}, {kind}: `{values[kind]['error']}`\n"
        for size, ways in measured["network"].items()
        for way, values in ways.items()
        for kind in ("inference", "training_step")
        if "error" in values[kind]
    ]
    parts = [
        "# Performance on a GPU",
        f"`./scripts/benchmark --gpu` on {result['gpu_name']}, {machine['processor']}, Python "
        f"{machine['python']}; {versions}. Medians of some rounds; TF32 is off.",
        "## Deformable attention",
        "One image in a layer of the paper's encoder. Milliseconds of the kernel and of `grid_sample`.",
        _table(["", "", "kernel", "reference", "largest difference"], attention),
        "Milliseconds by the elements of a program (`ELEMENTS` in `clnet/ops/triton_attention.py`):",
        _table(["elements", "forward", "forward and backward"], block),
        "## The whole network",
        "Two images in Deformable DETR of the paper's size, by us and by transformers, with the same "
        "weights. Milliseconds, and MiB of GPU memory in training; the difference is the largest from the "
        "first row.",
        _table(["", "", "inference", "forward and backward", "memory", "largest difference"], network),
    ]
    if errors:
        parts += ["What failed:", "".join(errors).rstrip("\n")]
    return "\n\n".join(parts) + "\n"


def _table(heads: list[str], rows: list[list[str]]) -> str:
    return table(heads, rows, numbers_right=True).rstrip("\n")


def _time(value: dict[str, Any]) -> str:
    return f"{1000 * value['seconds']:.2f}" if "seconds" in value else "failed"


def _memory(value: dict[str, Any]) -> str:
    return f"{value['peak_bytes'] / 2**20:.0f}" if "peak_bytes" in value else ""
