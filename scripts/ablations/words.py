"""The prose of the evidence pages."""

from dataclasses import dataclass

FIGURE_TABLES = ("components", "match_learning", "temperature", "encoder_depth")
"""The tables in the figure of the front page."""


@dataclass(frozen=True)
class Question:
    """A question, the difference of two settings that answers it, and the answer in words."""

    words: str
    difference: str
    table: str
    ours: str
    theirs: str
    answer: str


QUESTIONS = (
    Question(
        "Does the second view help?",
        "CL-Net − Deformable DETR",
        *("components", "clnet", "deformable_detr"),
        "Yes. Inter-attention between the views accounts for nearly all of it, as it should: on this "
        "phantom only the other view tells a mass from a mimic. The rows meet at two false positives per "
        "image, where there is room for the mimics too.",
    ),
    Question(
        "Does the linker help detection?",
        "CL-Net − VILD",
        *("components", "clnet", "vild"),
        "Not beyond the noise. It gains with some seeds and loses with others; on the validation section "
        "it gains with every seed. It is there for its links.",
    ),
    Question(
        "Does it help without inter-attention?",
        "linker only − Deformable DETR",
        *("components", "linker_only", "deformable_detr"),
        "Not measurably.",
    ),
    Question(
        "Pair Verification instead?",
        "Pair Verification − CL-Net",
        *("match_learning", "pair_verification", "clnet"),
        "As good: comparing every two detections neither gains nor loses.",
    ),
    Question(
        "Paired Lesion Query instead?",
        "Paired Lesion Query − CL-Net",
        *("match_learning", "paired_query", "clnet"),
        "Better by this metric, because duplicates are not counted: it shows one mass several times. With "
        "duplicates counted its lead is gone, and it links few masses.",
    ),
    Question(
        "No temperature, as in the paper?",
        "temperature 1 − 0.1",
        *("temperature", "temperature_1", "clnet"),
        "Probably worse, and clearly so for links. A loss that follows HOTR, as the paper's does, would "
        "have a temperature; HOTR's code divides by one.",
    ),
    Question(
        "An encoder layer?",
        "1 − 0 layers",
        *("encoder_depth", "encoder_1", "clnet"),
        "It seems to help, with the one seed that was run, at nearly twice the CPU time of a training.",
    ),
)

ABOUT = """Measured on the phantom alone, never on patients: `clnet.yaml` with one change per row, {epochs}
epochs on {training} pairs, tested on {test}. R@t is recall at t false positives per image, IoU ≥ 0.5. The
paper's numbers are of DDSM, by a network a hundred times the size: compare orders, not values. The runs are
older than today's training, which turns both views upside down together, cuts off the chest wall in one view
and averages weights; the same commands would now give other numbers. All tables:
[evidence/](evidence/README.md)."""

LINKS_ANSWER = """The phantom model's detections, linked by its Geometric Linker and by two rules on depth and
size; in %, then in points:"""

GEOMETRY_FINDINGS = """The linker beats both rules by every measure, in breasts with several masses too.
Even the rule that knows how exactly the phantom preserves depth does not know which detections are masses, or
what they look like. Patients preserve depth less exactly, so both would get worse there."""

WHAT_DECIDES = """## What decides?

- **Training length and data.** {epochs} epochs are short of the plateau: with 24, CL-Net reached 90.5% at
  R@0.25, and half of the data costs [CL-Net and VILD](evidence/linker_settings.md) more than 20 points. These
  tables compare how fast variants learn.
- **[Temperature](evidence/temperature.md)**: the only setting of the linker whose effect shows in three
  seeds.
- **[Box refinement](evidence/box_refinement.md)**: without it masses are found, but their boxes are coarse.
- **[Object queries](evidence/linker_settings.md)**: 40 instead of 20 find more masses from one false
  positive per image on; fewer of them are linked correctly.
- No difference beyond the interval: the [cost function](evidence/link_cost.md), the [number of linker
  layers](evidence/linker_layers.md), their [auxiliary loss](evidence/auxiliary_loss.md), and [box
  positions](evidence/box_positions.md) at R@0.25. [Refining scores by pair
  scores](evidence/linker_settings.md) hurts."""

