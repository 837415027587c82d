"""What MONAI Label 0.8.5 misses in the versions that clnet needs; imported before MONAI Label is.

- pydicom-seg, which MONAI Label imports, takes a UID from a private module that pydicom 3 no longer has.
- MONAI Label checks tokens without naming an algorithm, which PyJWT 2 refuses: with it, nobody could log in.
"""

import functools
import sys

import jwt
import pydicom.uid

ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512"]

sys.modules.setdefault("pydicom._storage_sopclass_uids", pydicom.uid)

# Signatures by a public key alone: with an algorithm that shares a secret, the public key would be one.
jwt.decode = functools.partial(jwt.decode, algorithms=ALGORITHMS)
