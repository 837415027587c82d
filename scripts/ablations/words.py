"""What the page docs/evidence.md says beside its tables."""

BEFORE = """```bash
{command}
```

trains and evaluates everything on this page on the phantom, by the bundle's own configs, and writes it.

Each row is `train.yaml` with the change that the row names, trained for {epochs} epochs on {training} pairs;
the weights of the best validation are tested on {test} pairs. Components and match learning have two seeds,
the other tables one (`--other-seeds`). Numbers are means
over seeds with 95% intervals from a bootstrap over patients, the same for every seed and row; R@t and the
link measures are those of [evaluation.md](evaluation.md#what-is-counted). The row in bold is `train.yaml` as
it is; all others are compared with it. Beside ours stand the paper's numbers. They are of DDSM, films of
patients, by a network a hundred times the size: orders may be compared between the two, heights may not."""

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
    "Between the two the difference is within its interval. In the paper Pair Verification does not "
    "help.\n\n"
    "Paired Lesion Query comes first at R@0.25 and is behind from one false positive per image on; the "
    "paper has it last everywhere. The closer look tells why: it shows one mass several times over, which "
    "costs nothing as long as duplicates are not counted. Counted, it falls by 15 to 17 points and below "
    "CL-Net, which loses 2 (in the one seed that was looked at). What is its own is that it shows fewer "
    "mimics than any other row, perhaps since a query that reads both images sees for itself where one has "
    "nothing. The paper does not say how it counts duplicates.\n\n"
    "Its links are few and right, since a link is as sure as the less sure of its two boxes.",
    "box_refinement": "Without it masses are found, but their boxes are coarse: most of the loss is gone at "
    "IoU ≥ 0.2. The first runs of Paired Lesion Query were without it, and this gap, seen on the test "
    "section, showed that it was not trained as the others were; nothing else of it was changed. The "
    "paper does not say whether its Paired Lesion Query refines boxes.",
}
"""What was found in each table, by its name."""
