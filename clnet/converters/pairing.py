"""From views to pairs: one image a view, the two views of a breast, and the ids of their lesions."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from clnet.converters.links import Link
from clnet.converters.marked import MarkedView, Mass, Skipped
from clnet.converters.marked_boxes import cut_at_edges
from clnet.converters.workspace import Workspace
from clnet.data.header import read_header
from clnet.data.image_errors import ImageError
from clnet.data.pair import VIEW_NAMES, Pair, View
from clnet.data.study import choose_pairs


@dataclass(frozen=True)
class Breast:
    """The chosen views of one breast; at least one is there."""

    cc: MarkedView | None
    mlo: MarkedView | None

    @property
    def views(self) -> tuple[MarkedView, ...]:
        """Those that are there."""
        return tuple(view for view in (self.cc, self.mlo) if view)

    @property
    def pair_id(self) -> str:
        """Study and side: unique in a data set, and without the patient's id if the study's has it not."""
        return f"{self.views[0].study_id}_{self.views[0].laterality}"


def find_breasts(
    views: Iterable[MarkedView], workspace: Workspace, skipped: list[Skipped], warnings: list[str]
) -> list[Breast]:
    """The breasts in a data set, ordered by study and side. What is not used is added to `skipped`."""
    images: dict[tuple[str, str], dict[str, list[MarkedView]]] = defaultdict(lambda: defaultdict(list))
    for view in views:
        inside = _with_boxes_inside(view, workspace, warnings)
        if inside.unplaced:
            name, detail = workspace.name(view.image), "; ".join(inside.unplaced)
            skipped.append(Skipped(name, "image with a mass of unknown place", detail))
        else:
            images[view.study_id, view.laterality][view.view].append(inside)
    breasts = []
    for _, by_view in sorted(images.items()):
        cc, mlo = (_choose(by_view[name], workspace, skipped) for name in VIEW_NAMES)
        if cc and mlo and cc.patient_id != mlo.patient_id:
            detail = f"{workspace.name(cc.image)} is of the same study and breast"
            skipped.append(Skipped(workspace.name(mlo.image), "another patient in the same study", detail))
            mlo = None
        if cc or mlo:
            breasts.append(Breast(cc, mlo))
    return breasts


def to_pair(breast: Breast, links: Sequence[Link]) -> Pair:
    """A breast as the datalist has it: lesions numbered from 1, first those of CC, then the others of MLO."""
    in_cc = [str(i + 1) for i in range(len(breast.cc.masses) if breast.cc else 0)]
    of_mlo = {link.mlo: in_cc[link.cc] for link in links}
    in_mlo, free = [], len(in_cc) + 1
    for i in range(len(breast.mlo.masses) if breast.mlo else 0):
        in_mlo.append(of_mlo.get(i) or str(free))
        free += i not in of_mlo
    lesions: dict[str, dict[str, str]] = defaultdict(dict)
    attributes: dict[str, Any] = {}
    for view, ids in ((breast.cc, in_cc), (breast.mlo, in_mlo)):
        for name, value in sorted(view.attributes.items()) if view else ():
            attributes[name] = _both(attributes.get(name), value)
        for mass, lesion_id in zip(view.masses if view else (), ids, strict=True):
            for name, text in sorted(mass.descriptors.items()):
                lesions[lesion_id][name] = _both(lesions[lesion_id].get(name), text)
    if lesions:
        attributes["lesions"] = dict(lesions)
    if links:
        attributes["link_confidence"] = {in_cc[link.cc]: link.confidence for link in links}
    one = breast.views[0]
    return Pair(
        pair_id=breast.pair_id,
        patient_id=one.patient_id,
        laterality=one.laterality,
        cc=_to_view(breast.cc, in_cc),
        mlo=_to_view(breast.mlo, in_mlo),
        links={in_cc[link.cc]: link.source for link in links},
        attributes=attributes,
    )


def _with_boxes_inside(view: MarkedView, workspace: Workspace, warnings: list[str]) -> MarkedView:
    masses: list[Mass] = []
    unplaced = list(view.unplaced)
    for number, mass in enumerate(view.masses, start=1):
        words = f"box {list(mass.box)}, image of {view.size[1]} columns and {view.size[0]} rows"
        inside = cut_at_edges(mass.box, view.size) if np.isfinite(mass.box).all() else None
        if inside is None:
            unplaced.append(f"mass {number} lies outside the image ({words})")
            continue
        if inside != tuple(mass.box):
            warnings.append(
                f"{workspace.name(view.image)}: mass {number} cut at the edge of the image ({words})"
            )
        masses.append(replace(mass, box=inside))
    return replace(view, masses=tuple(masses), unplaced=tuple(unplaced))


def _choose(
    candidates: Sequence[MarkedView], workspace: Workspace, skipped: list[Skipped]
) -> MarkedView | None:
    """One image of a view: one with masses, and the best by the rules of `clnet.data.study`."""
    marked = [view for view in candidates if view.masses]
    for view in candidates if marked else ():
        if not view.masses:
            detail = f"the masses are marked in {workspace.name(marked[0].image)}"
            skipped.append(Skipped(workspace.name(view.image), "another image of this view", detail))
    candidates = marked or candidates
    if len(candidates) < 2:
        return candidates[0] if candidates else None
    headers, refused = [], {}
    for view in candidates:
        try:
            # What the data set says of its images comes before what their headers do not say.
            header = replace(
                read_header(view.image),
                study_uid="one",
                laterality=view.laterality,
                view=view.view.upper(),
                modality="MG",
                photometric="MONOCHROME2",
            )
            headers.append(header)
        except ImageError as error:
            refused[view.image] = str(error)
    selection = choose_pairs(headers, secondary_capture=True)
    chosen = {h.file for pair in selection.pairs for h in (pair.cc, pair.mlo) if h}
    reasons = refused | {item.file: item.reason for item in selection.left_out}
    for view in candidates:
        if view.image not in chosen:
            reason = "unreadable image" if view.image in refused else "another image of this view"
            detail = workspace.words(reasons[view.image], view.image)
            skipped.append(Skipped(workspace.name(view.image), reason, detail))
    return next((view for view in candidates if view.image in chosen), None)


def _to_view(view: MarkedView | None, ids: Sequence[str]) -> View | None:
    if view is None:
        return None
    boxes = np.array([mass.box for mass in view.masses], np.float32).reshape(-1, 4)
    return View(view.image, boxes, tuple(ids), view.size)


def _both(one: Any, other: Any) -> Any:
    """What the two views say: the same thing, or one after the other."""
    return other if one is None or one == other else f"{one} / {other}"
