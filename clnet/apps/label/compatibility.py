"""What MONAI Label 0.8.5 needs to run with our versions of its dependencies; imported before MONAI Label.

- pydicom-seg, which MONAI Label imports, takes a UID from a private module that pydicom 3 has removed.
- MONAI Label checks tokens without naming an algorithm, which PyJWT 2 refuses: nobody could log in.
"""

import functools
import sys

import jwt
import pydicom.uid

ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512"]

sys.modules.setdefault("pydicom._storage_sopclass_uids", pydicom.uid)

# Public-key signatures only: with a shared-secret algorithm, the public key would serve as the secret.
jwt.decode = functools.partial(jwt.decode, algorithms=ALGORITHMS)
