"""Plain words for what goes wrong in a bundle run.

`python -m monai.bundle run` wraps an error into several of the config parser's own. What the user can mend is
one of ours at the bottom; these functions see to it that this is what is printed.
"""

import difflib
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import yaml

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


def say_errors_plainly() -> None:
    """Print errors that the user can mend as one sentence, from here to the end of the process."""
    sys.excepthook = _print_plainly
    check_command_line(sys.argv[1:])


def check_command_line(words: Sequence[str]) -> None:
    """Refuse an override of something that stands in none of the config files named there.

    MONAI takes any word; a misspelt one would silently change nothing.
    """
    given = dict(_options(words))
    if "args_file" in given or "config_file" not in given:
        return
    known: dict[str, Any] = {}
    for file in given["config_file"].strip("[]").replace("'", "").replace('"', "").split(","):
        known |= yaml.safe_load(Path(file.strip()).read_text(encoding="utf-8"))
    for key in given:
        if key not in RUN_WORDS:
            _check_key(key, known)


def _options(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The (name, value) of every --name value and --name=value."""
    for word, following in zip(words, [*words[1:], ""], strict=True):
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


def _print_plainly(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    ours = _ours(error)
    if ours is None:
        sys.__excepthook__(kind, error, trace)
    else:
        sys.stderr.write(f"clnet: {ours}\n")


def _ours(error: BaseException | None) -> ClnetError | None:
    """The innermost of our own errors among the causes of an error."""
    found = None
    while error is not None:
        if isinstance(error, ClnetError):
            found = error
        error = error.__cause__ or error.__context__
    return found
