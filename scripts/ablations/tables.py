"""The tables of the evidence: the paper's, in its layout and with its numbers, and ours."""

from dataclasses import dataclass

REFERENCE = "clnet"
"""The row that the others of its table are compared with: `clnet.yaml` on top of `train.yaml`."""


@dataclass(frozen=True)
class Row:
    """A setting, its labels, and the paper's recall on DDSM in % where the paper has it.

    Attributes:
        labels: a cell for each of the table's heads.
        setting: a name in `settings.SETTINGS`.
        paper: R@t at the first of `PAPER_RATES`.
        view: count the images of this view alone ("cc" or "mlo").
        name: what a sentence calls it, if not by its labels.
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
    """Rows to compare with each other.

    Attributes:
        title: the heading of its page.
        about: what is varied, and what the paper says about it.
        heads: the heads of the columns that name a row.
        rows: from top to bottom.
        section: of the data set; "validation" for anything that a setting might be chosen by.
        links: whether to add a table of link measures.
        many_seeds: whether it is run with `--seeds` rather than `--other-seeds`.
        false_positives: whether to add a table of what the false positives show.
        contrasts: pairs (ours, theirs) to compare, besides every row with the reference.
        reference: the row that the others are compared with.
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
    reference: str = REFERENCE


PAPER_RATES = ("0.25", "0.5", "1", "2", "4")

CLNET = (78.1, 83.1, 88.0, 92.4, 95.0)
VILD = (76.1, 81.7, 86.4, 91.7, 94.4)

