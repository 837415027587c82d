"""The MONAI Label app: annotate pairs with CL-Net at your side, see docs/label.md."""
