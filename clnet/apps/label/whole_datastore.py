"""MONAI Label's datastore in a folder, such that a kill at any time loses nothing that was saved.

MONAI Label overwrites its list and the labels in place, one file at a time, and locks each write alone. Here
each file is whole or not there, and whoever reads or changes labels holds one lock, across threads and
processes. Labels that belong together are first written to one file, `PENDING`: from then on they are saved.
Whoever holds the lock next stores them with their images, even if the process that saved them was killed.
"""

import json
import logging
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from filelock import FileLock
from monailabel.datastore.local import DataModel, LocalDatastore, LocalDatastoreModel

from clnet.files import UNFINISHED, remove_file, remove_unfinished_files, set_aside, write_text

LABELS = "labels"
PENDING = "pending.json"

logger = logging.getLogger(__name__)


class WholeDatastore(LocalDatastore):
    """A folder of images with labels in JSON.

    Args:
        folder: of the images.
        patterns: of the file names that are images, such as ``*.dcm``.
    """

    _config_ts: object  # of MONAI Label: tells whether the list has changed since it was read

    def __init__(self, folder: Path, patterns: list[str]) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._lock = threading.RLock()
        self._process_lock = FileLock(folder / ".lock")
        # MONAI Label's watcher changes the list while others read it; here it is refreshed on request.
        super().__init__(str(folder), labels_dir=LABELS, extensions=patterns, auto_reload=False)
        with self.locked():
            for file in folder.glob(f"{self._list.name}.*{UNFINISHED}"):
                remove_file(file)
            for labels in (folder / LABELS, *filter(Path.is_dir, (folder / LABELS).rglob("*"))):
                remove_unfinished_files(labels)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Around what reads or changes labels: one thread of one process, after what the others wrote."""
        with self._lock, self._process_lock:
            self._init_from_datastore_file()
            self._store_pending()
            yield

    def refresh(self) -> None:
        """Look for new and removed files."""
        with self.locked():
            super().refresh()

    def save_labels(self, labels: Mapping[str, Any], tag: str, info: Mapping[str, Any]) -> None:
        """Save the labels of some images together.

        Args:
            labels: image id → its label; None removes it.
            tag: of the labels.
            info: stored with them.
        """
        with self.locked():
            pending = {"labels": dict(labels), "tag": tag, "info": dict(info)}
            write_text(self._pending, json.dumps(pending) + "\n")
            self._store_pending()

    def label_file(self, image_id: str, tag: str) -> Path:
        """Where the label of an image is stored."""
        return self.folder / LABELS / tag / f"{image_id}.json"

    @property
    def _list(self) -> Path:
        return Path(self._datastore_config_path)

    @property
    def _pending(self) -> Path:
        return self.folder / LABELS / PENDING

    def _store_pending(self) -> None:
        """Store labels that are saved, each with its image."""
        if not self._pending.exists():
            return
        try:
            pending = json.loads(self._pending.read_text(encoding="utf-8"))
            labels, tag, info = pending["labels"].items(), pending["tag"], pending["info"]
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            self.set_aside(self._pending)
            return
        for image_id, label in labels:
            file, item = self.label_file(image_id, tag), self._datastore.objects.get(image_id)
            if label is None:
                remove_file(file)
            else:
                write_text(file, json.dumps(label) + "\n")
            if item is not None:  # else the image was removed, or the list is being rebuilt
                item.labels.pop(tag, None)
                if label is not None:
                    about = {**info, "ts": int(time.time()), "name": file.name}
                    item.labels[tag] = DataModel(info=about, ext=file.suffix)
        self._update_datastore_file()
        remove_file(self._pending)

    def set_aside(self, file: Path) -> None:
        """Rename a damaged file, and say so."""
        logger.error("%s is damaged; it is set aside as %s", file.name, set_aside(file).name)

    # MONAI Label's own methods call these two to read and to write its list.

    def _init_from_datastore_file(self, throw_exception: bool = False) -> None:
        """Read the list if another process has written it; a damaged one is set aside and made anew."""
        with self._lock, self._process_lock:
            if not self._list.exists() or self._config_ts == _version(self._list):
                return
            try:
                datastore = LocalDatastoreModel.model_validate_json(self._list.read_bytes())
            except ValueError:
                self.set_aside(self._list)
                return
            datastore.base_path = self._datastore_path
            self._datastore, self._config_ts = datastore, _version(self._list)

    def _update_datastore_file(self, lock: bool = True) -> None:
        with self._lock, self._process_lock:
            content = self._datastore.model_dump(exclude={"base_path"})
            write_text(self._list, json.dumps(content, indent=2, default=str))
            self._config_ts = _version(self._list)


def _version(file: Path) -> tuple[int, int]:
    state = file.stat()
    return state.st_mtime_ns, state.st_ino