COMPARISON = """Rows of cost functions and linker layers have one seed each, and seeds of one row differ by
up to 8 points. The paper has one run per row and 301 boxes, a standard error of about 2.4 points. Neither
order is a target."""

STATISTICS = """## How far can this be trusted?

- **The p-values and intervals of the tables resample patients only.** They say what other patients would
  change, not what another training would; the fourth column above resamples the seeds as well, over all
  seeds of both rows. Only the second view and Paired Lesion Query stay clear of zero.
- Three to five seeds are few, one seed shows nothing, and p-values are not corrected for their number. The
  same seed on another CPU differs by up to 2.6 points, so pairing by seed means little.
- Settings and epochs were chosen on the validation section, with one exception: that Paired Lesion Query
  lacked [box refinement](evidence/box_refinement.md) was noticed on the test section.
- Link accuracy depends on what a model detects; compare link F1 or recall between models.
- The phantom rewards exact depth and hides masses among mimics. What carries over to real mammograms has to
  be measured there: [limits](limits.md), [real data](real_data.md)."""

SETUP = """## How the runs were made

Each row is `clnet.yaml` with the change that the row names, trained for {epochs} epochs on {training}
pairs; the weights of the best validation are tested on {test} pairs. CL-Net and VILD have five seeds; the
other components, temperature 1 and refined scores three; match learning and box positions two; all other
rows one. Numbers are means over seeds with 95% intervals from a bootstrap over patients ({resamples}
resamples), with the same draws for every seed and row; R@t and the link measures are defined in
[evaluation.md](../evaluation.md#what-is-counted). The row in bold is `clnet.yaml` as it is. All others are
compared with it over the seeds that both have: a row with fewer seeds has a difference that is not that of
the two numbers in the table. The paper's numbers are of DDSM, films of patients, by a network a hundred
times the size: compare orders, not values. The paper states neither its IoU threshold nor how it counts
duplicates."""

HOW_TO_READ = """## How to read the tables

- Intervals say what other patients would change. They do not say what another seed of the training would;
  the column *by seed* shows that.
- Differences are paired: the same patients and seeds on both sides. p-values are not corrected for their
  number.
- CL-Net's seed 0 is the best of its five, in both sections. Rows with one seed are compared with it, so
  part of what they lose is luck.
- Settings, and the epoch whose weights are tested, are chosen on the validation section and never on the
  test section. One thing was noticed on the test section: Paired Lesion Query lacked the [box
  refinement](box_refinement.md) that all other rows have. It was added.
- The two runs of box positions with seed 1 name a commit that is not in the history. Six others that did
  were repeated from one that is, with the same numbers to the last digit shown here.
- A run has {epochs} epochs and the [phantom model](../../bundle/docs/README.md) 24, which is why that is
  better."""

GEOMETRY = (
    "# Links beside geometry",
    "Does the linker know more than that a mass has nearly the same depth and size in both views? The "
    "detections of the [phantom model](../../bundle/docs/README.md) were linked by its linker, and by the "
    "rule that [links data sets without links](../datasets.md#links).",
)

