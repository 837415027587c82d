"""The tables of the page: the paper's, in its form and with its numbers, and ours."""

from dataclasses import dataclass

REFERENCE = "clnet"
"""The row that all others are compared with: train.yaml as it is."""


@dataclass(frozen=True)
class Row:
    """A setting, how the table names it, and the paper's recall on DDSM in %, where it has any.

    Attributes:
        labels: a cell for each of the table's heads.
        setting: a name in `settings.SETTINGS`.
        paper: R@t at the first of `PAPER_RATES`.
        view: count the images of this view alone ("cc" or "mlo").
        name: what a sentence calls it, where that is not its labels.
    """

    labels: tuple[str, ...]
    setting: str
    paper: tuple[float, ...] = ()
    view: str | None = None
    name: str = ""

    @property
    def words(self) -> str:
        """What a sentence calls it."""
        return self.name or " ".join(filter(None, self.labels))


@dataclass(frozen=True)
class Table:
    """Rows to be read side by side.

    Attributes:
        title: of its part of the page.
        about: what is varied, and what the paper says of it.
        heads: of the columns that name a row.
        rows: the table's.
        section: of the data set; whatever a setting might be chosen by is looked at on "validation".
        links: whether rows with links have a table of these, too.
        many_seeds: whether it is worth several.
        false_positives: whether to tell what the false positives are.
        contrasts: pairs of settings that are compared beside all with the reference: (ours, theirs).
    """

    title: str
    about: str
    heads: tuple[str, ...]
    rows: tuple[Row, ...]
    section: str = "test"
    links: bool = True
    many_seeds: bool = False
    false_positives: bool = False
    contrasts: tuple[tuple[str, str], ...] = ()


PAPER_RATES = ("0.25", "0.5", "1", "2", "4")

CLNET = (78.1, 83.1, 88.0, 92.4, 95.0)
VILD = (76.1, 81.7, 86.4, 91.7, 94.4)

