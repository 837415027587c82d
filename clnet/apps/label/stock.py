"""MONAI Label's own command with our dependencies: ``python -m clnet.apps.label.stock ARGUMENTS``.

It runs MONAI Label's stock apps, such as monaibundle with clnet's bundle. They import two functions of
torchvision that draw filters; without torchvision, these are replaced.
"""

import importlib.util
import sys
import types

import monai.transforms  # noqa: F401  looks for torchvision, and must not find the replacement


def _not_installed(*_: object, **__: object) -> None:
    raise ImportError("torchvision is not installed")


if importlib.util.find_spec("torchvision") is None:
    drawing = types.ModuleType("torchvision.utils")
    drawing.make_grid = drawing.save_image = _not_installed  # type: ignore[attr-defined]
    sys.modules |= {"torchvision": types.ModuleType("torchvision"), "torchvision.utils": drawing}

if __name__ == "__main__":
    from monailabel.main import Main

    Main().run()
