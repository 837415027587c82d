"""The job of a federation, as NVFlare takes it: for its simulator, or as a folder to submit."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from monai.bundle.config_parser import ConfigParser
from monai.utils.misc import set_determinism
from nvflare.app_common.executors.client_api_executor import ClientAPIExecutor, ExecutionMode
from nvflare.client.config import ExchangeFormat
from nvflare.job_config.api import FedJob

from clnet.apps.federated import train_at_site
from clnet.apps.federated.server import Federation
from clnet.files import make_folder, write_text
from clnet.predict.shipped import bundle_folder
from clnet.runs.checkpoints import save_atomically

NAME = "clnet"


def make_job(
    datasets: Mapping[str, str | Path],
    configs: Sequence[str],
    settings: Mapping[str, Any],
    rounds: int,
    output: Path,
) -> FedJob:
    """A job that trains one network at all sites.

    Args:
        datasets: the folder of each site's data set, as it is called there, by the site's name.
        configs: names of the bundle's configs, the first of them train.yaml and the last federated.yaml.
        settings: what is changed in them, at every site.
        rounds: of training and averaging.
        output: folder of the server, for the initial, the best and the final model.
    """
    make_folder(output)
    save_initial(configs, settings, output / "initial.pt")
    job = FedJob(name=NAME, min_clients=len(datasets))
    job.job.set_app_packages(["clnet"])  # is installed at every site
    job.to_server(Federation(str(output / "initial.pt"), str(output), len(datasets), rounds))
    for site, dataset in datasets.items():
        own = {**settings, "dataset_dir": str(dataset), "rounds": rounds}
        file = output / "settings" / site / train_at_site.SETTINGS_FILE
        make_folder(file.parent)
        write_text(file, json.dumps({"configs": list(configs), "settings": own}, indent=1) + "\n")
        job.to(_executor(), site, tasks=["*"])
        for brought in (train_at_site.__file__, str(file)):
            job.add_file_to(brought, site)
    return job


def _executor() -> ClientAPIExecutor:
    """Runs the script in the process of NVFlare's client; the script has tensors, the server arrays."""
    return ClientAPIExecutor(
        execution_mode=ExecutionMode.IN_PROCESS,
        task_script_path=Path(train_at_site.__file__).name,
        params_exchange_format=ExchangeFormat.PYTORCH,
        server_expected_format=ExchangeFormat.NUMPY,
    )


def save_initial(configs: Sequence[str], settings: Mapping[str, Any], file: Path) -> None:
    """Save the weights that a federation with these settings begins with."""
    folder = bundle_folder() / "configs"
    parser = ConfigParser(ConfigParser.load_config_files([str(folder / name) for name in configs]))
    parser.update(dict(settings))
    set_determinism(parser["seed"])
    save_atomically(parser.get_parsed_content("network_def").state_dict(), file)
    set_determinism(None)
