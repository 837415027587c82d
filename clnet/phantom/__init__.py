"""The built-in data set: 3D breasts projected to CC and MLO, with exactly known boxes and links."""

from clnet.phantom.dataset import PhantomError, PhantomSettings, make_phantom
from clnet.phantom.scene import DIFFICULTIES

__all__ = ["DIFFICULTIES", "PhantomError", "PhantomSettings", "make_phantom"]
