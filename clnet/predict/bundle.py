"""Where models come from: the bundle that is shipped, another bundle, or the folder of a training run.

Network, preprocessing, inferer and post-processing are those of the config, so that a prediction does what
the evaluation measured. `clnet.load`, `clnet predict` and the apps share this.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from monai.bundle.config_parser import ConfigParser

from clnet.distributed import process_device
from clnet.predict.loading import PairLoader
from clnet.predict.model import BundleModel
from clnet.predict.model_name import weights_digest
from clnet.predict.shipped import PHANTOM, PHANTOM_NOTICE, BundleError, bundle_folder

CONFIG, PHANTOM_CONFIG = "configs/inference.yaml", "configs/phantom.yaml"
METADATA = "configs/metadata.json"
RUN, RUN_WEIGHTS = "run.json", "model.pt"
RUN_NOTICE = "Research model, not for patients"


def load(source: str | Path | None = None, device: torch.device | str | None = None) -> BundleModel:
    """Load a model.

    Args:
        source: the folder of a bundle, or of a training run; "phantom" for the small model of the phantom;
            by default the shipped model, which was trained on films.
        device: such as "cpu" or "cuda:1"; by default a GPU, if there is one.
    """
    phantom, device = source == PHANTOM, _device(device or process_device())
    folder = bundle_folder() if phantom or source is None else Path(source)
    if (folder / RUN).is_file():
        parser, notice = _run_config(folder), RUN_NOTICE
        version = folder.absolute().name
    else:
        metadata = _metadata(folder)
        parser = _phantom_config(folder) if phantom else bundle_config(folder)
        notice = PHANTOM_NOTICE if phantom else metadata.get("intended_use", "").partition(".")[0][:64]
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
        min_score=parser.get_parsed_content("min_score"),
        min_consistency=parser.get_parsed_content("min_consistency"),
    )


def config_files(folder: Path, *workflows: str) -> list[str]:
    """The files of a bundle's config, in order: ``train``, what is on top of it, and `workflows`.

    ``trained_by`` in ``inference.yaml`` lists the configs that the weights were trained by on top of
    ``train.yaml``, such as ``[film]`` or ``[clnet, paper]``.
    """
    trained_by = ConfigParser.load_config_file(folder / CONFIG).get("trained_by") or []
    if not isinstance(trained_by, list):
        raise BundleError(f"{folder / CONFIG}: trained_by is {trained_by!r}, expected a list such as [film]")
    names = ("train", *trained_by, *workflows)
    return [str(folder / "configs" / f"{name}.yaml") for name in names]


def bundle_config(folder: Path) -> ConfigParser:
    """The config of a bundle's inference."""
    files = config_files(folder)
    missing = [file for file in files if not Path(file).is_file()]
    if missing:
        raise BundleError(f"{missing[0]}: no such file; trained_by in {folder / CONFIG} must name a config")
    inference = ConfigParser.load_config_file(folder / CONFIG)
    parser = _inference_after(ConfigParser.load_config_files(files), inference)
    parser["bundle_root"] = str(folder)
    return parser


def _phantom_config(folder: Path) -> ConfigParser:
    """The config of a bundle's inference, with the model of the phantom."""
    parser = ConfigParser(
        ConfigParser.load_config_files([str(folder / CONFIG), str(folder / PHANTOM_CONFIG)])
    )
    parser["bundle_root"] = str(folder)
    return parser


def _run_config(folder: Path) -> ConfigParser:
    """The config of a run's training, as its record has it, with what the shipped bundle's inference adds."""
    record = json.loads((folder / RUN).read_text(encoding="utf-8"))
    config = record.get("config")
    if not isinstance(config, Mapping) or not config:
        raise BundleError(f"{folder / RUN}: no config; give the folder of a training run")
    inference = ConfigParser.load_config_file(bundle_folder() / CONFIG)
    # How well views fit together depends on the data: what the shipped model has says nothing of a run's.
    parser = _inference_after({"consistency": None, **config}, inference)
    parser["weights"] = str(folder / RUN_WEIGHTS)
    parser["backbone_weights"] = None  # the weights of the run include them; the file may be gone
    parser["amp"] = inference["amp"]  # a training may be less exact than what evaluate.yaml measures
    return parser


def _inference_after(training: Mapping[str, Any], inference: Mapping[str, Any]) -> ConfigParser:
    """The config of inference with network and preprocessing of a training."""
    own = {key: inference[key] for key in ("network", "amp", "shipped_weights", "weights")}
    # The trained weights include those of the backbone; the file that it began with may be gone.
    parser = ConfigParser({**inference, **training, **own, "backbone_weights": None})
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
