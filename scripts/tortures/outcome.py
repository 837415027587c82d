"""What happened to a program that was tortured."""

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass
class Outcome:
    """Counts of one torture.

    Attributes:
        tried: how often it was hurt: kills, mutated inputs, requests.
        survived: of these, without any of what follows.
        lost: results that had been there and were gone at the end, or never came.
        torn: results that were there but not whole.
        orphans: processes that outlived the one that had started them.
        stuck: that did not start again, or did not end.
        seconds: all together.
        peak_mb: the most memory that a process held.
        notes: further counts, by what they are of.
        failures: the first few, in words.
        save: called with it whenever there is more, so that a torture which is interrupted has its figures.
    """

    tried: int = 0
    survived: int = 0
    lost: int = 0
    torn: int = 0
    orphans: int = 0
    stuck: int = 0
    seconds: float = 0.0
    peak_mb: int = 0
    notes: dict[str, float] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    save: Callable[["Outcome"], None] = field(default=lambda _: None, repr=False)

    def keep(self) -> None:
        """Save what has happened so far."""
        self.save(self)

    def note(self, name: str, number: float = 1) -> None:
        """Add to a count."""
        self.notes[name] = self.notes.get(name, 0) + number

    def fail(self, words: str) -> None:
        """Keep what went wrong, if it is among the first."""
        if len(self.failures) < 20:
            self.failures.append(words)

    @property
    def is_good(self) -> bool:
        """Whether nothing was lost, torn, orphaned or stuck, and nothing else failed."""
        return not (self.lost or self.torn or self.orphans or self.stuck or self.failures)

    def to_json(self) -> dict[str, Any]:
        """For the file of figures."""
        content = asdict(self)
        del content["save"]
        return {**content, "seconds": round(self.seconds, 1), "notes": dict(sorted(self.notes.items()))}
