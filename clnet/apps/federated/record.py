"""What became of each round of a federation, and which global model is the best."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from clnet.files import write_text

FEDERATION = "federation.json"


@dataclass(frozen=True)
class Validation:
    """What one site found with the global model of a round.

    Attributes:
        pairs: of its validation section.
        steps: of its training in this round, by which its weights count in the global model.
        metrics: of the validation.
    """

    pairs: int
    steps: int
    metrics: Mapping[str, float]


@dataclass
class Rounds:
    """The rounds so far.

    Attributes:
        metric: whose mean over sites, weighted by their pairs, chooses the best round.
        sites: validations by site, for each round.
    """

    metric: str
    sites: list[dict[str, Validation]] = field(default_factory=list)

    def means(self) -> list[float]:
        """The mean of the metric in each round."""
        return [weighted_mean(list(sites.values()), self.metric) for sites in self.sites]

    def best(self) -> int:
        """The index of the best round; of equally good ones, the first, as in a training at one site."""
        means = self.means()
        return means.index(max(means))

    def write(self, folder: str | Path) -> None:
        """Write ``federation.json``."""
        rounds: list[dict[str, Any]] = [
            {
                "round": index + 1,
                self.metric: mean,
                "sites": {name: asdict(validation) for name, validation in sites.items()},
            }
            for index, (mean, sites) in enumerate(zip(self.means(), self.sites, strict=True))
        ]
        content = {"metric": self.metric, "best_round": self.best() + 1, "rounds": rounds}
        write_text(Path(folder) / FEDERATION, json.dumps(content, indent=1) + "\n")


def weighted_mean(validations: Sequence[Validation], metric: str) -> float:
    """The mean of a metric over sites, each counting as much as it has pairs."""
    pairs = sum(validation.pairs for validation in validations)
    return sum(validation.pairs * validation.metrics[metric] for validation in validations) / pairs
