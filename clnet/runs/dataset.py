"""The data set of a run: a folder with a datalist, or the phantom, made on first use."""

from pathlib import Path

import ignite.distributed as idist

from clnet.data.datalist import Datalist, DatalistError, read_datalist
from clnet.distributed import is_first_process
from clnet.phantom import PhantomSettings, make_phantom


def open_dataset(dataset_dir: str | Path, phantom_dir: str | Path, phantom_pairs: int) -> Datalist:
    """Read the datalist of a folder; in the phantom's folder, make the phantom first if it is missing.

    Args:
        dataset_dir: any folder with a ``datalist.json``.
        phantom_dir: the folder in which the phantom is made.
        phantom_pairs: how many pairs it gets.
    """
    dataset_dir = Path(dataset_dir)
    if dataset_dir == Path(phantom_dir) and is_first_process():
        make_phantom(dataset_dir, PhantomSettings(phantom_pairs))
    idist.barrier()
    if not (dataset_dir / "datalist.json").exists():
        raise DatalistError(
            f"dataset_dir: {dataset_dir} has no datalist.json; give a folder with one, or leave "
            "--dataset_dir out to use the phantom"
        )
    return read_datalist(dataset_dir)
