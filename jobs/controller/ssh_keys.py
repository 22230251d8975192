"""The key pairs of the plugin ssh: made here, outside the rules, because making them needs randomness.

A pair takes about a tenth of a second. A run that must be repeatable sets its own maker (`use`).
"""

from __future__ import annotations

from collections.abc import Callable

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from jobs.plugins.contract import KeyPair

BITS = 2048
EXPONENT = 65_537

Maker = Callable[[], KeyPair]


def rsa_pair() -> KeyPair:
    """Make an RSA key of 2048 bits (reference: volcano-job §5.4)."""
    key = rsa.generate_private_key(public_exponent=EXPONENT, key_size=BITS)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )
    public = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    return KeyPair(private.decode(), f"{public.decode()}\n")


_make: Maker = rsa_pair


def use(make: Maker) -> Maker:
    """Make all key pairs of this process with `make` from now on; return the maker used before."""
    global _make
    before, _make = _make, make
    return before


def make() -> KeyPair:
    """Return a new key pair."""
    return _make()
