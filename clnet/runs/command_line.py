"""What a `python -m monai.bundle run …` command line asks for: the config files, with its overrides."""

import difflib
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any

from fire.parser import DefaultParseValue
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
    """A word on the command line that no config knows, or that means something else than it seems to."""


def run_config(words: Sequence[str] | None = None) -> dict[str, Any]:
    """The config of this process's command line, expressions unevaluated; empty if there is none."""
    given = dict(_options(sys.argv[1:] if words is None else words))
    if "config_file" not in given:
        return {}
    parser = ConfigParser(ConfigParser.load_config_files(DefaultParseValue(given["config_file"])))
    for key, value in given.items():
        if key not in RUN_WORDS:
            parser[key] = DefaultParseValue(value)
    return dict(parser.get())


def check_command_line(words: Sequence[str] | None = None) -> None:
    """Refuse an override of something that stands in none of the config files named there, or says "false".

    MONAI takes any word; a misspelt one would silently change nothing. And it reads Python: "false" is a text
    then, which counts as true.
    """
    given = dict(_options(sys.argv[1:] if words is None else words))
    if "config_file" not in given:
        return
    known = ConfigParser.load_config_files(DefaultParseValue(given["config_file"]))
    for key, value in given.items():
        if key not in RUN_WORDS:
            before = _find(key, known)
            if isinstance(before, bool) and value not in ("True", "False") and value[:1] not in ("$", "@"):
                raise ConfigError(f"--{key}: {value!r} is neither True nor False; write one of them")


def _options(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The (name, value) of every --name value, --name=value and --name."""
    for word, following in zip_longest(words, words[1:], fillvalue=""):
        if word.startswith("--"):
            name, equals, value = word[2:].partition("=")
            alone = not following or following.startswith("--")  # a flag, which is then True
            yield name, value if equals else "True" if alone else following


def _find(key: str, known: Any) -> Any:
    """What a key such as network_def#object_queries stands for; None where the config cannot tell."""
    so_far: list[str] = []
    for part in key.lstrip("+").replace("::", "#").split("#"):
        if not isinstance(known, Mapping):
            return None
        if part not in known:
            names = [name for name in known if not name.startswith("_")]
            close = difflib.get_close_matches(part, names, n=1)
            hint = (
                f"did you mean {'#'.join([*so_far, close[0]])}?" if close else f"there are {', '.join(names)}"
            )
            raise ConfigError(f"--{key}: nothing is called {'#'.join([*so_far, part])} in the config; {hint}")
        known = known[part]
        so_far.append(part)
    return known
