"""What the networks learn from: which query answers for which lesion, and what its answer costs."""

from clnet.losses.detection import DetectionLoss
from clnet.losses.link import LinkLoss, PairVerificationLoss, PartnerLoss
from clnet.losses.proposal import ProposalLoss
from clnet.losses.total import CLNetLoss

__all__ = ["CLNetLoss", "DetectionLoss", "LinkLoss", "PairVerificationLoss", "PartnerLoss", "ProposalLoss"]
