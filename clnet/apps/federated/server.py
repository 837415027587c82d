"""The server of a federation: FedAvg that keeps the best and the last global model.

NVFlare's own FedAvg knows a global model by what the sites say of it before they train it further: it never
hears of the last one, and so never chooses it. It also adds weights in the order in which they arrive, which
changes their last bits. Here every round ends with a validation of its global model at all sites, and weights
are added in the order of the sites' names.
"""

from collections.abc import Iterable
from pathlib import Path

import torch
from nvflare.apis.fl_constant import FLMetaKey
from nvflare.app_common.abstract.fl_model import FLModel, ParamsType
from nvflare.app_common.app_constant import AppConstants
from nvflare.app_common.workflows.base_fedavg import BaseFedAvg

from clnet.apps.federated.record import Rounds, Validation
from clnet.runs.checkpoints import load_checkpoint, save_atomically

BEST, FINAL = "best.pt", "final.pt"
METRIC, PAIRS = "mean_recall", "pairs"


class Federation(BaseFedAvg):
    """Trains one network at all sites.

    Args:
        initial: file with the state dict of the network that training starts from.
        output: folder that gets ``best.pt``, ``final.pt`` and ``federation.json``, after every round.
        num_clients: sites, all of which take part in every round.
        num_rounds: of training at every site and averaging.
    """

    def __init__(self, initial: str, output: str, num_clients: int, num_rounds: int) -> None:
        super().__init__(num_clients=num_clients, num_rounds=num_rounds)
        self.initial = initial
        self.output = output

    def run(self) -> None:
        """Train, average, validate, keep; round by round."""
        weights = load_checkpoint(Path(self.initial))
        model = FLModel(
            params_type=ParamsType.FULL, params={name: tensor.numpy() for name, tensor in weights.items()}
        )
        rounds = Rounds(METRIC)
        for number in range(self.num_rounds):
            self.current_round = number
            model.current_round, model.total_rounds = number, self.num_rounds
            sites = self.sample_clients(self.num_clients)
            trained = by_site(self.send_model_and_wait("train", model, sites))
            model = self.update_model(model, self.aggregate(list(trained.values())))
            validated = by_site(self.send_model_and_wait(AppConstants.TASK_VALIDATION, model, sites))
            rounds.sites.append(
                {
                    site: Validation(
                        pairs=validated[site].meta[PAIRS],
                        steps=trained[site].meta[FLMetaKey.NUM_STEPS_CURRENT_ROUND],
                        metrics=validated[site].metrics,
                    )
                    for site in trained
                }
            )
            self._keep(model, is_best=rounds.best() == number)
            rounds.write(self.output)
            self.info(f"round {number + 1}: {METRIC} {rounds.means()[-1]:.3f}")

    def _keep(self, model: FLModel, is_best: bool) -> None:
        state = {name: torch.as_tensor(values) for name, values in model.params.items()}
        for name in (BEST, FINAL) if is_best else (FINAL,):
            save_atomically(state, Path(self.output) / name)


def by_site(results: Iterable[FLModel]) -> dict[str, FLModel]:
    """Results by the names of their sites, in the order of these names."""
    named = {result.meta["client_name"]: result for result in results}
    return dict(sorted(named.items()))
