"""How `clnet … --help` tells defaults."""

import argparse


class DefaultsFormatter(argparse.ArgumentDefaultsHelpFormatter):
    """Adds a default to its option's help, unless there is none or the help tells it itself."""

    def _get_help_string(self, action: argparse.Action) -> str | None:
        is_unset = action.default is None or action.default is False  # 0 is a default like any other
        if is_unset or "default" in (action.help or ""):
            return action.help
        return super()._get_help_string(action)
