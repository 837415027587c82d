"""The networks of the paper, with no input or output of their own."""

from clnet.networks.clnet import PAPER_SETTINGS, CLNet
from clnet.networks.paired_query import PairedLesionQuery
from clnet.networks.pairs import (
    LesionPairs,
    extract_linked_pairs,
    extract_paired_queries,
    extract_verified_pairs,
)
from clnet.networks.settings import SettingError

__all__ = [
    "PAPER_SETTINGS",
    "CLNet",
    "LesionPairs",
    "PairedLesionQuery",
    "SettingError",
    "extract_linked_pairs",
    "extract_paired_queries",
    "extract_verified_pairs",
]
