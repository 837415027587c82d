"""What the definitions say, written as plainly as possible; slow, and sharing nothing with the package."""

from fractions import Fraction


def exact_iou(a, b):
    a, b = ([Fraction(float(number)) for number in box] for box in (a, b))
    width = min(a[2], b[2]) - max(a[0], b[0])
    height = min(a[3], b[3]) - max(a[1], b[1])
    common = max(width, 0) * max(height, 0)
    areas = sum((box[2] - box[0]) * (box[3] - box[1]) for box in (a, b))
    return common / (areas - common) if areas > common else Fraction(0)


class SlowImage:
    """One image: boxes and scores of detections, boxes of lesions."""

    def __init__(self, boxes, scores, lesions):
        self.scores = [float(score) for score in scores]
        self.lesions = len(lesions)
        self.overlap = [[exact_iou(box, lesion) for lesion in lesions] for box in boxes]

    def outcome(self, threshold, iou, count_duplicates=False):
        """Which lesions the detections that reach a threshold hit, and how many are false positives."""
        hit, false_positives = set(), 0
        reaching = [n for n, score in enumerate(self.scores) if score >= threshold]
        for n in sorted(reaching, key=lambda n: -self.scores[n]):
            enough = [lesion for lesion in range(self.lesions) if self.overlap[n][lesion] >= iou]
            free = [lesion for lesion in enough if lesion not in hit]
            if free:
                hit.add(max(free, key=lambda lesion: (self.overlap[n][lesion], -lesion)))
            elif count_duplicates or not enough:
                false_positives += 1
        return hit, false_positives

    def lies_on(self, n, iou):
        """The lesion that detection n overlaps most, if enough."""
        best = max(range(self.lesions), key=lambda lesion: (self.overlap[n][lesion], -lesion), default=None)
        return best if best is not None and self.overlap[n][best] >= iou else None


def slow_recalls(images, rates, iou, units, count_duplicates=False):
    """For each rate the best share of units found, among the thresholds with at most so many false positives.

    Args:
        images: `SlowImage`s.
        rates: t of R@t.
        iou: a Fraction.
        units: (image, lesion) to the name of a unit; a unit is found with any of its lesions.
        count_duplicates: whether duplicates are false positives.
    """
    points = []
    for threshold in {float("inf")}.union(*(image.scores for image in images)):
        outcomes = [image.outcome(threshold, iou, count_duplicates) for image in images]
        found = {units[n, lesion] for n, (hit, _) in enumerate(outcomes) for lesion in hit}
        fpi = Fraction(sum(wrong for _, wrong in outcomes), len(images))
        points.append((fpi, Fraction(len(found), len(set(units.values())))))
    return [float(max(recall for fpi, recall in points if fpi <= Fraction(rate))) for rate in rates]


def most_matches(lesions_of_detections, taken=frozenset()):
    """The most detections that can have a lesion each, no lesion twice: every way is tried."""
    if not lesions_of_detections:
        return 0
    lesions, *rest = lesions_of_detections
    with_this = [1 + most_matches(rest, taken | {lesion}) for lesion in lesions if lesion not in taken]
    return max([most_matches(rest, taken), *with_this])


def slow_interpolated_recalls(images, rates, iou):
    """R@t of lesion boxes as TransReg counts it, with every score as a threshold.

    At each threshold as many detections as possible have a lesion of their own whose IoU exceeds `iou`, the
    others are false positives; recall is a straight line between the points, each the best of its rate.
    """
    lesions = sum(image.lesions for image in images)
    best = {}
    for threshold in {float("inf")}.union(*(image.scores for image in images)):
        hits = detections = 0
        for image in images:
            kept = [n for n, score in enumerate(image.scores) if score >= threshold]
            near = [[m for m in range(image.lesions) if image.overlap[n][m] > iou] for n in kept]
            hits, detections = hits + most_matches(near), detections + len(kept)
        fpi = Fraction(detections - hits, len(images))
        best[fpi] = max(best.get(fpi, 0), Fraction(hits, lesions))
    found = []
    for rate in map(Fraction, rates):
        low = max(fpi for fpi in best if fpi <= rate)
        high = min((fpi for fpi in best if fpi > rate), default=None)
        way = 0 if high is None else (rate - low) / (high - low)
        found.append(float(best[low] + way * (best[high or low] - best[low])))
    return found
