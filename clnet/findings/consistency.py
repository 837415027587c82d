"""Do two views show the same breast? A score for how well they fit together.

Another patient's image as the second view takes away what the second view gives, and nothing in a network
says so. But the views of one breast are alike: about as deep, as tall, as dense and as bright at each depth.
Of each view f is measured on the canvas, which has the chest wall on the left and one scale for both views:

    f = (log depth, log height, log √area, mean grey of each quarter of the depth, standard deviation of grey)

The differences d = f(CC) − f(MLO) do not depend on the scale. They are taken for Gaussian, around the same
offset m in breasts and in strangers (two views of different patients), which differ in spread alone. There
are directions w_k along which both are uncorrelated, with variance 1 in breasts and t_k in strangers, so that
the log-odds of one breast against strangers are

    z = ½ Σ_k [log t_k − (1 − 1 / t_k) v_k²],    v_k = ⟨w_k, d − m⟩

and the score is 1 / (1 + exp(−z)), the probability of one breast if strangers were as frequent. Directions
with t_k near 1 say nothing and are left out. ``scripts/fit_consistency.py`` fits m, w and t to a data set.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from clnet.errors import ClnetError

Measures = NDArray[np.float64]

MEASURES = ("depth", "height", "area", "grey 1", "grey 2", "grey 3", "grey 4", "spread of grey")
QUARTERS = 4
ROWS = 128  # of the reduced copy: outlines need no more
FOREGROUND = 0.02  # of the range from 0 to 1: preprocessing has made the background 0, noise aside


class ConsistencyError(ClnetError, ValueError):
    """Settings of a `PairConsistency` that do not fit together."""


class PairConsistency:
    """How likely two views show one breast.

    Args:
        offsets: m, [8], in the order of `MEASURES`.
        directions: w, [k, 8].
        ratios: t, [k]: how much larger the variance is in strangers.
    """

    def __init__(
        self, offsets: Sequence[float], directions: Sequence[Sequence[float]], ratios: Sequence[float]
    ) -> None:
        self.offsets, self.directions = np.array(offsets, float), np.array(directions, float)
        self.ratios = np.array(ratios, float)
        count = len(MEASURES)
        for name, value, shape in (
            ("offsets", self.offsets, (count,)),
            ("directions", self.directions, (len(self.ratios), count)),
        ):
            if value.shape != shape:
                raise ConsistencyError(f"consistency: {name} has shape {value.shape}; expected {shape}")
        if not (self.ratios > 0).all():
            raise ConsistencyError(f"consistency: ratios are {ratios}; expected numbers above 0")

    def __call__(self, cc: NDArray[np.float32], mlo: NDArray[np.float32]) -> float:
        """The score in [0, 1] of two views [H, W] on their canvas."""
        return self.score(measure_view(cc) - measure_view(mlo))

    def score(self, differences: Measures) -> float:
        """The score of f(CC) − f(MLO), [8]."""
        squares = (self.directions @ (differences - self.offsets)) ** 2
        log_odds = float((np.log(self.ratios) - (1 - 1 / self.ratios) * squares).sum() / 2)
        return 1 / (1 + math.exp(-max(log_odds, -700.0)))  # beyond that, exp leaves the range of floats


def measure_view(image: NDArray[np.float32]) -> Measures:
    """What is compared, [8], of a view [H, W] on its canvas: grey in [0, 1], chest wall on the left."""
    small = _reduced(image)
    breast = _largest_component(small > FOREGROUND)
    columns, rows = breast.any(0), breast.any(1)
    depth = int(np.flatnonzero(columns)[-1]) + 1
    x = np.nonzero(breast)[1]
    grey = small[breast]
    quarter = QUARTERS * x // depth
    pixels = np.bincount(quarter, minlength=QUARTERS)
    means = np.bincount(quarter, grey, minlength=QUARTERS) / np.maximum(pixels, 1)
    sizes = np.log([depth, rows.sum(), np.sqrt(breast.sum())])
    return np.concatenate([sizes, means, [grey.std()]])


def mismatch_warning(score: float | None, min_consistency: float) -> str:
    """A sentence if the score is below what is expected of one breast; "" if not, or without a score."""
    if score is None or score >= min_consistency:
        return ""
    return f"the two views may not be of one breast (consistency {score:.3f}, below {min_consistency:.3f})"


def _reduced(image: NDArray[np.float32]) -> NDArray[np.float32]:
    """A copy [h, w] with means of blocks of whole pixels, at least `ROWS` high if the image is."""
    step = max(1, image.shape[0] // ROWS)
    rows, columns = (max(size // step, 1) for size in image.shape)
    blocks = image[: rows * step, : columns * step].reshape(rows, step, columns, step)
    return blocks.mean(axis=(1, 3))


def _largest_component(mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """The largest connected part of a mask [h, w]; all of the image if the mask is empty."""
    components, count = ndimage.label(mask)
    if not count:
        return np.ones_like(mask)
    return components == np.bincount(components.ravel())[1:].argmax() + 1
