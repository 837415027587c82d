"""The data sets of the ablation."""

from pathlib import Path

from clnet.phantom import PhantomSettings, make_phantom


def make_data(output: Path, pairs: int, names: set[str], film: Path | None) -> dict[str, Path]:
    """Make the named data sets where they are missing; return the folder of each.

    Args:
        output: the folder that they are made in.
        pairs: of each phantom.
        names: "phantom", "patient" (the phantom of that difficulty), or "film".
        film: the folder of films with a datalist, which cannot be made.
    """
    folders = {"film": film} if film else {}
    for name, settings in {
        "phantom": PhantomSettings(pairs),
        "patient": PhantomSettings(pairs, difficulty="patient"),
    }.items():
        if name in names:
            folders[name] = output / ("phantom" if name == "phantom" else f"phantom_{name}")
            make_phantom(folders[name], settings)
    return folders
