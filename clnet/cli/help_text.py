"""How `clnet … --help` shows defaults."""

import argparse


class DefaultsFormatter(argparse.ArgumentDefaultsHelpFormatter):
    """Adds a default to the help of its option, unless there is none or the help names it."""

    def _get_help_string(self, action: argparse.Action) -> str | None:
        is_unset = action.default is None or action.default is False  # 0 is a default like any other
        if is_unset or "default" in (action.help or ""):
            return action.help
        if isinstance(action.default, tuple):  # as it is typed
            return f"{action.help} (default: {' '.join(map(str, action.default))})"
        return super()._get_help_string(action)
