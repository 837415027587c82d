"""An OpenID realm for MONAI Label, as Keycloak provides one: public key and tokens."""

import hmac
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
    "chef": ["monailabel-user", "monailabel-annotator", "monailabel-admin"],
}


@contextmanager
def start_realm(key=None):
    """Yields the settings of a MONAI Label server that trusts this realm."""
    key = key or new_key()

    class Realm(BaseHTTPRequestHandler):
        def do_GET(self):
            if self.path.endswith("/openid-configuration"):
                self.answer(200, {"token_endpoint": f"{address}/token"})
            else:
                self.answer(200, {"public_key": public_part(key)})

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
            """No log."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Realm) as server:
        address = f"http://127.0.0.1:{server.server_port}"
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield {"MONAI_LABEL_AUTH_ENABLE": "true", "MONAI_LABEL_AUTH_REALM_URI": address}
        finally:
            server.shutdown()


def new_key():
    """A private key for a realm."""
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


def public_part(key):
    """The public key of a realm."""
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    return b64encode(key.public_key().public_bytes(serialization.Encoding.DER, form)).decode()


def token(key, name, algorithm="RS256", seconds=3600):
    """A JSON Web Token (RFC 7519); algorithms other than RS256 give forged ones."""
    claims = {
        "preferred_username": name,
        "realm_access": {"roles": ROLES[name]},
        "exp": int(time.time()) + seconds,
    }
    parts = [_encoded(json.dumps(part).encode()) for part in ({"alg": algorithm, "typ": "JWT"}, claims)]
    text = ".".join(parts).encode()
    if algorithm == "none":
        signature = b""
    elif algorithm == "HS256":  # the public key, which all know, taken for a shared secret
        secret = f"-----BEGIN PUBLIC KEY-----\n{public_part(key)}\n-----END PUBLIC KEY-----"
        signature = hmac.digest(secret.encode(), text, "sha256")
    else:
        signature = key.sign(text, padding.PKCS1v15(), hashes.SHA256())
    return ".".join([*parts, _encoded(signature)])


def _encoded(content):
    return urlsafe_b64encode(content).rstrip(b"=").decode()
