"""What came out for one breast: the one source of every report, picture and table."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from clnet.findings.lesions import Lesion, merge_into_lesions
from clnet.findings.types import PairFindings


@dataclass(frozen=True)
class ViewResult:
    """A view that was analysed: its file relative to the input, its size, what is unusual about it."""

    file: str
    rows: int
    columns: int
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class BreastResult:
    """What came out for one breast.

    Attributes:
        breast_id, laterality: which breast.
        key: of the files, the model and the settings that the result came from.
        min_score: see `merge_into_lesions`.
        views: those that were analysed, by name.
        refused: for each file that could not be read, the reason.
        warnings: what else a reader should know.
        findings: in pixels of the files.
    """

    breast_id: str
    laterality: str
    key: str
    min_score: float
    views: Mapping[str, ViewResult]
    refused: Mapping[str, str]
    warnings: tuple[str, ...]
    findings: PairFindings

    @cached_property
    def lesions(self) -> tuple[Lesion, ...]:
        """What the reports, the picture and COCO show."""
        return tuple(merge_into_lesions(self.findings, self.min_score))
