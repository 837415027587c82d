"""The embedded data set: a 3D breast, projected to CC and MLO, whose boxes and links are exactly known."""

from clnet.phantom.dataset import PhantomError, PhantomSettings, make_phantom
from clnet.phantom.scene import DIFFICULTIES

__all__ = ["DIFFICULTIES", "PhantomError", "PhantomSettings", "make_phantom"]