TABLES: dict[str, Table] = {
    "components": Table(
        "Components",
        "The paper's Table 3: the View-Interactive Lesion Detector (VILD: inter-attention between the views) "
        "and the Lesion Linker (LL), each with and without the other. Without both it is Deformable DETR, "
        "which looks at each view alone.",
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
        "The paper's Table 4: how to learn which detections are the same lesion. Pair Verification compares "
        "every two detections; Paired Lesion Query has one query for both views.",
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
    "geometry": Table(
        "Geometry",
        "Beyond the paper: proposals as object queries, and inter-attention and links that know where boxes "
        "are, with and without the second view.",
        ("network",),
        (
            Row(("Geometric CL-Net, each view alone",), "one_view"),
            Row(("CL-Net",), "clnet"),
            Row(("Geometric CL-Net",), "geometric"),
        ),
        many_seeds=True,
        contrasts=(("geometric", "one_view"),),
    ),
    "patient": Table(
        "Geometry, depths as in patients",
        "The same on a phantom of difficulty `patient`: depths differ between the views as in patients, and "
        "a tenth of the masses is outside one view.",
        ("network",),
        (Row(("CL-Net",), "clnet_patient"), Row(("Geometric CL-Net",), "geometric_patient")),
        many_seeds=True,
        reference="clnet_patient",
    ),
    "film": Table(
        "Films",
        "CBIS-DDSM with `film.yaml`. The rows of the paper's network begin at learned object queries, those "
        "of Geometric CL-Net at proposals.",
        ("network",),
        (
            Row(("Deformable DETR: each view alone",), "deformable_detr_film"),
            Row(("VILD",), "vild_film"),
            Row(("Lesion Linker, without VILD",), "linker_only_film"),
            Row(("CL-Net",), "clnet_film"),
            Row(("Pair Verification",), "pair_verification_film"),
            Row(("Paired Lesion Query",), "paired_query_film"),
            Row(("Geometric CL-Net, each view alone",), "one_view_film"),
            Row(("Geometric CL-Net",), "geometric_film"),
        ),
        many_seeds=True,
        contrasts=(("geometric_film", "one_view_film"), ("vild_film", "deformable_detr_film")),
        reference="clnet_film",
    ),
    "link_cost": Table(
        "Cost function of label assignment",
        "The paper's Table 5: similarity and pair score are combined by a weighted product (Mul) or sum "
        "(Add) when lesions are assigned to link queries; α is the weight of similarity.",
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
        "The table in the paper's appendix. The paper uses 3 layers, `clnet.yaml` 1.",
        ("layers",),
        (
            Row(("1",), "clnet", (77.1, 81.4, 88.4, 92.4, 94.4), name="1 layer"),
            Row(("2",), "linker_layers_2", (77.1, 82.4, 88.0, 91.4, 93.4), name="2 layers"),
            Row(("3",), "linker_layers_3", CLNET, name="3 layers"),
            Row(("4",), "linker_layers_4", (75.1, 80.4, 86.4, 90.7, 93.0), name="4 layers"),
            Row(("5",), "linker_layers_5", (75.1, 80.4, 85.0, 90.0, 92.0), name="5 layers"),
        ),
    ),
    "temperature": Table(
        "Temperature",
        "Similarities are divided by it in the cross-entropy that teaches the linker where to point. The "
        "paper mentions none, which amounts to 1.",
        ("temperature",),
        (Row(("1, as in the paper",), "temperature_1"), Row(("0.1",), "clnet")),
    ),
    "auxiliary_loss": Table(
        "Auxiliary loss of the linker",
        "With 3 linker layers: the loss on every layer, or on the last alone. The paper does not say.",
        ("loss on",),
        (
            Row(("every layer",), "linker_layers_3"),
            Row(("the last layer",), "no_auxiliary_3"),
            Row(("the only layer: CL-Net, unchanged",), "clnet"),
        ),
        contrasts=(("linker_layers_3", "no_auxiliary_3"),),
    ),
    "encoder_depth": Table(
        "Encoder layers",
        "Deformable attention over image features before the decoder: 6 in the paper, none in `train.yaml`.",
        ("layers",),
        (
            Row(("0",), "clnet", name="no layer"),
            Row(("1",), "encoder_1", name="1 layer"),
            Row(("2",), "encoder_2", name="2 layers"),
        ),
    ),
    "single_view": Table(
        "One view as the only input",
        "Deformable DETR trained and tested on the images of one view; Deformable DETR trained on the images "
        "of both, one at a time (*both, apart*); and CL-Net, which sees both at once. Recall and false "
        "positives are counted in that view alone.",
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
        "Whether each decoder layer of Paired Lesion Query refines the box of the layer before it, as in all "
        "other tables.",
        ("method",),
        (
            Row(("Paired Lesion Query",), "paired_query"),
            Row(("Paired Lesion Query, unrefined",), "paired_query_unrefined"),
            Row(("CL-Net",), "clnet"),
        ),
        contrasts=(("paired_query_unrefined", "paired_query"),),
    ),
    "box_positions": Table(
        "Box positions",
        "Beyond the paper. There, object queries know from their learned positions where they started; "
        "refined boxes end elsewhere. With box positions, the queries and the linker know where the boxes "
        "are. The code no longer has them; these are the runs that led to that. "
        "Measured on the validation section, on which settings are chosen.",
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
        "Settings of the linker",
        "Settings that the paper fixes or does not mention, measured on the validation section, on which "
        "settings are chosen; CL-Net is compared with VILD under the same conditions. The last two rows are "
        "not trained: they are CL-Net with scores refined by pair scores at inference, "
        "`score^(1−w) · pair score^w`, which the code no longer offers.",
        ("setting",),
        (
            Row(("CL-Net, unchanged",), "clnet"),
            Row(("VILD",), "vild"),
            Row(("temperature 1",), "temperature_1"),
            Row(("λ_sim 0.5 instead of 0.125",), "similarity_weight_0.5"),
            Row(("λ_sim 1",), "similarity_weight_1"),
            Row(("full learning rate of the linker instead of a quarter",), "linker_factor_1"),
            Row(("3 linker layers",), "linker_layers_3"),
            Row(("40 object queries instead of 20",), "queries_40"),
            Row(("VILD, 40 object queries",), "vild_queries_40"),
            Row(("half of the training pairs",), "half_data"),
            Row(("VILD, half of the training pairs",), "vild_half_data"),
            Row(("scores refined by pair scores, w 0.25",), "pair_score_0.25"),
            Row(("scores refined by pair scores, w 0.5",), "pair_score_0.5"),
        ),
        section="validation",
        contrasts=(
            ("temperature_1", "vild"),
            ("queries_40", "vild_queries_40"),
            ("half_data", "vild_half_data"),
        ),
    ),
}
