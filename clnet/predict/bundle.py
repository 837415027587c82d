"""A MONAI bundle as a function: from pairs of image files to findings.

Network, preprocessing, inferer and post-processing are those of the bundle's own configs, so that what a
prediction does is what the evaluation measured. `clnet predict` and the apps share this.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from monai.bundle.config_parser import ConfigParser
from torch import nn

from clnet.data.reader import Mammogram
from clnet.errors import ClnetError
from clnet.findings.types import PairFindings
from clnet.predict.model_name import weights_digest
from clnet.preprocessing.batch import Batch, prepare_batch

CONFIGS = ("configs/train.yaml", "configs/inference.yaml")
METADATA = "configs/metadata.json"
CHECKOUT = Path(__file__).parent.parent.parent / "bundle"


class BundleError(ClnetError):
    """A bundle that is not there or cannot be used."""


@dataclass(frozen=True)
class PairLoader:
    """From files to the sample that is collated; apart from the network, so that workers need not hold it.

    Attributes:
        steps: from `Pair.to_item()` to tensors, in order; the first reads the images.
        finish: makes the sample.
    """

    steps: tuple[Callable[[Any], Any], ...]
    finish: Callable[[Any], Any]

    def __call__(self, item: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Mammogram]]:
        """The sample of a pair, and its views as they were read."""
        images: dict[str, Mammogram] = {}
        for step in self.steps:
            item = step(item)
            images |= {name: value for name, value in item.items() if isinstance(value, Mammogram)}
        return self.finish(item), images


@dataclass(frozen=True)
class BundleModel:
    """What a bundle does to pairs.

    Attributes:
        name: model, version and a digest of the weights: another network has another name.
        version: of the bundle.
        notice: what the bundle says about its use, in one sentence of at most 64 letters.
        device: where the network is.
        network, inferer: make raw outputs of a batch.
        load: makes the sample of a pair.
        postprocessing: makes findings of raw outputs.
    """

    name: str
    version: str
    notice: str
    device: torch.device
    network: nn.Module
    inferer: Callable[..., Any]
    load: PairLoader
    postprocessing: Callable[[Any], Any]

    @torch.inference_mode()
    def find(self, batch: Batch) -> list[PairFindings]:
        """The findings of each pair of a collated batch."""
        inputs, _, positional, named = prepare_batch(batch, self.device)
        outputs = self.inferer(inputs, self.network, *positional, **named)
        return self.postprocessing({**batch, "pred": outputs})["findings"]


def config_files(folder: Path, last: str) -> list[str]:
    """The files that make a bundle's config, in order: ``train``, ``model`` where there is one, and `last`.

    ``configs/model.yaml`` is for weights that are not of the network of ``train.yaml``: a variant's file,
    such as ``paper.yaml``, under that name.
    """
    files = [folder / "configs" / f"{name}.yaml" for name in ("train", "model", last)]
    return [str(file) for file in files if file.name != "model.yaml" or file.is_file()]


def open_bundle(folder: str | Path | None = None, device: torch.device | str = "cpu") -> BundleModel:
    """Read a bundle and put its network on a device.

    Args:
        folder: the bundle; by default that of the checkout this package is installed from.
        device: such as "cpu" or "cuda:1".
    """
    folder, device = Path(folder or CHECKOUT), _device(device)
    for name in (*CONFIGS, METADATA):
        if not (folder / name).is_file():
            raise BundleError(
                f"{folder}: no bundle, {name} is missing; name with --bundle a folder that holds configs/ "
                "and models/ (a checkout of clnet has one, bundle/)"
            )
    metadata = json.loads((folder / METADATA).read_text(encoding="utf-8"))
    parser = ConfigParser(ConfigParser.load_config_files(config_files(folder, "inference")))
    parser["bundle_root"] = str(folder)
    parser["device"] = f"$torch.device('{device}')"
    weights = Path(parser.get_parsed_content("weights"))
    if not weights.is_file():
        raise BundleError(f"{weights}: no weights; train a model and put its model.pt there")
    digest = weights_digest(weights)
    preprocessing = parser.get_parsed_content("preprocessing")
    return BundleModel(
        name=f"{parser.get_parsed_content('variant')} {metadata['version']} {digest}",
        version=f"{metadata['version']} {digest}",
        notice=metadata.get("intended_use", "").partition(".")[0][:64],
        device=device,
        network=parser.get_parsed_content("network").eval(),
        inferer=parser.get_parsed_content("inferer"),
        load=PairLoader(tuple(preprocessing.transforms), parser.get_parsed_content("finish")),
        postprocessing=parser.get_parsed_content("postprocessing"),
    )


def _device(name: torch.device | str) -> torch.device:
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise BundleError(f"device is {name}, which cannot be used here ({reason}); try cpu") from error
    return device
