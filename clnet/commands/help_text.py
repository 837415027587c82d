"""How `clnet … --help` tells defaults."""

import argparse


class DefaultsFormatter(argparse.ArgumentDefaultsHelpFormatter):
    """Adds a default to its option's help, unless there is none or the help tells it itself."""

    def _get_help_string(self, action: argparse.Action) -> str | None:
        if action.default in (None, False) or "default" in (action.help or ""):
            return action.help
        return super()._get_help_string(action)
