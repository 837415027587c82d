"""One site of a federation: NVFlare's client around MONAI's `MonaiAlgo`, on the bundle installed there.

NVFlare runs it as a script, beside which the job has put ``settings.json``: names of the bundle's configs and
what is changed in them. Configs, which are code, do not travel.
"""

import json
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import nvflare.client as flare
from monai.fl.client.monai_algo import MonaiAlgo
from monai.fl.utils.constants import ExtraItems, FlStatistics
from monai.fl.utils.exchange_object import ExchangeObject
from nvflare.apis.fl_constant import FLMetaKey
from nvflare.app_common.abstract.fl_model import FLModel, ParamsType

from clnet.data.datalist import read_datalist
from clnet.predict.shipped import bundle_folder
from clnet.runs.command_line import run_config

SETTINGS_FILE = "settings.json"
# Global models are validated by an evaluator of their own, which leaves no files and no run in MLflow.
ONLY_VALIDATE = {"validate#handlers": [], "cache_rate": 0.0, "average_momentum": 1.0}


def main(folder: Path) -> None:
    """Do what the server asks for until it has nothing more.

    Args:
        folder: of the job's files at this site, among them ``settings.json``.
    """
    flare.init()
    given = json.loads((folder / SETTINGS_FILE).read_text(encoding="utf-8"))
    pairs = len(read_datalist(given["settings"]["dataset_dir"])["validation"])
    bundle = copy_of_bundle(folder.parent / "bundle")
    client = make_client(given["configs"], given["settings"], flare.get_site_name(), bundle)
    while flare.is_running():
        received = flare.receive()
        if received is None:
            break
        flare.send(answer(client, received, pairs))
    client.finalize()


def copy_of_bundle(folder: Path) -> Path:
    """The installed configs, in a folder of the site's own: `MonaiAlgo` keeps models beside them."""
    shutil.copytree(bundle_folder() / "configs", folder / "configs", dirs_exist_ok=True)
    (folder / "models").mkdir(exist_ok=True)
    return folder


def make_client(configs: list[str], settings: Mapping[str, Any], site: str, bundle: Path) -> MonaiAlgo:
    """MONAI's client of a federation.

    Args:
        configs: names of the bundle's configs, in their order.
        settings: what is changed in them.
        site: its name, under which MLflow has its run.
        bundle: with ``configs`` and ``models``.
    """
    files = [f"configs/{name}" for name in configs]
    settings = {"run_name": site, **settings}
    # A training by the bundle reads its settings from here, for its record.
    words = [word for name, value in settings.items() for word in (f"--{name}", str(value))]
    sys.argv = ["run", "training", "--config_file", str([str(bundle / file) for file in files]), *words]
    client = MonaiAlgo(
        bundle_root=str(bundle),
        local_epochs=run_config()["local_epochs"],
        send_weight_diff=False,
        config_train_filename=files,
        train_kwargs=dict(settings),
        config_evaluate_filename=files,
        eval_kwargs={**settings, **ONLY_VALIDATE},
        final_model_filepath="models/last.pt",
        save_dict_key="network",
    )
    client.initialize({ExtraItems.CLIENT_NAME: site})  # type: ignore[no-untyped-call]
    return client


def answer(client: MonaiAlgo, received: FLModel, pairs: int) -> FLModel:
    """Train with the global weights, or validate them.

    Args:
        client: of this site.
        received: the global weights.
        pairs: of the validation section.
    """
    weights = ExchangeObject(weights=received.params)
    if flare.is_evaluate():
        return FLModel(metrics=client.evaluate(weights).metrics, meta={"pairs": pairs})
    client.train(weights)
    trained = client.get_weights()  # type: ignore[no-untyped-call]
    steps = cast("Mapping[str, Any]", trained.statistics)[FlStatistics.NUM_EXECUTED_ITERATIONS]
    return FLModel(
        params_type=ParamsType.FULL,
        params=trained.weights,
        meta={FLMetaKey.NUM_STEPS_CURRENT_ROUND: steps},
    )


if __name__ == "__main__":
    main(Path(__file__).parent)
