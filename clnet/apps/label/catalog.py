"""The pairs of the datastore: which there are now, their files, and which have no label yet."""

import threading
import time

from clnet.apps.label.datastore import StudyFolder
from clnet.apps.label.labels import label_of
from clnet.apps.label.pairs import ImagePair, ImagePairs, find_image_pairs


class PairCatalog:
    """Looks for pairs when asked, at most once every `datastore.refresh_seconds`.

    Args:
        datastore: the images and their labels.
        secondary_capture: see `find_image_pairs`.
    """

    def __init__(self, datastore: StudyFolder, secondary_capture: bool) -> None:
        self.datastore = datastore
        self.secondary_capture = secondary_capture
        self._found: tuple[float, ImagePairs] | None = None
        self._lock = threading.Lock()

    def pairs(self, fresh: bool = False) -> ImagePairs:
        """All pairs.

        Args:
            fresh: search again, even if the last search was a moment ago.
        """
        with self._lock:
            now = time.monotonic()
            if fresh or self._found is None or now - self._found[0] > self.datastore.refresh_seconds:
                self._found = now, find_image_pairs(self.datastore, self.secondary_capture)
            return self._found[1]

    def unlabelled(self) -> list[ImagePair]:
        """The pairs without a label."""
        return [pair for pair in self.pairs() if label_of(self.datastore, pair) is None]

    def fetched(self, pair: ImagePair) -> ImagePair:
        """The same pair, once its files are on this machine."""
        for image in pair.images.values():
            self.datastore.file_of(image)
        return pair
