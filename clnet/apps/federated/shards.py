"""The data of each site, cut from one data set, to try a federation on a single machine."""

from pathlib import Path

from clnet.data.datalist import Datalist, read_datalist, split_by_patient, write_datalist
from clnet.errors import ClnetError


class SitesError(ClnetError):
    """A data set that cannot be divided among that many sites."""


def write_shards(dataset: str | Path, sites: int, output: str | Path, seed: int = 0) -> dict[str, Path]:
    """Divide training and validation among sites, by patient and in equal parts; all share the test section.

    Args:
        dataset: a folder with a datalist; the images stay there.
        sites: how many.
        output: gets a folder with a datalist for each site.
        seed: another seed divides in another way.

    Returns:
        The folder of each site by its name, ``site-1``, ``site-2``, …
    """
    whole, names = read_datalist(dataset), [f"site-{number + 1}" for number in range(sites)]
    shares = dict.fromkeys(names, 1 / sites)
    parts = {
        section: split_by_patient(whole[section], shares, seed) for section in ("training", "validation")
    }
    folders = {}
    for name in names:
        sections = {section: part[name] for section, part in parts.items()}
        for section, pairs in sections.items():
            if not pairs:
                raise SitesError(
                    f"{dataset}: section {section} has too few patients for {sites} sites; "
                    "take fewer sites, or more data"
                )
        folders[name] = Path(output) / name
        folders[name].mkdir(parents=True, exist_ok=True)
        datalist = Datalist(f"{whole.name}, {name}", {**sections, "test": whole["test"]})
        write_datalist(datalist, folders[name] / "datalist.json")
    return folders
