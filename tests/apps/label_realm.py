"""A realm as MONAI Label asks one for public keys and tokens; Keycloak is the usual one."""

import json
import threading
import time
from base64 import b64encode, urlsafe_b64encode
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

PASSWORD = "correct horse"  # noqa: S105
ROLES = {
    "anna": ["monailabel-user", "monailabel-annotator"],
    "gast": ["monailabel-user"],
}


@contextmanager
def start_realm():
    """Gives the settings of a MONAI Label server that believes this realm."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)

    class Realm(BaseHTTPRequestHandler):
        def do_GET(self):
            if self.path.endswith("/openid-configuration"):
                self.answer(200, {"token_endpoint": f"{address}/token"})
            else:
                public = key.public_key().public_bytes(
                    serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
                )
                self.answer(200, {"public_key": b64encode(public).decode()})

        def do_POST(self):
            form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
            (name,), (password,) = form["username"], form["password"]
            if name in ROLES and password == PASSWORD:
                self.answer(200, {"access_token": token(key, name), "token_type": "bearer"})
            else:
                self.answer(401, {"error": "invalid_grant"})

        def answer(self, status, content):
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(json.dumps(content).encode())

        def log_message(self, *_):
            """Nobody reads it."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Realm) as server:
        address = f"http://127.0.0.1:{server.server_port}"
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield {"MONAI_LABEL_AUTH_ENABLE": "true", "MONAI_LABEL_AUTH_REALM_URI": address}
        finally:
            server.shutdown()


def token(key, name):
    """A JSON Web Token (RFC 7519) of an hour, signed with RS256."""
    claims = {
        "preferred_username": name,
        "realm_access": {"roles": ROLES[name]},
        "exp": int(time.time()) + 3600,
    }
    parts = [_encoded(json.dumps(part).encode()) for part in ({"alg": "RS256", "typ": "JWT"}, claims)]
    signature = key.sign(".".join(parts).encode(), padding.PKCS1v15(), hashes.SHA256())
    return ".".join([*parts, _encoded(signature)])


def _encoded(content):
    return urlsafe_b64encode(content).rstrip(b"=").decode()
