"""The steps that every data set shares: pair, link, split, write and report."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from clnet.converters.annotated import AnnotatedDataset, ConversionError
from clnet.converters.breast_extent import BreastExtent, extent_facts
from clnet.converters.links import MassLink, certain_links, geometric_links, link_confidences
from clnet.converters.pairing import BreastViews, pair_views, to_pair
from clnet.converters.report import ConversionReport, write_report
from clnet.converters.workspace import DATALIST, REPORT, Workspace
from clnet.data.datalist import SECTIONS, Datalist, split_by_patient, write_datalist
from clnet.data.image_errors import ImageError
from clnet.data.pair import Pair

IMPROBABLE = 0.05  # warn about a certain link to which the geometry gives less confidence than this


@dataclass(frozen=True)
class ConversionSettings:
    """The user's choices.

    Attributes:
        geometric: link masses by depth, size and descriptors where there is no certain link.
        two_views_only: leave out breasts with one view.
        validation: share of the patients; of the training patients if the data set has a test split.
        test: share of the patients, unless the data set has a test split.
        seed: of the split.
    """

    geometric: bool = False
    two_views_only: bool = False
    validation: float = 0.1
    test: float = 0.2
    seed: int = 0


def convert(
    dataset: AnnotatedDataset, workspace: Workspace, settings: ConversionSettings
) -> ConversionReport:
    """Write ``datalist.json`` and ``conversion.json`` for what the reader of a data set found."""
    breasts = pair_views(dataset.views, workspace)
    if settings.two_views_only:
        breasts = _with_two_views(breasts, workspace)
    extents = _measure_extents(breasts, workspace) if settings.geometric else {}
    pairs = [to_pair(breast, _links(breast, extents, workspace)) for breast in breasts]
    sections = _split(pairs, _own_sections(breasts, workspace), dataset.has_full_split, settings)
    report = ConversionReport.of(
        dataset.name, asdict(settings), sections, workspace.skipped, workspace.warnings
    )
    write_report(report, workspace.output / REPORT)
    if not breasts:
        reasons = ", ".join(report.skipped_by_reason) or "the folder is empty"
        first = "".join(f"; such as {item.item}: {item.detail}" for item in report.skipped[:1] if item.detail)
        raise ConversionError(
            f"{workspace.source}: no usable image ({reasons}{first}); {workspace.output / REPORT} lists them "
            f"all. Check that this is the folder of {dataset.name}."
        )
    write_datalist(Datalist(dataset.name, sections), workspace.output / DATALIST)
    return report


def _with_two_views(breasts: Iterable[BreastViews], workspace: Workspace) -> list[BreastViews]:
    complete = []
    for breast in breasts:
        if breast.cc and breast.mlo:
            complete.append(breast)
        else:
            missing = "MLO" if breast.cc else "CC"
            workspace.skip(breast.views[0].image, "other view missing", f"no {missing} of this breast")
    return complete


def _measure_extents(breasts: Iterable[BreastViews], workspace: Workspace) -> dict[Path, BreastExtent]:
    """The extent of the breast in each image whose links need geometry, to find or to check them."""
    images = [
        view.image
        for breast in breasts
        if breast.cc and breast.mlo and breast.cc.masses and breast.mlo.masses
        if len(breast.cc.masses) + len(breast.mlo.masses) > 2
        for view in breast.views
    ]
    extents = {}
    for image, facts in workspace.cache.map(extent_facts, images, "Measuring depths").items():
        if isinstance(facts, ImageError):
            why = workspace.message(facts, image)
            workspace.warn(f"{workspace.name(image)}: no geometric links; the image cannot be read: {why}")
        else:
            extents[image] = BreastExtent(**facts)
    return extents


def _links(breast: BreastViews, extents: Mapping[Path, BreastExtent], workspace: Workspace) -> list[MassLink]:
    cc, mlo = breast.cc, breast.mlo
    if cc is None or mlo is None:
        return []
    annotated = cc.links_annotated and mlo.links_annotated
    certain = certain_links(cc.masses, mlo.masses, annotated)
    if cc.image not in extents or mlo.image not in extents:
        return certain
    measured = extents[cc.image], extents[mlo.image]
    if not certain and not annotated:
        return geometric_links(cc.masses, mlo.masses, measured)
    for link in certain:
        confidence = link_confidences(cc.masses, mlo.masses, measured)[link.cc, link.mlo]
        if confidence < IMPROBABLE:
            workspace.warn(
                f"pair {breast.pair_id}: the data set links mass {link.cc + 1} in CC to mass {link.mlo + 1} "
                f"in MLO, which depth, size and descriptors make improbable ({confidence:.3f}); kept as "
                f"{link.source}"
            )
    return certain


def _own_sections(breasts: Iterable[BreastViews], workspace: Workspace) -> dict[str, str | None]:
    """The section of each patient in the data set's own split; None if it has none."""
    sections: dict[str, set[str]] = {}
    for breast in breasts:
        for view in breast.views:
            of_patient = sections.setdefault(view.patient_id, set())
            if view.section in SECTIONS:
                of_patient.add(view.section)
            elif view.section is not None:
                raise ConversionError(
                    f"{workspace.name(view.image)}: section is {view.section!r}; expected one of "
                    f"{', '.join(SECTIONS)}"
                )
    # A patient in two sections goes to the later one: what is in a test section is never trained on.
    latest = {patient: max(of, key=SECTIONS.index, default=None) for patient, of in sections.items()}
    for patient, of in sorted(sections.items()):
        if len(of) > 1:
            workspace.warn(
                f"patient {patient}: in {' and '.join(sorted(of))} in the data set; all images go to "
                f"{latest[patient]}"
            )
    return latest


def _split(
    pairs: Iterable[Pair],
    own_sections: Mapping[str, str | None],
    is_full: bool,
    settings: ConversionSettings,
) -> dict[str, tuple[Pair, ...]]:
    """Follow the data set's own split as far as it has one; split the rest by patient."""
    by_section: dict[str | None, list[Pair]] = {}
    for pair in pairs:
        by_section.setdefault(own_sections[pair.patient_id], []).append(pair)
    unassigned = by_section.pop(None, [])
    if unassigned and not by_section:
        training = 1 - settings.validation - settings.test
        shares = {"training": training, "validation": settings.validation, "test": settings.test}
        return split_by_patient(unassigned, shares, settings.seed)
    sections = {section: tuple(by_section.get(section, ())) for section in SECTIONS}
    training_pairs = (*sections["training"], *unassigned)
    if is_full or sections["validation"]:
        return {**sections, "training": training_pairs}
    shares = {"training": 1 - settings.validation, "validation": settings.validation}
    return {**sections, **split_by_patient(training_pairs, shares, settings.seed)}
