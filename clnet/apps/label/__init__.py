"""The MONAI Label app: annotate pairs with the help of CL-Net, see docs/label.md."""

from clnet.apps.label import compatibility  # noqa: F401  before any module here imports MONAI Label
