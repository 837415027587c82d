"""Random pairs, and random findings about them by a detector of a given skill: for tests and benchmarks."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from clnet.data.datalist import Datalist
from clnet.data.pair import Pair, View
from clnet.findings.types import Detections, Findings, Link, PairFindings

SIZE = 1000


def random_boxes(rng: np.random.Generator, count: int) -> NDArray[np.float32]:
    """[count, 4] xyxy boxes of 40 to 200 pixels."""
    low = rng.uniform(0, SIZE - 200, (count, 2))
    return np.concatenate([low, low + rng.uniform(40, 200, (count, 2))], 1).astype(np.float32)


def random_datalist(pairs: int, seed: int = 0, missing_views: bool = True) -> Datalist:
    """Two pairs per patient; breasts with no, one and several lesions; lesions seen in one view."""
    rng = np.random.default_rng(seed)

    def view(name: str, lesions: Sequence[str]) -> View:
        return View(Path(f"{name}.dcm"), random_boxes(rng, len(lesions)), tuple(lesions), (SIZE, SIZE))

    made = []
    for number in range(pairs):
        lesions = [str(n) for n in range(rng.choice([0, 1, 1, 2, 3]))]
        seen = {name: [i for i in lesions if rng.random() < 0.85] for name in ("cc", "mlo")}
        views = {name: view(f"{number}_{name}", ids) for name, ids in seen.items()}
        if missing_views and rng.random() < 0.1:
            del views[rng.choice(["cc", "mlo"])]
        made.append(
            Pair(
                pair_id=f"pair {number}",
                patient_id=f"patient {number // 2}",
                laterality="LR"[number % 2],
                cc=views.get("cc"),
                mlo=views.get("mlo"),
                attributes={
                    "density": "ABCD"[number % 4],
                    "age": int(rng.integers(40, 80)),
                    "lesions": {i: {"pathology": str(rng.choice(["benign", "malignant"]))} for i in lesions},
                },
            )
        )
    return Datalist("random", {"test": tuple(made)})


def random_findings(
    pairs: Sequence[Pair],
    skill: float = 1.5,
    detections: int = 12,
    links: int = 6,
    seed: int = 1,
    model: str = "random",
) -> Findings:
    """Each lesion box has a box near it with a score higher by `skill`, in standard deviations."""
    rng = np.random.default_rng(seed)

    def found(view: View) -> Detections:
        jitter = rng.normal(0, 12, view.boxes.shape)
        near = view.boxes + jitter.astype(np.float32)
        near[:, 2:] = np.maximum(near[:, 2:], near[:, :2] + 1)
        boxes = np.concatenate([near, random_boxes(rng, detections - len(near))])
        logits = rng.normal(size=len(boxes)) + skill * (np.arange(len(boxes)) < len(near))
        # Rounded, so that scores are often equal.
        return Detections(boxes, np.round(1 / (1 + np.exp(-logits)), 3))

    def linked(pair: Pair, views: Mapping[str, Detections]) -> Iterator[Link]:
        if len(views) < 2:
            return
        ids = [pair.views[name].lesion_ids for name in ("cc", "mlo")]
        for index, lesion in enumerate(ids[0]):
            partner = ids[1].index(lesion) if lesion in ids[1] else None
            yield Link(index, partner if rng.random() < 0.7 else None, float(rng.uniform(0.3, 1)))
        for _ in range(links):
            cc, mlo = map(int, rng.integers(0, detections, 2))
            yield Link(cc, mlo, float(rng.uniform(0, 0.7)))

    made = []
    for pair in pairs:
        views = {name: found(view) for name, view in pair.views.items()}
        made.append(PairFindings(pair.pair_id, views.get("cc"), views.get("mlo"), tuple(linked(pair, views))))
    return Findings(model, tuple(made))
