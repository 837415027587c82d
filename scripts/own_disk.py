"""A disk of our own, which can be full: a tmpfs, mounted within `unshare --map-root-user --mount`."""

import subprocess
from pathlib import Path


class OwnDisk:
    """A small disk.

    Args:
        folder: where it is mounted; made if it is not there.
        megabytes: its size.
    """

    def __init__(self, folder: Path, megabytes: int) -> None:
        self.folder, self._ballast = folder, folder / "ballast"
        folder.mkdir(parents=True, exist_ok=True)
        options = f"size={megabytes}m,mode=700"
        subprocess.run(["/bin/mount", "-t", "tmpfs", "-o", options, "clnet", folder], check=True)

    def fill(self) -> None:
        """Leave no byte free."""
        with self._ballast.open("ab", buffering=0) as file:
            for size in (2**20, 2**12, 1):
                try:
                    while file.write(b"\0" * size):
                        pass
                except OSError:  # a smaller piece may still fit
                    continue

    def empty(self) -> None:
        """Give back what `fill` took."""
        self._ballast.unlink(missing_ok=True)

    def close(self) -> None:
        """Unmount it, and lose what is on it."""
        subprocess.run(["/bin/umount", "--lazy", self.folder], check=True)
