"""A breast that was analysed: its result, and what its picture and the reports are made from."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from pydicom.dataset import Dataset

from clnet.data.header import may_show_text
from clnet.data.pair import VIEW_NAMES
from clnet.findings.result import BreastResult
from clnet.predict.loading import PICTURE_ROWS
from clnet.reports.picture import findings_picture
from clnet.reports.study import BreastReport, report_source


@dataclass(frozen=True)
class AnalysedBreast(BreastResult):
    """What `model.predict` yields for each breast.

    Attributes:
        version, notice: of the model.
        pictures: [h, w] of each view, 8 bits, reduced to at most 640 rows.
        tags: of each view that is a DICOM file, without pixels.
    """

    version: str = ""
    notice: str = ""
    pictures: Mapping[str, NDArray[np.uint8]] = field(default_factory=dict, repr=False)
    tags: Mapping[str, Dataset] = field(default_factory=dict, repr=False)

    @property
    def shows_text(self) -> bool:
        """Whether the pixels may name the patient: BurnedInAnnotation is YES."""
        return any(may_show_text(view.warnings) for view in self.views.values())

    def draw(self, height: int = PICTURE_ROWS) -> Image.Image:
        """Both views side by side with boxes, scores and links; lesions are numbered as in the reports.

        Args:
            height: of the views in pixels of the picture.
        """
        alone = f", {next(iter(self.views)).upper()} alone" if len(self.views) == 1 else ""
        return findings_picture(
            {name: self.pictures.get(name) for name in VIEW_NAMES},
            self.lesions,
            f"{self.breast_id} {self.laterality}{alone}   {self.notice}",
            side=self.laterality,
            height=height,
            stored_rows={name: view.rows for name, view in self.views.items()},
            warning=self.mismatch,
        )

    def report(self, picture: Image.Image | None = None) -> BreastReport | None:
        """What DICOM reports say about the breast; None unless all its images are DICOM.

        Args:
            picture: as drawn by `draw`, for the report that shows it.
        """
        if self.tags.keys() != self.views.keys():
            return None
        sources = {name: report_source(tags, self.views[name].file) for name, tags in self.tags.items()}
        return BreastReport(self.laterality, self.lesions, sources, picture, self.mismatch)
