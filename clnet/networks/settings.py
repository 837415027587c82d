"""Settings that no network can be built with."""

from clnet.errors import ClnetError
from clnet.networks.feature_levels import NORM_GROUPS


class SettingError(ClnetError):
    """A network cannot be built with these settings."""


def check_sizes(width: int, heads: int, feature_levels: int, decoder_layers: int) -> None:
    """Refuse a width that the norm's groups or the heads do not divide, and no levels or layers at all."""
    if feature_levels < 1 or decoder_layers < 1:
        raise SettingError(
            f"feature_levels and decoder_layers: {feature_levels} and {decoder_layers} must be at least 1"
        )
    if width < 1 or width % NORM_GROUPS or width % heads:
        raise SettingError(
            f"width: {width} must be a multiple of {NORM_GROUPS} (groups of the norm) and of heads ({heads})"
        )
