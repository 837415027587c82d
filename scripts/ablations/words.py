"""What the page docs/evidence.md says beside its tables."""

BEFORE = """```bash
{command}
```

trains and evaluates everything on this page on the phantom, by the bundle's own configs, and writes it.

Each row is `train.yaml` with the change that the row names, trained for {epochs} epochs on {training}
pairs; the weights of the best validation are tested on {test} pairs. CL-Net and VILD have five seeds, the
other components, temperature 1 and refined scores three, match learning and box positions two, other rows
one; the same command goes on with those that are missing. Numbers are means over seeds with 95% intervals
from a bootstrap over patients, with the same draws for every seed and row; R@t and the link measures are
those of [evaluation.md](evaluation.md#what-is-counted). The row in bold is `train.yaml` as it is; all
others are compared with it, by the seeds that both have: where a row has fewer seeds, its difference is not
that of the two numbers in the table. Beside ours stand the paper's numbers. They are of DDSM, films of
patients, by a network a hundred times the size: orders may be compared between the two, heights may not.
The paper does not say from which IoU it counts a hit, nor how it counts duplicates."""

AFTER = """## How to read it

- Intervals tell what other patients would change ({resamples} resamples). They do not tell what another seed
  of the training would; for that there is the column *by seed*.
- Differences are paired: the same patients and the same seeds on both sides. p-values are not corrected for
  their number.
- CL-Net's seed 0 is the best of its five, in both sections. Rows of one seed are compared with it: some of
  what they lose is that luck.
- Settings are chosen on the validation section, and so is the epoch whose weights are tested; nothing is on
  the test section. One thing was noticed there: that Paired Lesion Query lacked the
  [box refinement](#box-refinement) which all other rows have. It was given it.
- The two runs of box positions with seed 1 name a commit that is not in the history. Six others that did
  were made once more, from one that is, with the same numbers to the last digit shown here.
- A run has {epochs} epochs where the shipped model had 24, so that all of them can be had;
  [the shipped model](../bundle/docs/README.md#results) is better for it."""

FINDINGS: dict[str, str] = {
    "components": "Inter-attention is nearly all of it, and so it should be: on this phantom only the other "
    "view tells a mass from a mimic. What the linker adds is small: 1.5 points at R@0.25 in the mean of five "
    "seeds, within the interval; with three of them it gains 0.5 to 8.3, with two it loses 1.8 and 3.7. In "
    "the paper it is 2.0. On the validation section it gains with each of the five, 3.2 in the mean "
    "([below](#what-makes-the-linker-earn-its-place)). The first two seeds alone said 6.2 on the test "
    "section, with a p of 0.001: p is about patients, and seeds of one row are up to 8 points apart. Without "
    "inter-attention the linker brings nothing that shows at R@0.25. Rows meet from two false positives per "
    "image on, where mimics may be shown as well.",
    "match_learning": "Lesion Linker and Pair Verification stand above VILD, which learns no match: Lesion "
    "Linker within the interval, with three of five seeds; Pair Verification by 4.5, with one of two, and "
    "that one is VILD's worst by 7 points. Between the two the difference is within its interval. In the "
    "paper Pair Verification does not help.\n\n"
    "Paired Lesion Query comes first at R@0.25 and is behind from one false positive per image on; the "
    "paper has it last everywhere. The closer look shows two things. Fewer of its false positives are mimics "
    "than in any other row, perhaps since a query that reads both images sees for itself where one has "
    "nothing. And it shows one mass several times over, which costs nothing as long as duplicates are not "
    "counted; counted, it falls by 15 to 17 points, to 66.9 and 64.4, where CL-Net, which loses 2 to 4, has "
    "66.6 to 71.9. The paper does not say how it counts duplicates.\n\n"
    "Its links are few and right, since a link is as sure as the less sure of its two boxes.",
    "link_cost": "At R@0.25 no row differs from Mul 0.5 by more than the interval, and seeds of Mul 0.5 "
    "alone are 7 points apart: one seed a row cannot tell these six from one another, in the paper's order "
    "or any. With α = 0.75, in both ways, 7 to 8 points fewer of the masses found in both views are linked "
    "rightly than by Mul 0.5 with the same seed; its own seeds are 7 points apart in this.",
    "linker_layers": "In the paper four and five layers are worse than fewer; here nothing of that shows at "
    "R@0.25. No row differs from one layer by more than the interval, five layers have the highest number, "
    "above two and three, and the spread between seeds is as large. Why the paper's fall with depth is not "
    "here was not tested.",
    "temperature": "The paper to the letter costs 4.7 points at R@0.25, 10.2, 3.9 and nothing by seed. Links "
    "suffer more: of the masses that are found in both views 43 of 100 are linked rightly, not 60, and 27, "
    "not 49, where a breast has several. On the validation section it detects no better than VILD, which has "
    "no linker ([below](#what-makes-the-linker-earn-its-place)). Cosines end at −1 and 1: of 21 "
    "candidates the right one can have no more than e / (e + 20 / e) = 27% of the probability. So the "
    "loss never rests, and may pull at embeddings that have to detect as well; this was not tested.",
    "auxiliary_loss": "The difference is within its interval. In train.yaml the linker has one layer, so "
    "there is nothing to choose.",
    "encoder_depth": "One encoder layer brings 3.6 points at R@0.25 with the same seed, two bring 2.1, "
    "which is within the interval, and 1.7 at R@1, which is not. One nearly doubles the CPU time of a "
    "training, two cost more. train.yaml is without, so that a first training takes "
    "half an hour; paper.yaml has the paper's six.",
    "single_view": "Up to R@0.5 a network that has never seen the other view finds what Deformable DETR "
    "finds when it is trained on both: one view does not tell masses from mimics. At R@1 it finds less; it "
    "also had half as many images to learn from.",
    "box_refinement": "Without it masses are found, but their boxes are coarse: most of the loss is gone at "
    "IoU ≥ 0.2. The first runs of Paired Lesion Query were without it, and this gap, seen on the test "
    "section, showed that it was not trained as the others were; nothing else of it was changed. The paper "
    "does not say whether its Paired Lesion Query refines boxes.",
    "box_positions": "CL-Net is better with them at R@0.5, by 2.1 points; at R@0.25 neither method gains "
    "more than the interval, VILD 7 points with one seed and nothing with the other. The linker is worth "
    "4.1 points with them, no less than without: that queries do not know where their boxes are is not what "
    "it makes up for. Links do not become better beyond the interval. They are off, as in the paper.",
    "linker_settings": "The linker is worth 3.2 points over VILD as train.yaml has it, 0.8 to 6.3 by seed, "
    "and 4.7 with 40 object queries in each view. With temperature 1 it is worth nothing. With half of the "
    "training pairs, which in as many epochs is half of the steps, too, both lose more than 20 points, and "
    "the linker's 1.9 are within the interval. λ_sim, the weight of the similarities, and the linker's "
    "learning rate make no difference beyond the interval. 40 object queries find more masses from one "
    "false positive per image on and lose no recall below, but 7.2 points fewer of those found in both "
    "views are linked rightly. Three linker layers are below one with this seed, by 6.1; on the test "
    "section it is 2.2, within the interval.\n\n"
    "Refining scores by pair scores does not pay: R@0.25 falls by 3 to 4 points and R@0.5 by 6 to 9, so "
    "it stays off (`pair_score_weight` is 0).\n\n"
    "No setting was changed for what this table shows: most rows have one seed, and seeds of CL-Net are 7 "
    "points apart. Of the linker's own settings, temperature is the one whose loss three seeds confirm.",
}
"""What was found in each table, by its name."""
