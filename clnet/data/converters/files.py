"""The files of a data set: everything below its folder, but neither hidden files nor what we wrote there."""

from argparse import Namespace
from pathlib import Path

from clnet.data.converters.marked import ConversionError

DATALIST, ACCOUNT, SHEET, MEMORY = "datalist.json", "conversion.json", "check.png", ".conversion-memory.json"


def find_files(source: Path, options: Namespace) -> list[Path]:
    """All files in `source` and below, by name; `options.out` is passed over if it lies there."""
    if not source.exists():
        raise ConversionError(f"{source}: no such file or folder. Check the path.")
    if source.is_file():
        return [source]
    out = options.out.absolute() if options.out else None
    ours = {out / name for name in (DATALIST, ACCOUNT, SHEET)} if out else set()
    inside = out is not None and out != source.absolute() and out.is_relative_to(source.absolute())
    return [
        file
        for file in sorted(source.rglob("*"))
        if file.is_file()
        and not any(part.startswith(".") for part in file.relative_to(source).parts)
        and file.absolute() not in ours
        and not (inside and out and file.absolute().is_relative_to(out))
    ]
