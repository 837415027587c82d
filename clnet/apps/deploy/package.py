"""Everything that an image of the app is built from: ``python -m clnet.apps.deploy.package FOLDER``.

The folder gets

==============  ===========================================================================
app/            the app's `__main__.py` and requirements.txt, and the clnet package
models/clnet/   the bundle
app.yaml        the configuration
artifacts.json  the base image, so that the packager needs no download to start
context/        what `holoscan package` would hand to Docker: Dockerfile, map/app.json, map/pkg.json, …
==============  ===========================================================================

Then `holoscan package` builds the image, where there is a Docker engine.
"""

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
from clnet.predict.bundle import bundle_folder, load

HERE = Path(__file__).parent
CONFIG, ARTIFACTS = "app.yaml", "artifacts.json"
TAG = f"clnet:{clnet.__version__}"
USER = "--build-arg UNAME=holoscan --build-arg UID=1000 --build-arg GID=1000"
BUILD = f"docker buildx build --load {USER} --tag {TAG} ."


class ContextBuilder(PythonAppBuilder):
    """The packager's builder, but for the last step: it needs no Docker."""

    def _build_internal(
        self, dockerfile: str, platform_parameters: PlatformParameters
    ) -> PlatformBuildResults:
        return PlatformBuildResults(platform_parameters)


def prepare(folder: Path, config: Path = HERE / CONFIG, bundle: Path | None = None) -> list[str]:
    """Fill the folder; the arguments that `holoscan` builds the image with."""
    bundle = bundle or bundle_folder()
    load(bundle)  # raises an error that says what is missing
    shutil.rmtree(folder, ignore_errors=True)
    ignore = shutil.ignore_patterns("__pycache__", "*.ts", "*.onnx")
    app = folder / "app"
    shutil.copytree(Path(clnet.__file__).parent, app / "clnet", ignore=ignore)
    installed = app / f"clnet-{clnet.__version__}.dist-info"  # where the package reads its version
    installed.mkdir()
    (installed / "METADATA").write_text(str(metadata("clnet")), encoding="utf-8")
    shutil.copytree(bundle, folder / "models" / "clnet", ignore=ignore)
    for source, target in (
        (HERE / "__main__.py", app),
        (HERE / "requirements.txt", app),
        (HERE / ARTIFACTS, folder),
        (config, folder / CONFIG),
    ):
        shutil.copy(source, target)
    words = ["package", "--sdk", "monai-deploy", "--platform", "x86_64", "--tag", TAG]
    words += ["--config", str(folder / CONFIG), "--source", str(folder / ARTIFACTS)]
    words += ["--models", str(folder / "models"), str(app)]
    write_context(words, folder / "context")
    return words


def write_context(words: list[str], context: Path) -> None:
    """What the packager makes of these arguments and usually deletes."""
    context.mkdir()
    arguments = PackagingArguments(parse_args(["holoscan", *words]), str(context))
    _create_app_manifest(arguments.application_manifest, str(context))
    _create_package_manifest(arguments.package_manifest, str(context))
    builder = ContextBuilder(arguments.build_parameters, str(context))
    for platform in arguments.platforms:
        builder.build(platform)


def what_docker_lacks() -> str | None:
    """Why no image can be built here; None if it can."""
    if shutil.which("docker") is None:
        return "the command docker; install Docker Engine"
    for words, lack in (
        (["docker", "info"], "a Docker engine that this user can reach; start it, or join the group docker"),
        (["docker", "buildx", "version"], "Docker's plugin buildx; install docker-buildx-plugin"),
    ):
        if subprocess.run(words, capture_output=True, check=False).returncode:  # noqa: S603
            return lack
    return None


def main(folder: Path) -> int:
    """Prepare, and build where that is possible."""
    config = Path(os.environ.get("HOLOSCAN_CONFIG_PATH") or HERE / CONFIG)
    bundle = Path(os.environ.get("HOLOSCAN_MODEL_PATH") or bundle_folder())
    try:
        words = prepare(folder.absolute(), config, bundle)
    except ClnetError as error:
        sys.stderr.write(f"clnet deploy: {error}\n")
        return 2
    sys.stdout.write(f"prepared  {folder}\n")
    lack = what_docker_lacks()
    if lack is None:
        holoscan(["holoscan", *words])
        return 0
    command = shlex.join([str(Path(sys.executable).parent / "holoscan"), *words])
    sys.stdout.write(
        f"No image was built. Missing: {lack}.\nThen run this command again, or\n\n  {command}\n\n"
        f"or, on a machine with Docker alone, copy {folder / 'context'} there and, in it,\n\n  {BUILD}\n"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
