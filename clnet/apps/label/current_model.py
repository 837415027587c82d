"""The current model: a bundle in the app's model folder, whose weights training may replace."""

import shutil
import threading
from pathlib import Path

from clnet.apps.label.pairs import ImagePair
from clnet.apps.label.request_errors import RequestError
from clnet.distributed import process_device
from clnet.files import whole_file
from clnet.findings.types import PairFindings
from clnet.predict.breasts import source_key
from clnet.predict.bundle import METADATA, load
from clnet.predict.loading import LoadedBreast
from clnet.predict.model import BundleModel
from clnet.predict.shipped import BundleError, bundle_folder

WEIGHTS = Path("models/model.pt")
CACHED_PAIRS = 64


class CurrentModel:
    """Opens the bundle on first use, and again whenever its weights have changed.

    Args:
        folder: of the current bundle.
        bundle: where its configs and its first weights come from; the shipped bundle by default.
    """

    def __init__(self, folder: Path, bundle: Path | None = None) -> None:
        self.folder = folder
        self._opened: tuple[str, BundleModel] | None = None
        self._cache: dict[tuple[str, str], tuple[LoadedBreast, PairFindings]] = {}
        self._lock = threading.Lock()
        copy_bundle(bundle or bundle_folder(), folder)

    @property
    def weights(self) -> Path:
        """The file of the weights."""
        return self.folder / WEIGHTS

    @property
    def key(self) -> str:
        """Changes with the weights."""
        return str(self.weights.stat().st_mtime_ns)

    def find(self, pair: ImagePair) -> tuple[BundleModel, LoadedBreast, PairFindings]:
        """The model's findings in a pair, as in `clnet predict`; raises an error if no view can be read."""
        with self._lock:
            model = self._open()
            key = (model.name, source_key(pair.breast))
            if key not in self._cache:
                ((loaded, findings),) = next(model.analyse([pair.breast], batch_size=1, workers=0))
                if findings is None:
                    raise RequestError("; ".join(loaded.refused.values()))
                if len(self._cache) >= CACHED_PAIRS:
                    self._cache.pop(next(iter(self._cache)))
                self._cache[key] = loaded, findings
            return model, *self._cache[key]

    def replace_weights(self, weights: Path) -> None:
        """Make these the current weights; the old ones stay beside them as previous.pt."""
        replace_file(self.weights.with_name("previous.pt"), self.weights)
        replace_file(self.weights, weights)

    def _open(self) -> BundleModel:
        if self._opened is None or self._opened[0] != self.key:
            self._opened = self.key, load(self.folder, process_device())
        return self._opened[1]


def copy_bundle(bundle: Path, folder: Path) -> None:
    """Copy the configs of a bundle, and its weights unless the folder already has some."""
    if not (bundle / METADATA).is_file():
        raise BundleError(
            f"{bundle}: not a bundle, {METADATA} is missing; --conf bundle FOLDER names another"
        )
    names = [file.relative_to(bundle) for file in (bundle / "configs").iterdir() if file.is_file()]
    if not (folder / WEIGHTS).is_file():
        names.append(WEIGHTS)
    for name in names:
        if not (folder / name).is_file() or (folder / name).read_bytes() != (bundle / name).read_bytes():
            replace_file(folder / name, bundle / name)


def replace_file(file: Path, source: Path) -> None:
    """Copy a file such that readers see either the old or the new content."""
    with whole_file(file) as unfinished:
        shutil.copy(source, unfinished)
