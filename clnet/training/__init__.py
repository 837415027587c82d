"""What training needs beside the network: assignment, losses, batches."""

from clnet.training.detection_loss import DetectionLoss
from clnet.training.link_loss import LinkLoss, PairVerificationLoss
from clnet.training.loss import CLNetLoss, PairedLesionQueryLoss

__all__ = ["CLNetLoss", "DetectionLoss", "LinkLoss", "PairVerificationLoss", "PairedLesionQueryLoss"]
