"""The fingerprint of an authority's certificates, by which a machine knows whom to believe: pure."""

from __future__ import annotations

import base64
import binascii
import hashlib
import re

FORM = re.compile(r"sha256:[0-9a-f]{64}")
_BLOCK = re.compile(r"-----BEGIN CERTIFICATE-----(.+?)-----END CERTIFICATE-----", re.DOTALL)


def of(pem: str) -> str:
    """Return the SHA-256 of all certificates in a text, in their order, as `sha256:…`; "" when it holds none.

    It is over what the certificates say, not over how lines are broken.
    """
    try:
        certificates = [base64.b64decode("".join(block.split()), validate=True) for block in _BLOCK.findall(pem)]
    except binascii.Error:
        return ""
    return f"sha256:{hashlib.sha256(b''.join(certificates)).hexdigest()}" if certificates else ""
