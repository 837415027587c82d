"""Requests that cannot be served, each with the HTTP status that tells why."""

from clnet.errors import ClnetError


class RequestError(ClnetError):
    """A request that makes no sense; the message says why and what would."""

    status = 422


class NotThereError(RequestError):
    """A request for something that is not there."""

    status = 404
