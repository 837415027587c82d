"""`clnet serve` killed at random moments while studies are sent to it, by serve_trial.py."""

from pathlib import Path

import serve_trial
import warm_processes
from tortures.outcome import Outcome

KILLS_PER_ROUND = 19
EVERY, FROM_NOTHING = 100, 5  # of so many kills, the last few hit nodes that are started from nothing
UP_SECONDS = (0.0, 12.0)
PRELOADED = ["monai.bundle", "mlflow", "highdicom", "clnet.networks", "clnet.serve.node"]


def kills(folder: Path, number: int, seed: int, outcome: Outcome) -> None:
    """Kill so often, in rounds after each of which everything that was sent must have arrived."""
    warm_processes.CONTEXT.set_forkserver_preload(PRELOADED)
    while outcome.tried < number:
        is_new = outcome.tried % EVERY == EVERY - FROM_NOTHING
        kills = min(FROM_NOTHING if is_new else KILLS_PER_ROUND, number - outcome.tried)
        place = folder / str(outcome.tried)
        place.mkdir()
        trial = serve_trial.run(
            place,
            kills + 2,
            kills,
            associations=3,
            seed=seed + outcome.tried,
            up_seconds=UP_SECONDS,
            is_warm=not is_new,
        )
        bad = trial.lost + trial.twice + trial.torn + trial.orphans + trial.identities
        bad += sum(trial.failed.values())
        outcome.tried += kills
        outcome.survived += max(0, kills - bad)
        outcome.lost += trial.lost
        outcome.torn += trial.torn
        outcome.orphans += trial.orphans
        outcome.peak_mb = max(outcome.peak_mb, *(held for _, held, _ in trial.memory))
        outcome.note("kills of programs started from nothing", kills * is_new)
        outcome.note("killed while a study was on its way", trial.kills_at_work)
        outcome.note("studies sent", len(trial.whole))
        outcome.note("reports replaced by those of more images", trial.replaced)
        if trial.twice:
            outcome.fail(f"{trial.twice} studies with two final reports")
        if trial.identities:
            outcome.fail(f"{trial.identities} lines of the log with an identity")
        for reason, studies in trial.failed.items():
            outcome.fail(f"{studies} studies given up: {reason}")
        outcome.keep()
