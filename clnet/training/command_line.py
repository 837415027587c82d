"""What a `python -m monai.bundle run …` command line asks for: the config files, with its overrides."""

import difflib
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any

import yaml
from monai.bundle.config_parser import ConfigParser

from clnet.errors import ClnetError

# Words that `monai.bundle run` takes for itself.
RUN_WORDS = {
    "run_id",
    "init_id",
    "final_id",
    "meta_file",
    "config_file",
    "logging_file",
    "tracking",
    "args_file",
}


class ConfigError(ClnetError):
    """A word on the command line that no config knows."""


def run_config(words: Sequence[str] | None = None) -> dict[str, Any]:
    """The config of this process's command line, expressions unevaluated; empty if there is none."""
    given = dict(_options(sys.argv[1:] if words is None else words))
    if "config_file" not in given:
        return {}
    parser = ConfigParser(ConfigParser.load_config_files(yaml.safe_load(given["config_file"])))
    for key, value in given.items():
        if key not in RUN_WORDS:
            parser[key] = yaml.safe_load(value)
    return dict(parser.get())


def check_command_line(words: Sequence[str] | None = None) -> None:
    """Refuse an override of something that stands in none of the config files named there.

    MONAI takes any word; a misspelt one would silently change nothing.
    """
    given = dict(_options(sys.argv[1:] if words is None else words))
    if "config_file" not in given:
        return
    known = ConfigParser.load_config_files(yaml.safe_load(given["config_file"]))
    for key in given:
        if key not in RUN_WORDS:
            _check_key(key, known)


def _options(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The (name, value) of every --name value and --name=value."""
    for word, following in zip_longest(words, words[1:], fillvalue=""):
        if word.startswith("--"):
            name, equals, value = word[2:].partition("=")
            yield name, value if equals else following


def _check_key(key: str, known: Any) -> None:
    """Follow a key such as network#object_queries as far as the config can tell."""
    so_far: list[str] = []
    for part in key.lstrip("+").replace("::", "#").split("#"):
        if not isinstance(known, Mapping):
            return
        if part not in known:
            names = [name for name in known if not name.startswith("_")]
            close = difflib.get_close_matches(part, names, n=1)
            hint = (
                f"did you mean {'#'.join([*so_far, close[0]])}?" if close else f"there are {', '.join(names)}"
            )
            raise ConfigError(f"--{key}: nothing is called {'#'.join([*so_far, part])} in the config; {hint}")
        known = known[part]
        so_far.append(part)
