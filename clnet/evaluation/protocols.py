"""Protocols: named sets of rules by which recall is counted, so that numbers can be compared."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, get_args

from clnet.errors import ClnetError
from clnet.evaluation.froc import IOU_THRESHOLDS, MEAN_RATES, RATES
from clnet.evaluation.hits import Matching


class EvaluationSettingsError(ClnetError):
    """An invalid setting of the evaluation."""


@dataclass(frozen=True)
class Rules:
    """What a hit, a false positive and R@t are.

    Attributes:
        ious: IoU thresholds of a hit; errors are classified at the first.
        count_duplicates: whether another detection on a lesion that is already hit is a false positive;
            if not, it is neither that nor a hit.
        matching: which detection hits which lesion, see `clnet.evaluation.hits`.
        interpolate: whether R@t is interpolated between the points of the FROC curve; if not, it is the best
            recall among the thresholds whose FPI is at most t.
    """

    ious: tuple[float, ...] = IOU_THRESHOLDS
    count_duplicates: bool = False
    matching: Matching = "by_score"
    interpolate: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "ious", tuple(self.ious))
        if not self.ious or not all(0 < iou <= 1 for iou in self.ious):
            raise EvaluationSettingsError(
                f"ious are {self.ious}; expected at least one, each above 0 and at most 1"
            )
        if self.matching not in get_args(Matching):
            raise EvaluationSettingsError(
                f"matching is {self.matching!r}; expected {' or '.join(get_args(Matching))}"
            )


@dataclass(frozen=True)
class Protocol:
    """A named set of rules.

    Attributes:
        description: the rules in one line.
        rules: the rules themselves.
        shown_rates: the values of t in tables and figures; files have all of `RATES`.
    """

    description: str
    rules: Rules
    shown_rates: tuple[float, ...] = MEAN_RATES


PROTOCOLS = {
    "film": Protocol(
        "IoU ≥ threshold, duplicates are false positives, step function",
        Rules(count_duplicates=True),
    ),
    "default": Protocol(
        "IoU ≥ threshold, duplicates are neither hits nor false positives, step function", Rules(), RATES
    ),
    "transreg": Protocol(
        "IoU > threshold by Hungarian matching, duplicates are false positives, linear interpolation",
        Rules(ious=(0.2,), count_duplicates=True, matching="one_to_one", interpolate=True),
    ),
}
"""By name: ours for real films, the command's default, and that of TransReg's code. All of them count false
positives per image over all images, negative ones included."""


@dataclass(frozen=True)
class EvaluationSettings(Rules):
    """Settings of an evaluation: rules, and what else it needs. `settings_of` takes the rules of a protocol.

    Attributes:
        protocol: the protocol that the rules are of, except for those that differ.
        operating_rate: the false positives per image at which errors are classified and a lesion counts as
            detected.
        link_score: the minimum score of links that count.
        resamples: the number of bootstrap resamples.
        seed: the seed of the bootstrap.
    """

    protocol: str = "default"
    operating_rate: float = 0.5
    link_score: float = 0.5
    resamples: int = 2000
    seed: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        find_protocol(self.protocol)
        if not self.operating_rate > 0:
            raise EvaluationSettingsError(
                f"operating_rate is {self.operating_rate}; expected a number above 0"
            )
        if self.resamples < 1:
            raise EvaluationSettingsError(f"resamples is {self.resamples}; expected at least 1")


def settings_of(protocol: str, **changes: Any) -> EvaluationSettings:
    """The settings of a protocol; changes are attributes of `EvaluationSettings`."""
    return EvaluationSettings(**{"protocol": protocol, **asdict(find_protocol(protocol).rules), **changes})


def find_protocol(name: str) -> Protocol:
    """The protocol of that name."""
    if name not in PROTOCOLS:
        raise EvaluationSettingsError(f"protocol is {name!r}; expected one of {', '.join(PROTOCOLS)}")
    return PROTOCOLS[name]


def protocol_words(settings: Mapping[str, Any]) -> str:
    """The protocol of the settings in ``metrics.json`` and the rules that differ from it.

    For example "protocol film", or "protocol film, changed: count_duplicates False, ious 0.3".
    """
    rules = asdict(find_protocol(settings["protocol"]).rules)
    changed = [
        f"{name} {settings[name]}" for name in rules if name != "ious" and settings[name] != rules[name]
    ]
    if tuple(settings["ious"]) != rules["ious"]:  # a list in JSON
        changed.append("ious " + " and ".join(f"{iou:g}" for iou in settings["ious"]))
    return f"protocol {settings['protocol']}" + (f", changed: {', '.join(changed)}" if changed else "")
