"""How networks refuse settings with which they cannot be built."""

from clnet.errors import ClnetError


class NetworkSettingError(ClnetError):
    """A network cannot be built with these settings; the message names the setting and its value."""


def require(condition: bool, message: str) -> None:
    """Raise `NetworkSettingError` unless the condition holds."""
    if not condition:
        raise NetworkSettingError(message)


def require_heads(width: int, heads: int) -> None:
    """Refuse a width that the heads do not divide."""
    require(heads > 0 and width % heads == 0, f"width: {width} must be a multiple of heads ({heads})")
