"""CL-Net: find masses in the two mammograms of a breast, and link the same mass across them.

::

    import clnet

    model = clnet.load()                          # the shipped model; or a bundle folder, or a run folder
    for breast in model.predict("study_folder"):  # DICOM folder, files, a datalist, or two arrays
        print(breast.laterality, breast.lesions)  # score, link score, box in each view
        breast.draw().save("breast.png")
"""

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from clnet.data.datalist import read_datalist
    from clnet.evaluation.folder import evaluate_files as evaluate
    from clnet.networks import CLNet
    from clnet.predict.bundle import load

__all__ = ["CLNet", "__version__", "evaluate", "load", "read_datalist"]
__version__ = version("clnet")

# Imported when first used: `import clnet` stays fast, and `clnet --help` needs no PyTorch.
_PLACES = {
    "CLNet": ("clnet.networks", "CLNet"),
    "evaluate": ("clnet.evaluation.folder", "evaluate_files"),
    "load": ("clnet.predict.bundle", "load"),
    "read_datalist": ("clnet.data.datalist", "read_datalist"),
}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'clnet' has no attribute {name!r}")
    module, attribute = _PLACES[name]
    return getattr(import_module(module), attribute)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
