"""Puts bundle/, which lies at the top of the repository, into the wheel as clnet/bundle/."""

from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

BUNDLE = Path("bundle")
EXPORTS = (".ts", ".onnx")  # made from the model by those who need them


class BuildWithBundle(build_py):
    """Adds the files of the bundle to the data files of the package."""

    def _get_data_files(self) -> list[tuple[str, str, str, list[str]]]:
        files = [file for file in sorted(BUNDLE.rglob("*")) if file.is_file() and file.suffix not in EXPORTS]
        inside = str(Path(self.build_lib, "clnet", "bundle"))
        names = [str(file.relative_to(BUNDLE)) for file in files]
        return [*super()._get_data_files(), ("clnet", str(BUNDLE), inside, names)]


setup(cmdclass={"build_py": BuildWithBundle})
