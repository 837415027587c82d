"""From views to pairs: one image per view, the two views of each breast, and ids for their lesions."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from clnet.converters.annotated import AnnotatedView, Mass
from clnet.converters.box_extraction import clip_box
from clnet.converters.links import MassLink
from clnet.converters.workspace import Workspace
from clnet.data.header import read_header
from clnet.data.image_errors import ImageError
from clnet.data.pair import VIEW_NAMES, Pair, View
from clnet.data.study import choose_pairs

ANOTHER_IMAGE = "another image of this view is used"


@dataclass(frozen=True)
class BreastViews:
    """The chosen views of one breast; at least one is there."""

    cc: AnnotatedView | None
    mlo: AnnotatedView | None

    @property
    def views(self) -> tuple[AnnotatedView, ...]:
        """The views that are there."""
        return tuple(view for view in (self.cc, self.mlo) if view)

    @property
    def pair_id(self) -> str:
        """Study and laterality: unique in a data set."""
        return f"{self.views[0].study_id}_{self.views[0].laterality}"


def pair_views(views: Iterable[AnnotatedView], workspace: Workspace) -> list[BreastViews]:
    """The breasts in a data set, ordered by study and laterality; skip the images that are not used."""
    images: dict[tuple[str, str], dict[str, list[AnnotatedView]]] = defaultdict(lambda: defaultdict(list))
    for view in views:
        clipped = _clip_boxes(view, workspace)
        if clipped.unlocated:
            workspace.skip(view.image, "mass at an unknown location", "; ".join(clipped.unlocated))
        else:
            images[view.study_id, view.laterality][view.view].append(clipped)
    breasts = []
    for _, by_view in sorted(images.items()):
        cc, mlo = (_choose(by_view[name], workspace) for name in VIEW_NAMES)
        if cc and mlo and cc.patient_id != mlo.patient_id:
            detail = f"{workspace.name(cc.image)} is of the same study and breast"
            workspace.skip(mlo.image, "another patient in the same study", detail)
            mlo = None
        if cc or mlo:
            breasts.append(BreastViews(cc, mlo))
    return breasts


def to_pair(breast: BreastViews, links: Sequence[MassLink]) -> Pair:
    """The pair for the datalist; lesions are numbered from 1, those in CC first, then the others in MLO.

    ``attributes["lesions"]`` has the descriptors of each lesion: one value, or ``{"cc": …, "mlo": …}`` where
    the views differ.
    """
    in_cc = [str(i + 1) for i in range(len(breast.cc.masses) if breast.cc else 0)]
    of_mlo = {link.mlo: in_cc[link.cc] for link in links}
    in_mlo, free = [], len(in_cc) + 1
    for i in range(len(breast.mlo.masses) if breast.mlo else 0):
        in_mlo.append(of_mlo.get(i) or str(free))
        free += i not in of_mlo
    lesions: dict[str, dict[str, Any]] = defaultdict(dict)
    attributes: dict[str, Any] = {}
    for view, ids in ((breast.cc, in_cc), (breast.mlo, in_mlo)):
        for name, value in sorted(view.attributes.items()) if view else ():
            attributes[name] = _both(attributes.get(name), value)
        for mass, lesion_id in zip(view.masses if view else (), ids, strict=True):
            for name, text in sorted(mass.descriptors.items()):
                in_other = lesions[lesion_id].get(name, text)
                lesions[lesion_id][name] = text if text == in_other else {"cc": in_other, "mlo": text}
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


def _clip_boxes(view: AnnotatedView, workspace: Workspace) -> AnnotatedView:
    masses: list[Mass] = []
    unlocated = list(view.unlocated)
    for number, mass in enumerate(view.masses, start=1):
        place = f"box {list(mass.box)}, image of {view.size[1]} columns and {view.size[0]} rows"
        clipped = clip_box(mass.box, view.size) if np.isfinite(mass.box).all() else None
        if clipped is None:
            unlocated.append(f"mass {number} is outside the image ({place})")
            continue
        if clipped != tuple(mass.box):
            workspace.warn(f"{workspace.name(view.image)}: mass {number} is clipped to the image ({place})")
        masses.append(replace(mass, box=clipped))
    return replace(view, masses=tuple(masses), unlocated=tuple(unlocated))


def _choose(candidates: Sequence[AnnotatedView], workspace: Workspace) -> AnnotatedView | None:
    """The image of a view to use: one with masses, and the best by the rules of `clnet.data.study`."""
    marked = [view for view in candidates if view.masses]
    for view in candidates if marked else ():
        if not view.masses:
            detail = f"the masses are annotated in {workspace.name(marked[0].image)}"
            workspace.skip(view.image, ANOTHER_IMAGE, detail)
    candidates = marked or candidates
    if len(candidates) < 2:
        return candidates[0] if candidates else None
    headers, refused = [], {}
    for view in candidates:
        try:
            # What the data set says about its images takes precedence over their headers.
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
            reason = "unreadable image" if view.image in refused else ANOTHER_IMAGE
            workspace.skip(view.image, reason, workspace.message(reasons[view.image], view.image))
    return next((view for view in candidates if view.image in chosen), None)


def _to_view(view: AnnotatedView | None, ids: Sequence[str]) -> View | None:
    if view is None:
        return None
    boxes = np.array([mass.box for mass in view.masses], np.float32).reshape(-1, 4)
    return View(view.image, boxes, tuple(ids), view.size, view.pixel_size)


def _both(one: Any, other: Any) -> Any:
    """What the two views say about the breast: one value if they agree, otherwise both."""
    return other if one is None or one == other else f"{one} / {other}"
