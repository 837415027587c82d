"""Who may send requests to the server, before any log-in.

Any page that a browser shows can make it send requests here, and a site can give its own name the address of
this machine (DNS rebinding); any user of this machine can send them too. So a request must name a known host,
must not come from the page of another site, and must bring the token that the server printed when it started.
The page keeps that token itself and sends it with each request; no cookie adds it to requests of others.
"""

import ipaddress
import os
import re
import secrets
from urllib.parse import urlsplit

from fastapi import Request
from monailabel.config import settings

from clnet.errors import ClnetError

TOKEN = "CLNET_LABEL_TOKEN"  # noqa: S105  the name of the variable
ORIGIN = re.compile(r"https?://[A-Za-z0-9.\-\[\]:]+")
LONGEST_BODY = 1_000_000  # bytes of a request to our own routes
HEADERS = {
    # MONAI Label's own pages need the unsafe ones; none may load anything from elsewhere, or be framed.
    "Content-Security-Policy": "default-src 'self' 'unsafe-inline' 'unsafe-eval' blob: data:; "
    "object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    "X-Frame-Options": "DENY",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}


class AccessError(ClnetError):
    """An invalid setting."""


class Access:
    """The rules of one server.

    Args:
        origins: of other sites whose pages may send requests, separated by commas.
        hosts: names of this machine, separated by commas. "localhost" and addresses need not be listed, as
            no DNS server can give them another meaning.
    """

    def __init__(self, origins: str, hosts: str) -> None:
        self.origins = _items(origins)
        self.hosts = {"localhost", *(host.lower() for host in _items(hosts))}
        self.token = token()
        for origin in self.origins:
            if not ORIGIN.fullmatch(origin):
                raise AccessError(f"origins has {origin!r}; expected such as https://viewer.example:8443")

    def reason_to_refuse(self, request: Request) -> tuple[int, str] | None:
        """Status and message if the request must be refused."""
        host, origin = request.headers.get("host", ""), request.headers.get("origin")
        if not self._is_known(host):
            return 421, "this server is not known by that name; --conf hosts lists its names"
        if origin is not None and origin not in (f"http://{host}", f"https://{host}", *self.origins):
            return 403, "pages of other sites may not send requests; --conf origins lists exceptions"
        if not (is_page(request) or request.method == "OPTIONS" or self._has_token(request)):
            return 401, "open the address that the server printed when it started, or send its token"
        return None

    def _is_known(self, host: str) -> bool:
        try:
            name = (urlsplit(f"//{host}").hostname or "").lower()
            return name in self.hosts or bool(ipaddress.ip_address(name))
        except ValueError:
            return False

    def _has_token(self, request: Request) -> bool:
        sent = request.headers.get("authorization", "").removeprefix("Bearer ")
        return not self.token or secrets.compare_digest(sent.encode(), self.token.encode())


def token() -> str:
    """The token that a request must bring; "" for none.

    A log-in takes its place, and whoever starts the server may choose it, or set it to "". If `__main__`,
    which prints it, has not set it, nobody knows it.
    """
    return "" if settings.MONAI_LABEL_AUTH_ENABLE else os.environ.get(TOKEN, secrets.token_urlsafe())


def is_page(request: Request) -> bool:
    """Whether a request asks for a file of the annotation page, which shows no data by itself."""
    path = request.scope["path"]
    return request.method in ("GET", "HEAD") and path.startswith("/clnet/") and "/pairs" not in path


def reason_to_refuse_body(request: Request) -> tuple[int, str] | None:
    """Status and message if the request brings more than our own routes take."""
    if not request.scope["path"].startswith("/clnet/") or request.method in ("GET", "HEAD"):
        return None
    length = request.headers.get("content-length", "0")
    if "transfer-encoding" in request.headers or not length.isdecimal():
        return 411, "the request does not say its Content-Length"
    if len(length) > 9 or int(length) > LONGEST_BODY:
        return 413, f"the request has {length[:20]} bytes; at most {LONGEST_BODY} are accepted"
    return None


def _items(words: str) -> list[str]:
    return [word.strip() for word in words.split(",") if word.strip()]
