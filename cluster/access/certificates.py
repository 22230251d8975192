"""The certificates with which the API proves who it is: an authority of its own, and one for the server.

The authority is made once and stays ten years, because every kubeconfig that
was handed out trusts it. The server's certificate lasts a year; it is made
anew when less than thirty days are left, when its names are not those by
which the server is reached, or when it does not belong to the authority.
Whoever has certificates already names their files in the settings
(VOLCANO_UI_API_CERTIFICATE, _KEY and, if clients do not know it, _CA).
"""

from __future__ import annotations

import contextlib
import fcntl
import ipaddress
import logging
import os
import socket
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

log = logging.getLogger(__name__)

AUTHORITY_DAYS = 3653
SERVER_DAYS = 365
RENEWED_DAYS = 30
# Clocks of clients may be a little behind.
EARLIER = timedelta(minutes=5)
ALWAYS = (
    "localhost",
    "127.0.0.1",
    "::1",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
)
Pair = tuple[x509.Certificate, ec.EllipticCurvePrivateKey]


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
    certificate, key, ca = (
        settings.API_CERTIFICATE,
        settings.API_CERTIFICATE_KEY,
        settings.API_CERTIFICATE_CA,
    )
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
    listen = _address(settings.LISTEN)
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
    found = Certificates(directory / "ca.crt", directory / "server.crt", directory / "server.key")
    wanted = _general_names(names)
    with _alone(directory):
        authority = _load(directory / "ca.crt", directory / "ca.key")
        if authority is None or authority[0].not_valid_after_utc <= now:
            if (directory / "ca.crt").exists():
                log.warning("a new certificate authority is made: every kubeconfig must be fetched anew")
            authority = _authority(now)
            _save(directory / "ca.crt", directory / "ca.key", authority)
        server = _load(found.certificate, found.key)
        if server is None or _is_due(server[0], authority[0], wanted, now):
            _save(found.certificate, found.key, _server(authority, wanted, now))
    return found


@contextlib.contextmanager
def _alone(directory: Path) -> Iterator[None]:
    """Let one process at a time look and write, so that all get the same authority."""
    with (directory / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _is_due(
    certificate: x509.Certificate,
    authority: x509.Certificate,
    names: x509.SubjectAlternativeName,
    now: datetime,
) -> bool:
    if certificate.not_valid_after_utc - now < timedelta(days=RENEWED_DAYS):
        return True
    try:
        certificate.verify_directly_issued_by(authority)
        held = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (InvalidSignature, ValueError, TypeError, x509.ExtensionNotFound):
        return True
    return set(held) != set(names)


def _authority(now: datetime) -> Pair:
    key = ec.generate_private_key(ec.SECP256R1())
    # The serial number tells two authorities of one machine apart, whose names clients may see together.
    serial = x509.random_serial_number()
    name = _name(f"volcano-ui {serial % 16**8:08x}")
    builder = _builder(name, name, key, serial, now, AUTHORITY_DAYS)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    builder = builder.add_extension(_usage(signs_certificates=True), critical=True)
    return builder.sign(key, hashes.SHA256()), key


def _server(authority: Pair, names: x509.SubjectAlternativeName, now: datetime) -> Pair:
    issuer, issuer_key = authority
    key = ec.generate_private_key(ec.SECP256R1())
    serial = x509.random_serial_number()
    days = min(SERVER_DAYS, max((issuer.not_valid_after_utc - now).days, 1))
    builder = _builder(_name("volcano-ui API"), issuer.subject, key, serial, now, days)
    identifier = issuer.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    for extension, critical in (
        (x509.BasicConstraints(ca=False, path_length=None), True),
        (_usage(signs_certificates=False), True),
        (x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), False),
        (names, False),
        (x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier), False),
    ):
        builder = builder.add_extension(extension, critical=critical)
    return builder.sign(issuer_key, hashes.SHA256()), key


def _builder(
    name: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, serial: int, now: datetime, days: int
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(serial)
        .not_valid_before(now - EARLIER)
        .not_valid_after(now + timedelta(days=days))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _general_names(names: Iterable[str]) -> x509.SubjectAlternativeName:
    """Return the names as a certificate writes them; what cannot stand in one is left out."""
    found: dict[x509.GeneralName, None] = {}
    for name in names:
        address = _address(name)
        if address is not None:
            found[x509.IPAddress(address)] = None
        elif name and name != "*":
            with contextlib.suppress(ValueError, UnicodeError):
                found[x509.DNSName(name.encode("idna").decode() if not name.isascii() else name)] = None
    return x509.SubjectAlternativeName(found)


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


def _load(certificate: Path, key: Path) -> Pair | None:
    """Return a certificate and its key, None when a file is missing, broken or does not fit the other."""
    try:
        loaded = x509.load_pem_x509_certificate(certificate.read_bytes())
        private = serialization.load_pem_private_key(key.read_bytes(), password=None)
    except (OSError, ValueError, TypeError):
        return None
    if not isinstance(private, ec.EllipticCurvePrivateKey) or loaded.public_key() != private.public_key():
        return None
    return loaded, private


def _save(certificate: Path, key: Path, pair: Pair) -> None:
    """Write both files, each whole or not at all; the key for its owner only."""
    private = pair[1].private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    _write(key, private, 0o600)
    _write(certificate, pair[0].public_bytes(serialization.Encoding.PEM), 0o644)


def _write(path: Path, content: bytes, mode: int) -> None:
    draft = path.with_name(f"{path.name}.new")
    draft.unlink(missing_ok=True)
    descriptor = os.open(draft, os.O_CREAT | os.O_WRONLY | os.O_EXCL, mode)
    with os.fdopen(descriptor, "wb") as stream:
        stream.write(content)
    draft.replace(path)
