"""Settings that no network can be built with."""

from clnet.errors import ClnetError
from clnet.networks.feature_levels import NORM_GROUPS


class SettingError(ClnetError):
    """A network cannot be built with these settings."""


def check_width(width: int, heads: int) -> None:
    """Refuse a width that group norm or the heads do not divide; sine positions want a multiple of 4."""
    if width < 1 or width % NORM_GROUPS or width % heads:
        raise SettingError(
            f"width: {width} must be a multiple of {NORM_GROUPS} (groups of the norm) and of heads ({heads})"
        )
