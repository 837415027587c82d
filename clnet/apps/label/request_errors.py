"""Errors of a request, each with its HTTP status."""

from clnet.errors import ClnetError


class RequestError(ClnetError):
    """An invalid request; the message says what is wrong and what is expected."""

    status = 422


class NotFoundError(RequestError):
    """A request for something that does not exist."""

    status = 404
