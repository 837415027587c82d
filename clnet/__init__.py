"""CL-Net: masses in the two views of a breast, and which of them are the same mass."""

from importlib.metadata import version

__version__ = version("clnet")
