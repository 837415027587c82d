"""The networks of the paper, with no input or output of their own."""

from clnet.networks.clnet import CLNet
from clnet.networks.detector import ViewInteractiveDetector
from clnet.networks.encoder import ImageEncoder
from clnet.networks.geometric_linker import GeometricLinker
from clnet.networks.geometry import CommonFrame
from clnet.networks.lesion_linker import LesionLinker
from clnet.networks.light import LightBackbone
from clnet.networks.matcher import DetectorOutputs, LesionPairs, Matcher, NoMatcher
from clnet.networks.pair_verification import PairVerification
from clnet.networks.paired_query import PairedQueryDetector, PairedQueryMatcher
from clnet.networks.proposal_detector import ProposalDetector
from clnet.networks.settings import NetworkSettingError

__all__ = [
    "CLNet",
    "CommonFrame",
    "DetectorOutputs",
    "GeometricLinker",
    "ImageEncoder",
    "LesionLinker",
    "LesionPairs",
    "LightBackbone",
    "Matcher",
    "NetworkSettingError",
    "NoMatcher",
    "PairVerification",
    "PairedQueryDetector",
    "PairedQueryMatcher",
    "ProposalDetector",
    "ViewInteractiveDetector",
]
