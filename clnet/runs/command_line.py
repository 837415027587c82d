"""What a `python -m monai.bundle run …` command line asks for: the config files, with its overrides."""

import difflib
import inspect
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any

from fire.parser import DefaultParseValue
from monai.bundle.config_item import ConfigComponent
from monai.bundle.config_parser import ConfigParser
from monai.utils.module import optional_import

from clnet.errors import ClnetError

# Options of `monai.bundle run` itself.
RUN_OPTIONS = {
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
    """An option on the command line that no config knows, or with a value that means something else."""


def run_config(words: Sequence[str] | None = None) -> dict[str, Any]:
    """The config of this process's command line, expressions unevaluated; empty if there is none."""
    given = parsed_options(sys.argv[1:] if words is None else words)
    if "config_file" not in given:
        return {}
    parser = ConfigParser(ConfigParser.load_config_files(given["config_file"]))
    for key, value in given.items():
        if key not in RUN_OPTIONS:
            parser[key] = value
    return dict(parser.get())


def parsed_options(words: Sequence[str]) -> dict[str, Any]:
    """The value of every option by its name, read as Python as MONAI does."""
    return {name: DefaultParseValue(value) for name, value in _options(words)}


def check_command_line(words: Sequence[str] | None = None) -> None:
    """Refuse an option that is neither in the config files nor an argument of a class named there.

    MONAI takes any option; a misspelt one would silently change nothing. And it reads Python: "false" is a
    text then, which counts as true, so a switch must be True or False.
    """
    given = dict(_options(sys.argv[1:] if words is None else words))
    if "config_file" not in given:
        return
    config = ConfigParser(ConfigParser.load_config_files(DefaultParseValue(given["config_file"])))
    overrides = {key: value for key, value in given.items() if key not in RUN_OPTIONS}
    for key, value in overrides.items():
        if key.endswith("_target_"):  # other options may be arguments of this class
            config[key] = value
    for key, value in overrides.items():
        before = _find(key, config.get())
        if isinstance(before, bool) and value not in ("True", "False") and value[:1] not in ("$", "@"):
            raise ConfigError(f"--{key}: {value!r} is neither True nor False; write one of them")


def _options(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The (name, value) of every --name value, --name=value and --name."""
    for word, following in zip_longest(words, words[1:], fillvalue=""):
        if word.startswith("--"):
            name, equals, value = word[2:].partition("=")
            alone = not following or following.startswith("--")  # a flag, which is then True
            yield name, value if equals else "True" if alone else following


def _find(key: str, config: Any) -> Any:
    """The value that a key such as network_def#width has so far; None where the config cannot tell."""
    found: list[str] = []
    parts = key.lstrip("+").replace("::", "#").split("#")
    for position, part in enumerate(parts, start=1):
        if isinstance(config, (list, tuple)):
            config = {str(index): item for index, item in enumerate(config)}
        if not isinstance(config, Mapping):
            return None
        if part not in config:
            if part in ConfigComponent.non_arg_keys:
                return None
            arguments = _arguments(config)
            if part not in arguments and None not in arguments:
                raise ConfigError(f"--{key}: {_unknown(part, found, [*config, *arguments])}")
            if position < len(parts) and part in arguments:
                raise ConfigError(
                    f"--{key}: the config does not list {'#'.join([*found, part])}, an argument of "
                    f"{config['_target_']}; set it as a whole"
                )
            return arguments.get(part)
        config = config[part]
        found.append(part)
    return config


def _unknown(part: str, found: Sequence[str], names: Sequence[str | None]) -> str:
    """There is no such key, and what may have been meant."""
    known = list(dict.fromkeys(name for name in names if name and not name.startswith("_")))
    close = difflib.get_close_matches(part, known, n=1)
    hint = f"did you mean {'#'.join([*found, close[0]])}?" if close else f"there are {', '.join(known)}"
    return f"nothing is called {'#'.join([*found, part])} in the config; {hint}"


def _arguments(config: Mapping[str, Any]) -> dict[str | None, Any]:
    """The arguments of the class or function that a config names, with their defaults.

    None is among the names if it takes any keyword, or if its signature cannot be had.
    """
    if not ConfigComponent.is_instantiable(config):
        return {}
    module, _, name = str(ConfigComponent(config).resolve_module_name()).rpartition(".")  # type: ignore[no-untyped-call]
    target, exists = optional_import(module, name=name)
    if not exists:
        return {None: None}  # MONAI says more about it
    try:
        parameters = inspect.signature(target).parameters.values()
    except ValueError:  # written in C
        return {None: None}
    names: dict[str | None, Any] = {}
    for parameter in parameters:
        any_keyword = parameter.kind is inspect.Parameter.VAR_KEYWORD
        names[None if any_keyword else parameter.name] = parameter.default
    return names
