"""Which addresses of an API server a machine joins at: pure."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

LOCAL_NAMES = frozenset({"localhost", "ip6-localhost"})


def checked(url: str) -> str:
    """Return the address of an API server without a slash at its end; ValueError says what is wrong with it.

    A token goes over TLS. Without it only to this machine itself, where nobody is in between.
    """
    parts = urlsplit(url)
    try:
        port = parts.port
    except ValueError:
        port = -1
    plain = parts.path in ("", "/") and not (parts.query or parts.fragment or parts.username or parts.password)
    if parts.scheme not in ("http", "https") or not parts.hostname or port in (-1, 0) or not plain:
        raise ValueError(f"{url!r} is not the address of an API server; give it as https://host:8443.")
    try:
        is_local = ipaddress.ip_address(parts.hostname).is_loopback
    except ValueError:
        is_local = parts.hostname in LOCAL_NAMES
    if parts.scheme == "http" and not is_local:
        raise ValueError(
            f"{url!r} is not encrypted, and the node's token would be read on the way; use https:// (the API speaks it)."
        )
    return url.rstrip("/")
