"""What the page docs/evidence.md says beside its tables."""

BEFORE = """```bash
{command}
```

trains and evaluates everything on this page on the phantom, by the bundle's own configs, and writes it.

Each row is `train.yaml` with the change that the row names, trained for {epochs} epochs on {training} pairs;
the weights of the best validation are tested on {test} pairs, on which nothing was chosen. Numbers are means
over seeds with 95% intervals from a bootstrap over patients, the same for every seed and row; R@t and the
link measures are those of [evaluation.md](evaluation.md#what-is-counted). The row in bold is `train.yaml` as
it is; all others are compared with it. Beside ours stand the paper's numbers. They are of DDSM, films of
patients, by a network a hundred times the size: orders may be compared between the two, heights may not."""

AFTER = """## How to read it

- Intervals tell what other patients would change ({resamples} resamples). They do not tell what another seed
  of the training would; for that there is the column *by seed*.
- Differences are paired: the same patients and the same seeds on both sides. p-values are not corrected for
  their number.
- Nothing was chosen on the test section. Settings are chosen on the validation section, and so is the epoch
  whose weights are tested.
- A run has {epochs} epochs where the shipped model had 24, so that all of them can be had;
  [the shipped model](../bundle/docs/README.md#what-the-shipped-model-is-worth) is better for it."""

FINDINGS: dict[str, str] = {}
"""What was found in each table, by its name."""
