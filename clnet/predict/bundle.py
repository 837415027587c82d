"""Where models come from: the bundle that is shipped, another bundle, or the folder of a training run.

Network, preprocessing, inferer and post-processing are those of the config, so that a prediction does what
the evaluation measured. `clnet.load`, `clnet predict` and the apps share this.
"""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from monai.bundle.config_parser import ConfigParser

from clnet.distributed import process_device
from clnet.errors import ClnetError
from clnet.predict.loading import PairLoader
from clnet.predict.model import BundleModel
from clnet.predict.model_name import weights_digest

CONFIG = "configs/inference.yaml"
METADATA = "configs/metadata.json"
RUN, RUN_WEIGHTS = "run.json", "model.pt"
RUN_NOTICE = "Research model, not for patients"
NOT_COPIED = shutil.ignore_patterns("__pycache__", "*.ts", "*.onnx")


class BundleError(ClnetError):
    """A bundle or a run that is missing or cannot be used."""


def bundle_folder() -> Path:
    """The shipped bundle: inside the installed package, or at the top of the checkout."""
    package = Path(__file__).parent.parent
    installed = package / "bundle"
    return installed if installed.is_dir() else package.parent / "bundle"


def copy_bundle(folder: str | Path) -> None:
    """Copy the shipped bundle, its configs, models and docs, to a new or empty folder."""
    folder = Path(folder)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise BundleError(f"{folder}: not an empty folder; give a new one with --copy")
    shutil.copytree(bundle_folder(), folder, ignore=NOT_COPIED, dirs_exist_ok=True)


def load(source: str | Path | None = None, device: torch.device | str | None = None) -> BundleModel:
    """Load a model.

    Args:
        source: the folder of a bundle, or of a training run; by default the bundle that is shipped.
        device: such as "cpu" or "cuda:1"; by default a GPU, if there is one.
    """
    folder, device = Path(source or bundle_folder()), _device(device or process_device())
    if (folder / RUN).is_file():
        parser, notice = _run_config(folder), RUN_NOTICE
        version = folder.absolute().name
    else:
        metadata = _metadata(folder)
        parser, notice = bundle_config(folder), metadata.get("intended_use", "").partition(".")[0][:64]
        version = metadata["version"]
    parser["device"] = f"$torch.device('{device}')"
    weights = Path(parser.get_parsed_content("weights"))
    if not weights.is_file():
        raise BundleError(f"{weights}: no weights; train a model and put its model.pt there")
    digest = weights_digest(weights)
    preprocessing = parser.get_parsed_content("preprocessing")
    return BundleModel(
        name=f"{parser.get_parsed_content('variant')} {version} {digest}",
        version=f"{version} {digest}",
        notice=notice,
        device=device,
        network=parser.get_parsed_content("network").eval(),
        inferer=parser.get_parsed_content("inferer"),
        loader=PairLoader(preprocessing.transforms[0].apply_voi, preprocessing),
        postprocessing=parser.get_parsed_content("postprocessing"),
    )


def config_files(folder: Path, *workflows: str) -> list[str]:
    """The files of a bundle's config, in order: ``train``, ``model`` where there is one, and `workflows`.

    ``configs/model.yaml`` is for weights of another network than that of ``train.yaml``: the file of a
    variant, such as ``paper.yaml``, under that name.
    """
    files = [folder / "configs" / f"{name}.yaml" for name in ("train", "model", *workflows)]
    return [str(file) for file in files if file.name != "model.yaml" or file.is_file()]


def bundle_config(folder: Path) -> ConfigParser:
    """The config of a bundle's inference."""
    inference = ConfigParser.load_config_file(folder / CONFIG)
    if (folder / "configs" / "model.yaml").is_file():
        parser = _inference_after(ConfigParser.load_config_files(config_files(folder)), inference)
    else:
        parser = ConfigParser(inference)
    parser["bundle_root"] = str(folder)
    return parser


def _run_config(folder: Path) -> ConfigParser:
    """The config of a run's training, as its record has it, with what the shipped bundle's inference adds."""
    record = json.loads((folder / RUN).read_text(encoding="utf-8"))
    config = record.get("config")
    if not isinstance(config, Mapping) or not config:
        raise BundleError(f"{folder / RUN}: no config; give the folder of a training run")
    inference = ConfigParser.load_config_file(bundle_folder() / CONFIG)
    parser = _inference_after(config, inference)
    parser["weights"] = str(folder / RUN_WEIGHTS)
    parser["backbone_weights"] = None  # the weights of the run include them; the file may be gone
    parser["amp"] = inference["amp"]  # a training may be less exact than what evaluate.yaml measures
    return parser


def _inference_after(training: Mapping[str, Any], inference: Mapping[str, Any]) -> ConfigParser:
    """The config of inference with network and preprocessing of a training."""
    parser = ConfigParser({**inference, **training, "network": inference["network"]})
    parser["preprocessing#transforms"] = [*parser["preprocessing#transforms"], "@finish"]
    return parser


def _metadata(folder: Path) -> dict[str, Any]:
    for name in (CONFIG, METADATA):
        if not (folder / name).is_file():
            raise BundleError(
                f"{folder}: neither a bundle ({name} is missing) nor a training run ({RUN} is missing)"
            )
    return json.loads((folder / METADATA).read_text(encoding="utf-8"))


def _device(name: torch.device | str) -> torch.device:
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise BundleError(f"device is {name}, which cannot be used here ({reason}); try cpu") from error
    return device
