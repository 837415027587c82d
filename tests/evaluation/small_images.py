"""Images with few boxes, by hand and as a hypothesis strategy."""

import numpy as np
from hypothesis import strategies as st

from clnet.evaluation.hits import ImageResult


def image(detections, lesions):
    """From [(box, score), …] and [box, …]."""
    return ImageResult(
        np.array([box for box, _ in detections], float).reshape(-1, 4),
        np.array([score for _, score in detections], float),
        np.array(lesions, float).reshape(-1, 4),
    )


# A small grid gives many equal scores, equal overlaps and overlaps of exactly 1/5 and 1/2.
corner, side = st.integers(0, 6), st.integers(1, 5)
boxes = st.tuples(corner, corner, side, side).map(lambda b: (b[0], b[1], b[0] + b[2], b[1] + b[3]))
scores = st.sampled_from([0.1, 0.2, 0.3, 0.5, 0.8])
images = st.builds(
    image, st.lists(st.tuples(boxes, scores), max_size=7), st.lists(boxes, max_size=3, unique=True)
)
sets = st.lists(images, min_size=1, max_size=6)
