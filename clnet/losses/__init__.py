"""What the networks learn from: which query answers for which lesion, and what its answer costs."""

from clnet.losses.detection import DetectionLoss
from clnet.losses.link import LinkLoss, PairVerificationLoss
from clnet.losses.total import CLNetLoss

__all__ = ["CLNetLoss", "DetectionLoss", "LinkLoss", "PairVerificationLoss"]
