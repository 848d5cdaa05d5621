"""A certificate authority for tests, and the host certificates that it signs."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


class Authority:
    """Signs certificates; its own certificate is in `path`."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Test authority")])
        self.path = directory / "authority.pem"
        own = self._builder(self._name, self._key, days=1).add_extension(
            x509.BasicConstraints(ca=True, path_length=None), critical=True
        )
        self.path.write_bytes(_pem(own.sign(self._key, hashes.SHA256())))

    def certificate(self, address: str, *, days: int = 1) -> ssl.SSLContext:
        """Return an SSL context with a certificate of this IP address, valid for `days` days."""
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Test host")])
        hosts = x509.SubjectAlternativeName([x509.IPAddress(ip_address(address))])
        signed = self._builder(name, key, days=days).add_extension(hosts, critical=False)
        path = self._directory / "host.pem"
        path.write_bytes(
            _pem(signed.sign(self._key, hashes.SHA256()))
            + key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(path)
        return context

    def _builder(
        self, name: x509.Name, key: ec.EllipticCurvePrivateKey, *, days: int
    ) -> x509.CertificateBuilder:
        ends_at = datetime.now(UTC) + timedelta(days=days)
        return (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(ends_at - timedelta(days=3))
            .not_valid_after(ends_at)
        )


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)
