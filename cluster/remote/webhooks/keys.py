"""The webhooks' certificates as a Secret holds them, and what each step of their rotation makes of them.

A Secret of the type kubernetes.io/tls: `tls.crt` and `tls.key` are what is served, `ca.crt` has the authorities that are
trusted, the newest last, whose key `ca.key` is.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

from cryptography import x509

from cluster import issuing
from cluster.issuing import Pair
from cluster.remote.webhooks.rotation import Held, Lives, Span, Step
from kube import lenient
from kube.meta import Object

TYPE = "kubernetes.io/tls"
SERVER = "volcano-ui webhooks"


class Keys(NamedTuple):
    """The newest authority with its key, those before it, and what is served with its key."""

    older: tuple[x509.Certificate, ...]
    authority: Pair
    server: Pair

    @property
    def bundle(self) -> str:
        """The authorities that are to be trusted, in PEM, base64."""
        return _encoded(b"".join(map(issuing.certificate_text, self.authorities)))

    @property
    def authorities(self) -> tuple[x509.Certificate, ...]:
        return (*self.older, self.authority[0])

    def held(self) -> Held | None:
        """Return what the rules of rotation want to know; None when no authority here has issued what is served."""
        issuers = [index for index, one in enumerate(self.authorities) if issuing.is_issued_by(self.server[0], one)]
        if not issuers:
            return None
        names = frozenset(str(name.value) for name in issuing.names_of(self.server[0]))
        return Held(tuple(map(_span, self.authorities)), _span(self.server[0]), issuers[0], names)

    def data(self) -> dict[str, str]:
        """Return the data of the Secret that holds all this."""
        return {
            "ca.crt": self.bundle,
            "ca.key": _encoded(issuing.key_text(self.authority[1])),
            "tls.crt": _encoded(issuing.certificate_text(self.server[0])),
            "tls.key": _encoded(issuing.key_text(self.server[1])),
        }


def read(secret: Object) -> Keys | None:
    """Return what a Secret holds, None when part of it is missing or broken."""
    try:
        data = {name: base64.b64decode(lenient.text(secret, "data", name)) for name in _FIELDS}
        authorities = x509.load_pem_x509_certificates(data["ca.crt"])
    except (binascii.Error, ValueError):
        return None
    authority = issuing.read(issuing.certificate_text(authorities[-1]), data["ca.key"])
    server = issuing.read(data["tls.crt"], data["tls.key"])
    if authority is None or server is None:
        return None
    return Keys(tuple(authorities[:-1]), authority, server)


_FIELDS = ("ca.crt", "ca.key", "tls.crt", "tls.key")


def after(keys: Keys | None, step: Step, names: Iterable[str], now: datetime, lives: Lives) -> Keys:
    """Return what is held after a step."""
    if keys is None or step is Step.BEGIN:
        authority = issuing.authority(now, lives.authority)
        return Keys((), authority, _issued(authority, names, now, lives))
    match step:
        case Step.AUTHORITY:
            older = (*keys.older, keys.authority[0])
            return keys._replace(older=older, authority=issuing.authority(now, lives.authority))
        case Step.SERVER:
            return keys._replace(server=_issued(keys.authority, names, now, lives))
        case Step.RETIRE:
            return keys._replace(older=())
    return keys


def _issued(authority: Pair, names: Iterable[str], now: datetime, lives: Lives) -> Pair:
    return issuing.server(authority, SERVER, issuing.general_names(names), now, lives.server)


def _span(certificate: x509.Certificate) -> Span:
    """Return a certificate's span, from the moment at which it was made."""
    return Span(certificate.not_valid_before_utc + issuing.EARLIER, certificate.not_valid_after_utc)


def _encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()
