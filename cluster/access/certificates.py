"""The certificates with which the API proves who it is: an authority of its own, and one for the server.

The authority is made once and stays ten years, because every kubeconfig that was handed out trusts it. The server's
certificate lasts a year; it is made anew when less than thirty days are left, when its names are not those by which the
server is reached, or when it does not belong to the authority. Whoever has certificates already names their files in
the settings (VOLCANO_UI_API_CERTIFICATE, _KEY and, if clients do not know it, _CA).
"""

from __future__ import annotations

import fcntl
import logging
import os
import socket
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from cluster import issuing
from cluster.issuing import Pair

log = logging.getLogger(__name__)

AUTHORITY_LIFE = timedelta(days=3653)
SERVER_LIFE = timedelta(days=365)
RENEWED_BEFORE = timedelta(days=30)
SERVER = "volcano-ui API"
ALWAYS = (
    *("localhost", "127.0.0.1", "::1"),
    *("kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"),
)


@dataclass(frozen=True)
class Certificates:
    """Files in PEM; `ca` is None where the authority is one that clients know already."""

    ca: Path | None
    certificate: Path
    key: Path

    def ca_text(self) -> str:
        """Return the authority's certificate as clients take it, "" for one that they know."""
        return self.ca.read_text() if self.ca is not None else ""


def current() -> Certificates:
    """Return the administrator's own files, or those of the state directory, made or renewed when that is due."""
    certificate, key, ca = (settings.API_CERTIFICATE, settings.API_CERTIFICATE_KEY, settings.API_CERTIFICATE_CA)
    if certificate is None and key is None and ca is None:
        return ensure(settings.DATA / "pki", server_names())
    if certificate is None or key is None:
        raise ImproperlyConfigured(
            "VOLCANO_UI_API_CERTIFICATE and VOLCANO_UI_API_KEY belong together; set both, or neither."
        )
    for name, path in (("CERTIFICATE", certificate), ("KEY", key), ("CA", ca)):
        if path is not None and not os.access(path, os.R_OK):
            raise ImproperlyConfigured(
                f"VOLCANO_UI_API_{name} is {str(path)!r}, which cannot be read; name a PEM file that can."
            )
    return Certificates(ca, certificate, key)


def server_names() -> list[str]:
    """Return by which names and addresses the settings let this server be reached."""
    names = [*ALWAYS]
    for host in settings.HOSTS:
        # A host that begins with a dot means all names below it (Django), which certificates write with a star.
        bare = host.removeprefix("[").removesuffix("]")
        names += [f"*{host}", host[1:]] if host.startswith(".") else [bare]
    listen = issuing.address(settings.LISTEN)
    if listen is None:
        names.append(settings.LISTEN)
    elif not listen.is_unspecified:
        names.append(str(listen))
    if listen is not None and not listen.is_loopback:
        names.append(socket.gethostname())
    return names


def ensure(directory: Path, names: Iterable[str], *, now: datetime | None = None) -> Certificates:
    """Return usable certificates for the names, made in the directory as far as they are missing or due."""
    now = now or datetime.now(UTC)
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    files = Certificates(directory / "ca.crt", directory / "server.crt", directory / "server.key")
    wanted = issuing.general_names(names)
    with (directory / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # one process at a time looks and writes, so that all get the same authority
        authority = _load(directory / "ca.crt", directory / "ca.key")
        if authority is None or authority[0].not_valid_after_utc <= now:
            if (directory / "ca.crt").exists():
                log.warning("a new certificate authority is made: every kubeconfig must be fetched anew")
            authority = issuing.authority(now, AUTHORITY_LIFE)
            save(directory / "ca.crt", directory / "ca.key", authority)
        server = _load(files.certificate, files.key)
        if (
            server is None
            or server[0].not_valid_after_utc - now < RENEWED_BEFORE
            or not issuing.is_issued_by(server[0], authority[0])
            or issuing.names_of(server[0]) != set(wanted)
        ):
            issued = issuing.server(authority, SERVER, wanted, now, SERVER_LIFE)
            save(files.certificate, files.key, issued)
    return files


def _load(certificate: Path, key: Path) -> Pair | None:
    """Return a certificate and its key, None when a file is missing, broken or does not fit the other."""
    try:
        return issuing.read(certificate.read_bytes(), key.read_bytes())
    except OSError:
        return None


def save(certificate: Path, key: Path, pair: Pair) -> None:
    """Write both files, each whole or not at all; the key for its owner only."""
    _write(key, issuing.key_text(pair[1]), 0o600)
    _write(certificate, issuing.certificate_text(pair[0]), 0o644)


def _write(path: Path, content: bytes, mode: int) -> None:
    draft = path.with_name(f"{path.name}.new")
    draft.unlink(missing_ok=True)
    descriptor = os.open(draft, os.O_CREAT | os.O_WRONLY | os.O_EXCL, mode)
    with os.fdopen(descriptor, "wb") as stream:
        stream.write(content)
    draft.replace(path)
