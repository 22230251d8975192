"""Who is who in a cluster of the tests: its authority, the certificates of its servers, and kubeconfigs of people."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from cluster.access import certificates

DAY = timedelta(days=1)
NAMES = ("localhost", "127.0.0.1", "kubernetes", "kubernetes.default", "kubernetes.default.svc")


class Identities:
    """An authority in a folder. Certificates say who somebody is: the common name, and the organizations as groups."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.server = certificates.ensure(folder, NAMES)
        assert self.server.ca is not None, "the authority is made here"
        self.ca = self.server.ca
        self.signing_key = folder / "accounts.key"
        _write_key(self.signing_key, ec.generate_private_key(ec.SECP256R1()))

    def certificate(self, name: str, *groups: str) -> tuple[Path, Path]:
        """Return the files of a client's certificate and key, made at the first time."""
        certificate, key = self.folder / f"{name}.crt", self.folder / f"{name}.key"
        if not certificate.exists():
            private = ec.generate_private_key(ec.SECP256R1())
            _write_key(key, private)
            certificate.write_bytes(self._signed(name, groups, private).public_bytes(serialization.Encoding.PEM))
        return certificate, key

    def _signed(self, name: str, groups: tuple[str, ...], private: ec.EllipticCurvePrivateKey) -> x509.Certificate:
        authority = x509.load_pem_x509_certificate(self.ca.read_bytes())
        signer = serialization.load_pem_private_key((self.folder / "ca.key").read_bytes(), password=None)
        assert isinstance(signer, ec.EllipticCurvePrivateKey), signer
        subject = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
        now = datetime.now(UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(x509.Name([*subject, x509.NameAttribute(NameOID.COMMON_NAME, name)]))
            .issuer_name(authority.subject)
            .public_key(private.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - DAY)
            .not_valid_after(now + DAY)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
            .sign(signer, hashes.SHA256())
        )

    def kubeconfig(self, server: str, user: Mapping[str, str], *, context: str) -> str:
        """Return the text of a kubeconfig; user is its entry there, such as a token."""
        return yaml.safe_dump(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "clusters": [{"name": context, "cluster": {"server": server, "certificate-authority": str(self.ca)}}],
                "users": [{"name": context, "user": user}],
                "contexts": [{"name": context, "context": {"cluster": context, "user": context}}],
                "current-context": context,
            }
        )


def _write_key(path: Path, private: ec.EllipticCurvePrivateKey) -> None:
    path.touch(0o600)
    path.write_bytes(
        private.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
        )
    )
