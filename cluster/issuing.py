"""Making certificates: those of an authority, and those that it issues for a server's names; and reading them again.

Nothing is read or written here but bytes in PEM. Keys are made by chance; the moment is handed in.
"""

from __future__ import annotations

import contextlib
import ipaddress
from collections.abc import Iterable
from datetime import datetime, timedelta

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

# Clocks of clients may be a little behind.
EARLIER = timedelta(minutes=5)
Pair = tuple[x509.Certificate, ec.EllipticCurvePrivateKey]


def authority(now: datetime, life: timedelta) -> Pair:
    """Return a new authority, valid for so long."""
    key = ec.generate_private_key(ec.SECP256R1())
    # The serial number tells two authorities of one machine apart, whose names clients may see together.
    serial = x509.random_serial_number()
    name = _name(f"volcano-ui {serial % 16**8:08x}")
    builder = _builder(name, name, key, serial, now, now + life)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    builder = builder.add_extension(_usage(signs_certificates=True), critical=True)
    return builder.sign(key, hashes.SHA256()), key


def server(issuer: Pair, name: str, names: x509.SubjectAlternativeName, now: datetime, life: timedelta) -> Pair:
    """Return a server's certificate for names by which it is reached, valid for so long, but no longer than the authority."""
    signer, signing_key = issuer
    key = ec.generate_private_key(ec.SECP256R1())
    end = min(now + life, signer.not_valid_after_utc)
    builder = _builder(_name(name), signer.subject, key, x509.random_serial_number(), now, end)
    identifier = signer.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    for extension, critical in (
        (x509.BasicConstraints(ca=False, path_length=None), True),
        (_usage(signs_certificates=False), True),
        (x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), False),
        (names, False),
        (x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier), False),
    ):
        builder = builder.add_extension(extension, critical=critical)
    return builder.sign(signing_key, hashes.SHA256()), key


def _builder(
    name: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, serial: int, now: datetime, end: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(serial)
        .not_valid_before(now - EARLIER)
        .not_valid_after(end)
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


def is_issued_by(certificate: x509.Certificate, issuer: x509.Certificate) -> bool:
    """Whether an authority has signed a certificate."""
    try:
        certificate.verify_directly_issued_by(issuer)
    except (InvalidSignature, ValueError, TypeError):
        return False
    return True


def names_of(certificate: x509.Certificate) -> set[x509.GeneralName]:
    """Return the names and addresses that a certificate is for."""
    try:
        return set(certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value)
    except x509.ExtensionNotFound:
        return set()


def general_names(names: Iterable[str]) -> x509.SubjectAlternativeName:
    """Return names and addresses as a certificate writes them; what cannot stand in one is left out."""
    unique: dict[x509.GeneralName, None] = {}
    for name in names:
        number = address(name)
        if number is not None:
            unique[x509.IPAddress(number)] = None
        elif name and name != "*":
            with contextlib.suppress(ValueError, UnicodeError):
                unique[x509.DNSName(name.encode("idna").decode() if not name.isascii() else name)] = None
    return x509.SubjectAlternativeName(unique)


def address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Return the IP address that a text is, None for any other text."""
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


def read(certificate: bytes, key: bytes) -> Pair | None:
    """Return a certificate and its key, None when one is broken or does not fit the other."""
    try:
        loaded = x509.load_pem_x509_certificate(certificate)
        private = serialization.load_pem_private_key(key, password=None)
    except (ValueError, TypeError):
        return None
    if not isinstance(private, ec.EllipticCurvePrivateKey) or loaded.public_key() != private.public_key():
        return None
    return loaded, private


def certificate_text(certificate: x509.Certificate) -> bytes:
    """Write a certificate in PEM."""
    return certificate.public_bytes(serialization.Encoding.PEM)


def key_text(key: ec.EllipticCurvePrivateKey) -> bytes:
    """Write a key in PEM."""
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
