"""`clnet …`: the commands beside those of the MONAI bundle."""

import argparse
import io
import os
import sys

from clnet import __version__
from clnet.cli.bundle import add_bundle
from clnet.cli.convert import add_check, add_convert
from clnet.cli.data import add_inspect, add_pairs, add_phantom
from clnet.cli.evaluation import add_compare, add_evaluate, add_report, add_threshold
from clnet.cli.predict import add_predict
from clnet.cli.serve import add_serve
from clnet.errors import ClnetError
from clnet.files import CANNOT_WRITE, WriteError


def main(arguments: list[str] | None = None) -> int:
    """Run a command; errors that the user can fix are printed as one line."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # names of files need not be UTF-8
    options = _parser().parse_args(arguments)
    try:
        status = int(options.run(options) or 0)
        sys.stdout.flush()
        return status
    except BrokenPipeError:  # the reader, such as `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except ClnetError as error:
        print(f"clnet {options.command}: {error}", file=sys.stderr)
        return CANNOT_WRITE if isinstance(error, WriteError) else 2
    except KeyboardInterrupt:
        print(f"clnet {options.command}: stopped", file=sys.stderr)
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="clnet", description="Find masses in the CC and MLO views of a breast, and link the same mass."
    )
    parser.add_argument("--version", action="version", version=f"clnet {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    add_phantom(commands)
    add_pairs(commands)
    add_inspect(commands)
    add_convert(commands)
    add_check(commands)
    add_predict(commands)
    add_serve(commands)
    add_bundle(commands)
    add_evaluate(commands)
    add_report(commands)
    add_compare(commands)
    add_threshold(commands)
    return parser
