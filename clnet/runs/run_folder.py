"""The folder of a run."""

from pathlib import Path

from clnet.distributed import first_decides
from clnet.errors import ClnetError
from clnet.files import make_folder
from clnet.runs.checkpoints import AUTO, LAST


class RunError(ClnetError):
    """A run that cannot start."""


def run_folder(output_dir: str | Path, name: str, resume: bool | str = False) -> str:
    """The folder for a run: ``output_dir/name``, or ``name-2``, ``name-3``, … if that exists.

    To resume, it must exist. With "auto" it is ``output_dir/name`` in any case. In several processes the
    first decides for all.
    """
    return str(first_decides(lambda: _choose(Path(output_dir), name, resume)))


def _choose(output_dir: Path, name: str, resume: bool | str) -> Path:
    if output_dir.exists() and not output_dir.is_dir():
        raise RunError(f"output_dir: {output_dir} is a file; give a folder")
    folder = output_dir / name
    if resume == AUTO:
        make_folder(folder)
        return folder
    if resume:
        if not (folder / LAST).exists():
            raise RunError(
                f"run_name: there is no checkpoint {folder / LAST} to resume from; "
                "give the output_dir and run_name of the interrupted run"
            )
        return folder
    number = 2
    while folder.exists():
        folder = output_dir / f"{name}-{number}"
        number += 1
    make_folder(folder)
    return folder
