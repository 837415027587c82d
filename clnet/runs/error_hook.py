"""Readable errors from bundle runs.

`python -m monai.bundle run` wraps an error into several of the config parser's own. What the user can fix is
one of ours at the bottom: that one is printed.
"""

import sys
from types import TracebackType

from clnet.errors import ClnetError
from clnet.files import CANNOT_WRITE, WriteError
from clnet.runs.command_line import check_command_line


def install_error_hook() -> None:
    """Print errors that the user can fix as one sentence, from here to the end of the process."""
    sys.excepthook = _print_plainly
    check_command_line()


def _print_plainly(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    ours = _ours(error)
    if ours is None:
        sys.__excepthook__(kind, error, trace)
    else:
        sys.stderr.write(f"clnet: {ours}\n")
        if isinstance(ours, WriteError):
            sys.exit(CANNOT_WRITE)  # Python itself would end with 1, whatever the error


def _ours(error: BaseException | None) -> ClnetError | None:
    """The innermost of our own errors among the causes of an error."""
    found = None
    while error is not None:
        if isinstance(error, ClnetError):
            found = error
        error = error.__cause__ or error.__context__
    return found