FINDINGS: dict[str, str] = {
    "components": "Inter-attention accounts for nearly all of the gain, as it should: on this phantom only "
    "the other view tells a mass from a mimic. The linker adds little: 1.5 points at R@0.25 over five "
    "seeds, within the interval; it gains 0.5 to 8.3 with three of them and loses 1.8 and 3.7 with two. In "
    "the paper it adds 2.0. On the [validation section](linker_settings.md) it gains with each of the "
    "five, 3.2 on average. The first two seeds alone showed 6.2 on the test section, with a p of 0.001: p "
    "is about patients, and seeds of one row differ by up to 8 points. Without inter-attention the linker "
    "adds nothing measurable at R@0.25. The rows meet at two false positives per image, where there is "
    "room for the mimics too.",
    "match_learning": "Lesion Linker and Pair Verification are above VILD, which learns no match: Lesion "
    "Linker within the interval, with three of five seeds; Pair Verification by 4.5, with one of two, and "
    "that one is VILD's worst by 7 points. The two differ by less than the interval. In the paper Pair "
    "Verification does not help.\n\n"
    "Paired Lesion Query is first at R@0.25 and falls behind at one false positive per image; the paper "
    "has it last everywhere. The closer look shows two things. Fewer of its false positives are mimics "
    "than in any other row, perhaps because a query that reads both images sees that one of them shows "
    "nothing. And it shows one mass several times, which is free while duplicates are not counted; with "
    "duplicates counted it falls by 15 to 17 points, to 66.9 and 64.4, while CL-Net loses 2 to 4 and has "
    "66.6 to 71.9. The paper does not say how it counts duplicates.\n\n"
    "Its links are few and correct, since a link scores as low as the lower of its two boxes.",
    "link_cost": "At R@0.25 no row differs from Mul 0.5 by more than the interval, and the seeds of Mul "
    "0.5 alone are 7 points apart: one seed per row cannot order these six, in the paper's order or any "
    "other. With α = 0.75, by product and by sum, 7 to 8 points fewer of the masses found in both views "
    "are linked correctly than by Mul 0.5 with the same seed; its own seeds are 7 points apart in this.",
    "linker_layers": "In the paper four and five layers are worse than fewer; here they are not, at "
    "R@0.25. No row differs from one layer by more than the interval, five layers have the highest number, "
    "above two and three, and the spread between seeds is as large. Why deeper linkers do not get worse "
    "here was not tested.",
    "temperature": "No temperature, as in the paper, costs 4.7 points at R@0.25; by seed, 10.2, 3.9 and "
    "nothing. Links suffer more: of the masses found in both views 43% are linked correctly instead of "
    "60%, and 27% instead of 49% in breasts with several. On the [validation section](linker_settings.md) "
    "it detects no better than VILD, which has no linker. Cosines end at −1 and 1: of 21 candidates the "
    "right one can have at most e / (e + 20 / e) = 27% of the probability. So the loss never vanishes, and "
    "may pull at embeddings that also have to detect; this was not tested.",
    "auxiliary_loss": "The difference is within its interval. In `train.yaml` the linker has one layer, so "
    "there is nothing to choose.",
    "encoder_depth": "One encoder layer adds 3.6 points at R@0.25 with the same seed; two add 2.1, which "
    "is within the interval, and 1.7 at R@1, which is not. One nearly doubles the CPU time of a training, "
    "two cost more. `train.yaml` has none, so that a first training takes half an hour; `paper.yaml` has "
    "the paper's six.",
    "single_view": "Up to R@0.5 a network that has never seen the other view finds what Deformable DETR "
    "finds when it is trained on both: one view does not tell masses from mimics. At R@1 it finds less; it "
    "also had half as many images to learn from.",
    "box_refinement": "Without it masses are found, but their boxes are coarse: most of the loss "
    "disappears at IoU ≥ 0.2. The first runs of Paired Lesion Query were without it, and this gap, noticed "
    "on the test section, showed that it was not trained as the others were; nothing else was changed. The "
    "paper does not say whether its Paired Lesion Query refines boxes.",
    "box_positions": "They help CL-Net at R@0.5, by 2.1 points; at R@0.25 neither method gains more than "
    "the interval, VILD 7 points with one seed and nothing with the other. With them the linker adds 4.1 "
    "points, no less than without: the linker does not make up for queries that do not know where their "
    "boxes are. Links do not get better beyond the interval.",
    "linker_settings": "The linker adds 3.2 points to VILD in `train.yaml`, 0.8 to 6.3 by seed, and 4.7 "
    "with 40 object queries per view. With temperature 1 it adds nothing. With half of the training pairs, "
    "which at the same number of epochs is also half of the steps, both lose more than 20 points, and the "
    "linker's 1.9 are within the interval. λ_sim, the weight of the similarities, and the linker's "
    "learning rate make no difference beyond the interval. 40 object queries find more masses from one "
    "false positive per image on and lose no recall below, but 7.2 points fewer of those found in both "
    "views are linked correctly. Three linker layers are below one with this seed, by 6.1; on the test "
    "section it is 2.2, within the interval.\n\n"
    "Refining scores by pair scores does not pay: R@0.25 falls by 3 to 4 points and R@0.5 by 6 to 9, so it "
    "was removed.\n\n"
    "No setting was changed because of this table: most rows have one seed, and seeds of CL-Net are 7 "
    "points apart. Of the linker's own settings, temperature is the only one whose effect three seeds "
    "confirm.",
}
"""What each table shows, by its name."""
