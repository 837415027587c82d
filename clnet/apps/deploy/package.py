"""Prepare the container image of the app: ``python -m clnet.apps.deploy.package FOLDER``.

The folder receives

==============  ===========================================================================
app/            the app's `__main__.py` and requirements.txt, and the clnet package
models/clnet/   the bundle
app.yaml        the configuration
artifacts.json  the base image, so that the packager starts without a download
context/        what `holoscan package` passes to Docker: Dockerfile, map/app.json, map/pkg.json, …
==============  ===========================================================================

Then `holoscan package` builds the image, if there is a Docker engine.
"""

import argparse
import os
import shlex
import shutil
import subprocess
import sys
from importlib.metadata import metadata
from pathlib import Path

from holoscan_cli.__main__ import main as holoscan
from holoscan_cli.__main__ import parse_args
from holoscan_cli.packager.arguments import PackagingArguments
from holoscan_cli.packager.container_builder import PythonAppBuilder
from holoscan_cli.packager.packager import _create_app_manifest, _create_package_manifest
from holoscan_cli.packager.parameters import PlatformBuildResults, PlatformParameters

import clnet
from clnet.errors import ClnetError
from clnet.files import write_text
from clnet.predict.bundle import load
from clnet.predict.shipped import NOT_COPIED, bundle_folder

HERE = Path(__file__).parent
CONFIG, ARTIFACTS = "app.yaml", "artifacts.json"
TAG = f"clnet:{clnet.__version__}"
USER = "--build-arg UNAME=holoscan --build-arg UID=1000 --build-arg GID=1000"
BUILD = f"docker buildx build --load {USER} --tag {TAG} ."


class PackageError(ClnetError):
    """A folder that may not be replaced."""


class ContextBuilder(PythonAppBuilder):
    """The packager's builder without its last step, the only one that needs Docker."""

    def _build_internal(
        self, dockerfile: str, platform_parameters: PlatformParameters
    ) -> PlatformBuildResults:
        return PlatformBuildResults(platform_parameters)


def prepare(folder: Path, config: Path = HERE / CONFIG, bundle: Path | None = None) -> list[str]:
    """Fill the folder; returns the arguments with which `holoscan` builds the image.

    What an earlier call made there is replaced; a folder with anything else is left alone.
    """
    if folder.exists() and any(folder.iterdir()) and not (folder / ARTIFACTS).is_file():
        raise PackageError(
            f"{folder}: has files, but no {ARTIFACTS} of an earlier package. Give a new folder."
        )
    bundle = bundle or bundle_folder()
    load(bundle)  # raises an error if something is missing
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    shutil.copy(HERE / ARTIFACTS, folder)  # first: it tells that the folder may be replaced
    app = folder / "app"
    shutil.copytree(Path(clnet.__file__).parent, app / "clnet", ignore=NOT_COPIED)
    # The package reads its version from here.
    write_text(app / f"clnet-{clnet.__version__}.dist-info" / "METADATA", str(metadata("clnet")))
    shutil.copytree(bundle, folder / "models" / "clnet", ignore=NOT_COPIED)
    for source, target in (
        (HERE / "__main__.py", app),
        (HERE / "requirements.txt", app),
        (config, folder / CONFIG),
    ):
        shutil.copy(source, target)
    arguments = ["package", "--sdk", "monai-deploy", "--platform", "x86_64", "--tag", TAG]
    arguments += ["--config", str(folder / CONFIG), "--source", str(folder / ARTIFACTS)]
    arguments += ["--models", str(folder / "models"), str(app)]
    write_context(arguments, folder / "context")
    return arguments


def write_context(arguments: list[str], context: Path) -> None:
    """Write what the packager passes to Docker and deletes afterwards."""
    context.mkdir()
    parsed = PackagingArguments(parse_args(["holoscan", *arguments]), str(context))
    _create_app_manifest(parsed.application_manifest, str(context))
    _create_package_manifest(parsed.package_manifest, str(context))
    builder = ContextBuilder(parsed.build_parameters, str(context))
    for platform in parsed.platforms:
        builder.build(platform)


def missing_for_docker() -> str | None:
    """What is missing to build an image here; None if nothing is."""
    if shutil.which("docker") is None:
        return "the command docker; install Docker Engine"
    for command, missing in (
        (["docker", "info"], "a Docker engine that this user can reach; start it, or join the group docker"),
        (["docker", "buildx", "version"], "Docker's plugin buildx; install docker-buildx-plugin"),
    ):
        if subprocess.run(command, capture_output=True, check=False).returncode:  # noqa: S603
            return missing
    return None


def main(folder: Path) -> int:
    """Prepare the image, and build it if possible."""
    config = Path(os.environ.get("HOLOSCAN_CONFIG_PATH") or HERE / CONFIG)
    bundle = Path(os.environ.get("HOLOSCAN_MODEL_PATH") or bundle_folder())
    try:
        arguments = prepare(folder.absolute(), config, bundle)
    except ClnetError as error:
        sys.stderr.write(f"clnet deploy: {error}\n")
        return 2
    sys.stdout.write(f"prepared  {folder}\n")
    missing = missing_for_docker()
    if missing is None:
        holoscan(["holoscan", *arguments])
        return 0
    command = shlex.join([str(Path(sys.executable).parent / "holoscan"), *arguments])
    sys.stdout.write(
        f"No image was built. Missing: {missing}.\nThen run this command again, or\n\n  {command}\n\n"
        f"or, on a machine that only has Docker, copy {folder / 'context'} there and run in it\n\n  {BUILD}\n"
    )
    return 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser("clnet.apps.deploy.package", description=main.__doc__)
    parser.add_argument("folder", type=Path, help="a new folder, or one that this command made")
    sys.exit(main(parser.parse_args().folder))
