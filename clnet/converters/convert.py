"""The steps that are the same for every data set: pair, link, split, write, and account for all of it."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from clnet.converters.account import ConversionReport, write_account
from clnet.converters.links import BreastExtent, Link, certain_links, geometric_links, link_confidences
from clnet.converters.marked import ConversionError, MarkedView, Skipped, Source
from clnet.converters.pairing import Breast, find_breasts, to_pair
from clnet.converters.workspace import ACCOUNT, DATALIST, Workspace
from clnet.data.datalist import SECTIONS, Datalist, split_by_patient, write_datalist
from clnet.data.image_errors import ImageError
from clnet.data.pair import Pair

LEAST_PROBABLE = 0.05  # an annotated link that the depths find less probable is worth a look

ExtentOf = Callable[[Path], Mapping[str, Any]]
"""Measures a `BreastExtent` of an image file, in a form that JSON can hold."""


@dataclass(frozen=True)
class ConversionSettings:
    """What a user may choose.

    Attributes:
        geometric: whether to link by depth, size and descriptors what is not certain.
        two_views_only: leave out breasts of which one view is there.
        validation: share of the patients, of the training patients if the data set has a test split.
        test: share of the patients, unless the data set has a test split.
        seed: of the split.
    """

    geometric: bool = False
    two_views_only: bool = False
    validation: float = 0.1
    test: float = 0.2
    seed: int = 0


def convert(
    found: Source, workspace: Workspace, settings: ConversionSettings, extent_of: ExtentOf
) -> ConversionReport:
    """Write ``datalist.json`` and ``conversion.json`` of what a data set module found.

    Args:
        found: the views of the data set.
        workspace: where it stands, and where to write.
        settings: what the user chose.
        extent_of: measures where the breast lies; called only for geometric links.
    """
    skipped, warnings = list(found.skipped), list(found.warnings)
    breasts = find_breasts(found.views, workspace, skipped, warnings)
    if settings.two_views_only:
        breasts = _with_two_views(breasts, workspace, skipped)
    extents = _extents(breasts, workspace, extent_of, warnings) if settings.geometric else {}
    pairs = {breast.pair_id: to_pair(breast, _links(breast, extents, warnings)) for breast in breasts}
    sections = _split(breasts, pairs, found.split_is_whole, settings, warnings)
    account = ConversionReport.of(found.name, asdict(settings), sections, skipped, warnings)
    write_account(account, workspace.out / ACCOUNT)
    if not breasts:
        reasons = ", ".join(account.skipped_by_reason) or "nothing was found"
        raise ConversionError(
            f"{workspace.source}: no image can be used ({reasons}); {workspace.out / ACCOUNT} names each. "
            f"Check that this is the folder of {found.name}."
        )
    write_datalist(Datalist(found.name, sections), workspace.out / DATALIST)
    return account


def _with_two_views(breasts: Iterable[Breast], workspace: Workspace, skipped: list[Skipped]) -> list[Breast]:
    kept = []
    for breast in breasts:
        if len(breast.views) == 2:
            kept.append(breast)
        else:
            (view,) = breast.views
            missing = "MLO" if view.view == "cc" else "CC"
            skipped.append(Skipped(workspace.name(view.image), "no partner", f"no {missing} of this breast"))
    return kept


def _extents(
    breasts: Iterable[Breast], workspace: Workspace, extent_of: ExtentOf, warnings: list[str]
) -> dict[Path, BreastExtent]:
    """Where the breast lies in the images of breasts whose links are to be found or looked over."""
    unsure = [
        view.image
        for breast in breasts
        if breast.cc and breast.mlo and breast.cc.masses and breast.mlo.masses
        if len(breast.cc.masses) + len(breast.mlo.masses) > 2
        for view in breast.views
    ]
    extents = {}
    for image, found in workspace.memory.map(extent_of, unsure, "Measuring depths").items():
        if isinstance(found, ImageError):
            why = workspace.words(found, image)
            warnings.append(f"{workspace.name(image)}: no geometric links, for it cannot be read: {why}")
        else:
            extents[image] = BreastExtent(**found)
    return extents


def _links(breast: Breast, extents: Mapping[Path, BreastExtent], warnings: list[str]) -> list[Link]:
    cc, mlo = breast.cc, breast.mlo
    if cc is None or mlo is None:
        return []
    annotated = cc.links_annotated and mlo.links_annotated
    certain = certain_links(cc.masses, mlo.masses, annotated)
    if cc.image not in extents or mlo.image not in extents:
        return certain
    measured = extents[cc.image], extents[mlo.image]
    if not certain and not annotated:
        return geometric_links(cc, mlo, measured)
    for link in certain:
        probable = link_confidences(cc, mlo, measured)[link.cc, link.mlo]
        if probable < LEAST_PROBABLE:
            warnings.append(
                f"pair {breast.pair_id}: the data set links mass {link.cc + 1} of CC with mass "
                f"{link.mlo + 1} of MLO, but depth, size and descriptors make that improbable "
                f"({probable:.3f}); kept as {link.source}"
            )
    return certain


def _split(
    breasts: Iterable[Breast],
    pairs: Mapping[str, Pair],
    is_whole: bool,
    settings: ConversionSettings,
    warnings: list[str],
) -> dict[str, tuple[Pair, ...]]:
    """The data set's own sections, as far as it has some; ours for the rest."""
    own: dict[str, set[str]] = {}
    for breast in breasts:
        own.setdefault(breast.views[0].patient_id, set()).update(_sections(breast.views))
    for patient, sections in sorted(own.items()):
        if len(sections) > 1:
            # What may have been trained on is no test; what stands in a test is never trained on.
            goes_to = max(sections, key=SECTIONS.index)
            warnings.append(
                f"patient {patient}: the data set has it in {' and in '.join(sorted(sections))}; all of it "
                f"goes to {goes_to}"
            )
            own[patient] = {goes_to}
    section_of = {patient: next(iter(sections), None) for patient, sections in own.items()}
    by_own: dict[str | None, list[Pair]] = {}
    for pair in pairs.values():
        by_own.setdefault(section_of[pair.patient_id], []).append(pair)
    if set(by_own) == {None}:
        training = 1 - settings.validation - settings.test
        shares = {"training": training, "validation": settings.validation, "test": settings.test}
        return split_by_patient(pairs.values(), shares, settings.seed)
    result = {section: tuple(by_own.get(section, ())) for section in SECTIONS}
    rest = (*result["training"], *by_own.get(None, ()))
    if is_whole or result["validation"]:
        return {**result, "training": rest}
    shares = {"training": 1 - settings.validation, "validation": settings.validation}
    return {**result, **split_by_patient(rest, shares, settings.seed)}


def _sections(views: Iterable[MarkedView]) -> set[str]:
    for view in views:
        if view.section is not None and view.section not in SECTIONS:
            raise ConversionError(f"section is {view.section!r}; expected one of {', '.join(SECTIONS)}")
    return {view.section for view in views if view.section}
