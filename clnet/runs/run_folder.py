"""The folder of a run."""

from pathlib import Path

from clnet.distributed import first_decides
from clnet.errors import ClnetError
from clnet.runs.checkpoints import LAST


class RunError(ClnetError):
    """A run that cannot begin."""


def run_folder(output_dir: str | Path, name: str, resume: bool = False) -> str:
    """The folder for a run: ``output_dir/name``, or, if a run of that name was there before, ``name-2``, ….

    To resume, the folder must be there. In several processes the first decides for all.
    """
    return str(first_decides(lambda: _choose(Path(output_dir), name, resume)))


def _choose(output_dir: Path, name: str, resume: bool) -> Path:
    if output_dir.exists() and not output_dir.is_dir():
        raise RunError(f"output_dir: {output_dir} is a file; give a folder")
    folder = output_dir / name
    if resume:
        if not (folder / LAST).exists():
            raise RunError(
                f"run_name: there is no checkpoint {folder / LAST} to resume from; "
                "give the output_dir and run_name of the run that was cut off"
            )
        return folder
    number = 2
    while folder.exists():
        folder = output_dir / f"{name}-{number}"
        number += 1
    folder.mkdir(parents=True)
    return folder
