"""Which bundle a `python -m monai.bundle …` command line is about."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from fire.parser import DefaultParseValue
from monai.utils.misc import ensure_tuple

from clnet.predict.shipped import bundle_folder


def bundle_root(words: Sequence[str] | None = None) -> str:
    """The folder whose ``configs/`` holds the first config file of the command line.

    Without a config file on the command line, as in a notebook, it is the bundle that is shipped.
    """
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--config_file")
    given = parser.parse_known_args(sys.argv[1:] if words is None else words)[0].config_file
    if given is None:
        return str(bundle_folder())
    first, *_ = ensure_tuple(DefaultParseValue(given))
    return str(Path(first).parent.parent)
