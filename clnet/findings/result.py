"""The result of one breast: the one source of every report, picture and table."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from clnet.findings.consistency import mismatch_warning
from clnet.findings.lesions import Lesion, merge_into_lesions
from clnet.findings.types import PairFindings


@dataclass(frozen=True)
class ViewResult:
    """A view that was analysed: its file relative to the input, its size, and what is unusual about it."""

    file: str
    rows: int
    columns: int
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class BreastResult:
    """The result of one breast.

    Attributes:
        breast_id, laterality: which breast.
        key: changes with the files, the model and the settings that the result came from.
        min_score: the least score of its lesions.
        views: those that were analysed, by name ("cc", "mlo").
        refused: for each file that could not be read, the reason.
        warnings: what is unusual about the breast; `views` has the warnings about each image.
        findings: all detections and links, in pixels of the stored images.
        min_consistency: below it the two views may not be of one breast.
    """

    breast_id: str
    laterality: str
    key: str
    min_score: float
    views: Mapping[str, ViewResult]
    refused: Mapping[str, str]
    warnings: tuple[str, ...]
    findings: PairFindings
    min_consistency: float = 0.0

    @cached_property
    def lesions(self) -> tuple[Lesion, ...]:
        """The lesions of the reports, the picture and COCO, the surest first."""
        return tuple(merge_into_lesions(self.findings, self.min_score))

    @property
    def mismatch(self) -> str:
        """What picture and reports say if the two views may not be of one breast; else ""."""
        return mismatch_warning(self.findings.consistency, self.min_consistency)
