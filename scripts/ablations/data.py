"""The data sets of the ablation: the phantom, and what is left of it for some settings.

The others hold no images of their own: their datalists name those of the phantom.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from clnet.data.datalist import Datalist, write_datalist
from clnet.data.pair import Pair
from clnet.phantom import PhantomSettings, make_phantom


def with_view(datalist: Datalist, view: str) -> Datalist:
    """The pairs that have that view, without the other."""

    def one_view(pair: Pair) -> Pair:
        missing = {name: None for name in pair.views if name != view}
        return replace(pair, **missing, links={})

    return Datalist(
        f"{datalist.name}, {view} alone",
        {
            name: tuple(one_view(pair) for pair in pairs if view in pair.views)
            for name, pairs in datalist.sections.items()
        },
    )


def half(datalist: Datalist) -> Datalist:
    """Half of the training pairs, by whole patients; validation and test as they are."""
    patients = sorted({pair.patient_id for pair in datalist["training"]})
    kept = set(patients[: len(patients) // 2])
    training = tuple(pair for pair in datalist["training"] if pair.patient_id in kept)
    return Datalist(f"{datalist.name}, half", {**datalist.sections, "training": training})


MAKERS: dict[str, Callable[[Datalist], Datalist]] = {
    "cc": lambda datalist: with_view(datalist, "cc"),
    "mlo": lambda datalist: with_view(datalist, "mlo"),
    "half": half,
}
"""From the phantom's datalist; beside them "phantom" is the phantom itself."""


def make_data(output: Path, pairs: int, names: set[str]) -> dict[str, Path]:
    """The folder of each data set that is named, made if it is not there."""
    folders = {"phantom": output / "phantom"}
    phantom = make_phantom(folders["phantom"], PhantomSettings(pairs))
    for name in sorted(names - {"phantom"}):
        folders[name] = output / f"phantom_{name}"
        write_datalist(MAKERS[name](phantom), folders[name] / "datalist.json")
    return folders
