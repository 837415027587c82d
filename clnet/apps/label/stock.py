"""MONAI Label's own command, in the versions that clnet needs: ``python -m clnet.apps.label.stock WORDS``.

It runs MONAI Label's apps, such as monaibundle, with clnet's bundle in it. What they import of torchvision,
two functions that draw pictures of filters, is left out where torchvision is not installed.
"""

import importlib.util
import sys
import types

import monai.transforms  # noqa: F401  looks for torchvision itself, before there is something of that name


def _not_here(*_: object, **__: object) -> None:
    raise ImportError("torchvision is not installed")


if importlib.util.find_spec("torchvision") is None:
    drawing = types.ModuleType("torchvision.utils")
    drawing.make_grid = drawing.save_image = _not_here  # type: ignore[attr-defined]
    sys.modules |= {"torchvision": types.ModuleType("torchvision"), "torchvision.utils": drawing}

if __name__ == "__main__":
    from monailabel.main import Main

    Main().run()
