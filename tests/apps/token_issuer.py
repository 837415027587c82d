"""A small issuer of tokens, in the manner of Keycloak: a realm with a public key and a token endpoint."""

import base64
import json
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs

from cryptography.hazmat.primitives import hashes, hmac, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

PASSWORD = "correct horse"  # noqa: S105  of nobody
ROLES = {
    "reader": ["monailabel-user"],
    "annotator": ["monailabel-user", "monailabel-annotator"],
    "admin": ["monailabel-user", "monailabel-annotator", "monailabel-admin"],
}


class Issuer:
    """Signs tokens with a key of its own."""

    def __init__(self):
        self.key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        der = self.key.public_key().public_bytes(
            serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        self.public_key = base64.b64encode(der).decode()

    def token(self, user, algorithm="RS256", expires_in=300):
        """A token for a user; forged with the algorithm none, or HS256 by the public key as the secret."""
        claims = {
            "preferred_username": user,
            "realm_access": {"roles": ROLES[user]},
            "exp": int(time.time()) + expires_in,
        }
        text = f"{_packed({'alg': algorithm, 'typ': 'JWT'})}.{_packed(claims)}"
        if algorithm == "none":
            return f"{text}."
        if algorithm == "HS256":
            pem = f"-----BEGIN PUBLIC KEY-----\n{self.public_key}\n-----END PUBLIC KEY-----"
            code = hmac.HMAC(pem.encode(), hashes.SHA256())
            code.update(text.encode())
            return f"{text}.{_base64(code.finalize())}"
        signature = self.key.sign(text.encode(), padding.PKCS1v15(), hashes.SHA256())
        return f"{text}.{_base64(signature)}"

    @contextmanager
    def serving(self):
        """On loopback; gives the realm's address."""
        issuer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                realm = f"http://127.0.0.1:{self.server.server_port}/realm"
                if self.path == "/realm":
                    self.answer(200, {"public_key": issuer.public_key})
                else:
                    self.answer(200, {"token_endpoint": f"{realm}/token"})

            def do_POST(self):
                fields = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
                if fields["password"] != [PASSWORD]:
                    self.answer(401, {"error": "invalid_grant"})
                else:
                    token = issuer.token(fields["username"][0])
                    self.answer(200, {"access_token": token, "token_type": "bearer"})

            def answer(self, status, content):
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.end_headers()
                self.wfile.write(json.dumps(content).encode())

            def log_message(self, *_):
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/realm"
        finally:
            server.shutdown()
            server.server_close()


def _packed(content):
    return _base64(json.dumps(content).encode())


def _base64(content):
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()
