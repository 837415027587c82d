"""The current model: a bundle in the app's model folder, whose weights training may replace."""

import shutil
import threading
from pathlib import Path

from clnet.apps.label.pairs import ImagePair
from clnet.apps.label.refusals import RequestError
from clnet.distributed import process_device
from clnet.files import whole_file
from clnet.findings.types import PairFindings
from clnet.predict.breasts import source_key
from clnet.predict.bundle import METADATA, BundleError, bundle_folder, load
from clnet.predict.loading import BreastDataset, LoadedBreast
from clnet.predict.model import BundleModel

WEIGHTS = Path("models/model.pt")
REMEMBERED = 64  # pairs whose findings are kept
Found = tuple[LoadedBreast, PairFindings]


class CurrentModel:
    """Opens the bundle when it is first needed, and again when its weights have changed.

    Args:
        folder: of the current bundle.
        bundle: whose configs and, to begin with, weights it has; the shipped one by default.
    """

    def __init__(self, folder: Path, bundle: Path | None = None) -> None:
        self.folder = folder
        self._opened: tuple[str, BundleModel] | None = None
        self._found: dict[tuple[str, str], Found] = {}
        self._one_at_a_time = threading.Lock()
        copy_bundle(bundle or bundle_folder(), folder)

    @property
    def weights(self) -> Path:
        """Where the weights are."""
        return self.folder / WEIGHTS

    @property
    def key(self) -> str:
        """Changes with the weights."""
        return str(self.weights.stat().st_mtime_ns)

    def find(self, pair: ImagePair) -> tuple[BundleModel, LoadedBreast, PairFindings]:
        """What the model finds in a pair, as `clnet predict` does; files that cannot be read are refused."""
        with self._one_at_a_time:
            model = self._open()
            key = (model.name, source_key(pair.breast))
            if key not in self._found:
                loaded = BreastDataset([pair.breast], model.loader)[0]
                ((_, findings),) = model.find_in_breasts([loaded])
                if findings is None:
                    raise RequestError("; ".join(loaded.refused.values()))
                if len(self._found) >= REMEMBERED:
                    self._found.pop(next(iter(self._found)))
                self._found[key] = loaded, findings
            return model, *self._found[key]

    def _open(self) -> BundleModel:
        if self._opened is None or self._opened[0] != self.key:
            self._opened = self.key, load(self.folder, process_device())
        return self._opened[1]


def copy_bundle(bundle: Path, folder: Path) -> None:
    """Copy a bundle: its configs as they are now, its weights where there are none yet."""
    if not (bundle / METADATA).is_file():
        raise BundleError(f"{bundle}: no bundle, {METADATA} is missing; --conf bundle FOLDER names another")
    names = [file.relative_to(bundle) for file in (bundle / "configs").iterdir() if file.is_file()]
    if not (folder / WEIGHTS).is_file():
        names.append(WEIGHTS)
    for name in names:
        if not (folder / name).is_file() or (folder / name).read_bytes() != (bundle / name).read_bytes():
            replace_file(folder / name, bundle / name)


def replace_file(file: Path, source: Path) -> None:
    """Copy a file so that whoever reads it finds the old one or the new one."""
    with whole_file(file) as unfinished:
        shutil.copy(source, unfinished)
