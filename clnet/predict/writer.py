"""Writes the findings of a run of MONAI's evaluator, in one process or in several."""

import logging
from pathlib import Path

from ignite.engine import Events
from monai.engines.workflow import Workflow

from clnet.distributed import gather
from clnet.findings.types import FINDINGS_FILE, Findings, PairFindings, write_findings

logger = logging.getLogger(__name__)


class FindingsWriter:
    """Gathers what `DecodeFindingsd` found and writes ``findings.json`` when the evaluator has finished.

    Pairs are written in the order of their ids, each once, whatever the number of processes.

    Args:
        run_dir: where the file goes.
        model: the name of the model.
    """

    def __init__(self, run_dir: str | Path, model: str) -> None:
        self.file = Path(run_dir) / FINDINGS_FILE
        self.model = model
        self.pairs: list[PairFindings] = []

    def attach(self, engine: Workflow) -> None:
        """Gather after each batch, write at the end."""
        engine.add_event_handler(Events.STARTED, lambda _: self.pairs.clear())
        engine.add_event_handler(Events.ITERATION_COMPLETED, self.gather)
        engine.add_event_handler(Events.COMPLETED, self.write)

    def gather(self, engine: Workflow) -> None:
        """Keep the findings of a batch."""
        self.pairs += engine.state.output["findings"]

    def write(self, engine: Workflow) -> None:
        """Write the findings of all processes."""
        shards = gather(self.pairs)
        if engine.state.rank == 0:
            by_id = {pair.pair_id: pair for shard in shards for pair in shard}
            write_findings(
                Findings(self.model, tuple(by_id[pair_id] for pair_id in sorted(by_id))), self.file
            )
            logger.info("findings of %d pairs: %s", len(by_id), self.file)
