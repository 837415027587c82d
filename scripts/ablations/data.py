"""The data sets of the ablation: the phantom, and its subsets for some settings.

A subset has no images of its own: its datalist names those of the phantom.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from clnet.data.datalist import Datalist, write_datalist
from clnet.data.pair import Pair
from clnet.phantom import PhantomSettings, make_phantom


def only_view(datalist: Datalist, view: str) -> Datalist:
    """The pairs that have this view, without the other view."""

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


SUBSETS: dict[str, Callable[[Datalist], Datalist]] = {
    "cc": lambda datalist: only_view(datalist, "cc"),
    "mlo": lambda datalist: only_view(datalist, "mlo"),
    "half": half,
}
"""Each subset, made from the datalist of the phantom."""


def make_data(output: Path, pairs: int, names: set[str], film: Path | None) -> dict[str, Path]:
    """Make the named data sets where they are missing; return the folder of each.

    Args:
        output: the folder that they are made in.
        pairs: of each phantom.
        names: "phantom", "patient" (the phantom of that difficulty), a name in `SUBSETS`, or "film".
        film: the folder of films with a datalist, which cannot be made.
    """
    folders = {"film": film} if film else {}
    if "patient" in names:
        folders["patient"] = output / "phantom_patient"
        make_phantom(folders["patient"], PhantomSettings(pairs, difficulty="patient"))
    subsets = sorted(names & SUBSETS.keys())
    if subsets or "phantom" in names:
        folders["phantom"] = output / "phantom"
        phantom = make_phantom(folders["phantom"], PhantomSettings(pairs))
    for name in subsets:
        folders[name] = output / f"phantom_{name}"
        write_datalist(SUBSETS[name](phantom), folders[name] / "datalist.json")
    return folders
