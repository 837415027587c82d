"""What the page docs/evidence.md says beside its tables."""

BEFORE = """```bash
{command}
```

trains and evaluates everything on this page on the phantom, by the bundle's own configs, and writes it.

Each row is `train.yaml` with the change that the row names, trained for {epochs} epochs on {training}
pairs; the weights of the best validation are tested on {test} pairs. Components and match learning have two
seeds, the other tables one (`--other-seeds`); rows that say *not run* wait for machine time, and the same
command goes on with them. Numbers are means over seeds with 95% intervals from a bootstrap over patients,
the same for every seed and row; R@t and the link measures are those of
[evaluation.md](evaluation.md#what-is-counted). The row in bold is `train.yaml` as it is; all others are
compared with it. Beside ours stand the paper's numbers. They are of DDSM, films of patients, by a network a
hundred times the size: orders may be compared between the two, heights may not."""

AFTER = """## How to read it

- Intervals tell what other patients would change ({resamples} resamples). They do not tell what another seed
  of the training would; for that there is the column *by seed*.
- Differences are paired: the same patients and the same seeds on both sides. p-values are not corrected for
  their number.
- Settings are chosen on the validation section, and so is the epoch whose weights are tested; nothing is on
  the test section. One thing was noticed there: that Paired Lesion Query lacked the
  [box refinement](#box-refinement) which all other rows have. It was given it.
- A run has {epochs} epochs where the shipped model had 24, so that all of them can be had;
  [the shipped model](../bundle/docs/README.md#what-the-shipped-model-is-worth) is better for it."""

FINDINGS: dict[str, str] = {
    "components": "Inter-attention is nearly all of it, and so it should be: on this phantom only the other "
    "view tells a mass from a mimic. The linker comes on top of it, and earns its place where few false "
    "positives are allowed; without inter-attention it brings nothing that shows at R@0.25. Rows meet from "
    "two false positives per image on, where mimics may be shown as well. Two seeds of one row may be "
    "further apart than the linker's gain: it has the same sign in both, and two are few.",
    "match_learning": "In the mean of two seeds Lesion Linker and Pair Verification both detect better than "
    "VILD, which learns no match. For Lesion Linker this holds in both seeds, for Pair Verification in one. "
    "Between the two the difference is within its interval. In the paper Pair Verification does not help.\n\n"
    "Paired Lesion Query comes first at R@0.25 and is behind from one false positive per image on; the "
    "paper has it last everywhere. The closer look tells why: it shows one mass several times over, which "
    "costs nothing as long as duplicates are not counted. Counted, it falls by 15 to 17 points and below "
    "CL-Net, which loses 2 (in the one seed that was looked at). What is its own is that it shows fewer "
    "mimics than any other row, perhaps since a query that reads both images sees for itself where one has "
    "nothing. The paper does not say how it counts duplicates.\n\n"
    "Its links are few and right, since a link is as sure as the less sure of its two boxes.",
    "link_cost": "At R@0.25 no row differs from Mul 0.5 by more than the interval, and the two seeds of Mul "
    "0.5 alone are 3 points apart: one seed a row cannot tell these six from one another, in the paper's "
    "order or any. With α = 0.75, in both ways, fewer of the masses that were found in both views are "
    "linked rightly.",
    "linker_layers": "In the paper four and five layers are worse than fewer; here nothing of that shows. "
    "No row differs from one layer by more than the interval at R@0.25, five layers have the highest "
    "number, and the spread between seeds is as large. Why the paper's fall with depth is not here was not "
    "tested.",
    "temperature": "The paper to the letter costs 10 points at R@0.25 and more than a quarter of the right "
    "links; it is then no better than VILD, which has no linker "
    "([below](#what-makes-the-linker-earn-its-place)). Cosines end at −1 and 1: of 21 candidates the right "
    "one can have no more than e / (e + 20 / e) = 27% of the probability. So the loss never rests, and "
    "pulls at embeddings that have to detect as well. Of all that was varied, this is what decides whether "
    "the linker helps.",
    "auxiliary_loss": "The difference is within its interval. In train.yaml the linker has one layer, so "
    "there is nothing to choose.",
    "encoder_depth": "One encoder layer brings 3.6 points at R@0.25 with the same seed, and nearly doubles "
    "the CPU time of a training. train.yaml is without, so that a first training takes half an hour; "
    "paper.yaml has the paper's six.",
    "single_view": "A network that has never seen the other view finds what Deformable DETR finds when it "
    "is trained on both: one view does not tell masses from mimics, and images of the other do not help as "
    "long as they are not read beside it.",
    "box_refinement": "Without it masses are found, but their boxes are coarse: most of the loss is gone at "
    "IoU ≥ 0.2. The first runs of Paired Lesion Query were without it, and this gap, seen on the test "
    "section, showed that it was not trained as the others were; nothing else of it was changed. The paper "
    "does not say whether its Paired Lesion Query refines boxes.",
    "linker_settings": "The linker is worth 5.4 points over VILD as train.yaml has it, and 4.7 with 40 "
    "object queries in each view. Temperature 1 takes that away. A linker that learns at the full rate is "
    "the same within the interval. 40 object queries find more masses from one false positive per image on, "
    "and lose nothing below. Three linker layers are below one with this seed, by 6.1; on the test section "
    "it is 2.2, within the interval.\n\n"
    "Refining scores by pair scores does not pay: R@0.5 falls by 6 to 9 points, so it stays off "
    "(`pair_score_weight` is 0).\n\n"
    "No setting was changed for what this table shows: with one seed a row and 7 points between the two "
    "seeds of CL-Net, only temperature stands out.",
}
"""What was found in each table, by its name."""