TABLES: dict[str, Table] = {
    "components": Table(
        "Components",
        "The paper's Table 3: the View-Interactive Lesion Detector (VILD: inter-attention between the views) "
        "and the Lesion Linker (LL), each with and without the other. Without both it is Deformable DETR, "
        "which looks at each view by itself.",
        ("VILD", "LL"),
        (
            Row(("", ""), "deformable_detr", (73.8, 78.4, 83.7, 88.7, 93.7), name="neither"),
            Row(("✓", ""), "vild", VILD, name="VILD"),
            Row(("", "✓"), "linker_only", (74.1, 80.1, 86.0, 88.7, 93.4), name="LL"),
            Row(("✓", "✓"), "clnet", CLNET, name="both: CL-Net"),
        ),
        many_seeds=True,
        false_positives=True,
        contrasts=(("clnet", "vild"), ("vild", "deformable_detr"), ("linker_only", "deformable_detr")),
    ),
    "match_learning": Table(
        "Strategies for match learning",
        "The paper's Table 4: what learns which detections are the same lesion. Pair Verification compares "
        "every two detections, Paired Lesion Query has one query for both views.",
        ("method",),
        (
            Row(("VILD, none",), "vild", VILD[:4]),
            Row(("Pair Verification",), "pair_verification", (75.7, 82.1, 86.4, 90.7)),
            Row(("Paired Lesion Query",), "paired_query", (68.8, 75.1, 81.7, 87.0)),
            Row(("Lesion Linker: CL-Net",), "clnet", CLNET[:4]),
        ),
        many_seeds=True,
        false_positives=True,
        contrasts=(("pair_verification", "vild"), ("paired_query", "vild")),
    ),
    "link_cost": Table(
        "Cost function of label assignment",
        "The paper's Table 5: how similarity and pair score join when lesions are matched with link queries, "
        "by a weighted product (Mul) or sum (Add), and the weight α of similarity.",
        ("method", "α"),
        (
            Row(("Add", "0.25"), "add_0.25", (77.7, 82.7, 87.7, 90.4)),
            Row(("Add", "0.5"), "add_0.5", (73.8, 81.1, 86.4, 90.0)),
            Row(("Add", "0.75"), "add_0.75", (75.1, 80.1, 86.7, 91.7)),
            Row(("Mul", "0.25"), "mul_0.25", (76.1, 83.7, 89.7, 91.7)),
            Row(("Mul", "0.5"), "clnet", CLNET[:4]),
            Row(("Mul", "0.75"), "mul_0.75", (74.8, 80.4, 85.4, 90.0)),
        ),
    ),
    "linker_layers": Table(
        "Attention layers in the lesion linker",
        "The table of the paper's appendix; the paper takes 3 layers, train.yaml 1.",
        ("layers",),
        (
            Row(("1",), "clnet", (77.1, 81.4, 88.4, 92.4, 94.4)),
            Row(("2",), "linker_layers_2", (77.1, 82.4, 88.0, 91.4, 93.4)),
            Row(("3",), "linker_layers_3", CLNET),
            Row(("4",), "linker_layers_4", (75.1, 80.4, 86.4, 90.7, 93.0)),
            Row(("5",), "linker_layers_5", (75.1, 80.4, 85.0, 90.0, 92.0)),
        ),
    ),
    "temperature": Table(
        "Temperature",
        "Similarities are divided by it in the cross-entropy that teaches the linker where to point. The "
        "paper has none, which is 1.",
        ("temperature",),
        (Row(("1, the paper to the letter",), "temperature_1"), Row(("0.1",), "clnet")),
    ),
    "auxiliary_loss": Table(
        "Loss of the linker's earlier layers",
        "With 3 linker layers: the loss on each of them, or on the last alone. The paper does not say.",
        ("loss on",),
        (
            Row(("every layer",), "linker_layers_3"),
            Row(("the last layer",), "no_auxiliary_3"),
            Row(("the only layer: CL-Net as it is",), "clnet"),
        ),
        contrasts=(("linker_layers_3", "no_auxiliary_3"),),
    ),
    "encoder_depth": Table(
        "Encoder layers",
        "Deformable attention over image features before the decoder: 6 in the paper, none in train.yaml.",
        ("layers",),
        (Row(("0",), "clnet"), Row(("1",), "encoder_1"), Row(("2",), "encoder_2")),
    ),
    "single_view": Table(
        "One view as the only input",
        "Deformable DETR that is trained and tested on the images of one view; the one that is trained on "
        "the images of both, each by itself (*both, apart*); and CL-Net, which sees both at once. Recall and "
        "false positives are counted in that view alone.",
        ("trained on", "counted in"),
        (
            Row(("CC", "CC"), "cc_alone", view="cc", name="CC alone"),
            Row(("both, apart", "CC"), "deformable_detr", view="cc", name="both apart, in CC"),
            Row(("both", "CC"), "clnet", view="cc", name="both views, in CC"),
            Row(("MLO", "MLO"), "mlo_alone", view="mlo", name="MLO alone"),
            Row(("both, apart", "MLO"), "deformable_detr", view="mlo", name="both apart, in MLO"),
            Row(("both", "MLO"), "clnet", view="mlo", name="both views, in MLO"),
        ),
        links=False,
    ),
    "box_refinement": Table(
        "Box refinement",
        "Whether each decoder layer refines the box of the one before, as in all other rows of this page, in "
        "Paired Lesion Query.",
        ("method",),
        (
            Row(("Paired Lesion Query",), "paired_query"),
            Row(("Paired Lesion Query, each layer for itself",), "paired_query_unrefined"),
            Row(("CL-Net",), "clnet"),
        ),
        contrasts=(("paired_query_unrefined", "paired_query"),),
    ),
    "box_positions": Table(
        "Box positions",
        "Beyond the paper. There, object queries know by their learned positions where they began; boxes "
        "that are refined end elsewhere. With `--network_def#box_positions True` queries, and what the "
        "linker reads of them, know where their boxes are. Looked at on the validation section, by which "
        "settings are chosen.",
        ("method", "box positions"),
        (
            Row(("VILD", ""), "vild"),
            Row(("VILD", "✓"), "vild_box_positions", name="VILD with box positions"),
            Row(("CL-Net", ""), "clnet"),
            Row(("CL-Net", "✓"), "box_positions", name="CL-Net with box positions"),
        ),
        section="validation",
        many_seeds=True,
        contrasts=(("vild_box_positions", "vild"), ("box_positions", "vild_box_positions")),
    ),
    "linker_settings": Table(
        "What makes the linker earn its place",
        "Settings that the paper fixes or does not speak of, looked at on the validation section, by which "
        "settings are chosen; CL-Net is compared with VILD under the same conditions. The last two rows are "
        "not trained: they are CL-Net with detections' scores refined by the pair scores, "
        "`score^(1−w) · pair score^w`, at inference.",
        ("setting",),
        (
            Row(("CL-Net as it is",), "clnet"),
            Row(("VILD",), "vild"),
            Row(("temperature 1",), "temperature_1"),
            Row(("λ_sim 0.5 in place of 0.125",), "similarity_weight_0.5"),
            Row(("λ_sim 1",), "similarity_weight_1"),
            Row(("linker learns at the full rate, not a quarter",), "linker_factor_1"),
            Row(("3 linker layers",), "linker_layers_3"),
            Row(("40 object queries in place of 20",), "queries_40"),
            Row(("VILD, 40 object queries",), "vild_queries_40"),
            Row(("half of the training pairs",), "half_data"),
            Row(("VILD, half of the training pairs",), "vild_half_data"),
            Row(("pair score refines, w 0.25",), "pair_score_0.25"),
            Row(("pair score refines, w 0.5",), "pair_score_0.5"),
        ),
        section="validation",
        contrasts=(
            ("temperature_1", "vild"),
            ("queries_40", "vild_queries_40"),
            ("half_data", "vild_half_data"),
        ),
    ),
}
