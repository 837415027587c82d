"""The MONAI Label app: annotate pairs with CL-Net at your side, see docs/label.md."""

from clnet.apps.label import compatibility  # noqa: F401  before any module here imports MONAI Label
