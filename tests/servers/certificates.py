"""Certificates of servers on loopback, and the authority that signed them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec


@dataclass(frozen=True, slots=True)
class Certificate:
    """A certificate with its key, for a server, and what its clients have to trust."""

    server: Path
    """PEM of the key and the certificate"""
    authority: Path
    """PEM of the authority's certificate"""


def certificate_for(folder: Path, *hosts: str) -> Certificate:
    """Write a certificate for host names and addresses, signed by an authority of its own, into a folder."""
    authority_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    issuer = _name("tests' authority")
    authority = _signed(issuer, issuer, authority_key, authority_key, ())
    signed = _signed(_name("tests"), issuer, key, authority_key, hosts)
    made = Certificate(folder / "server.pem", folder / "authority.pem")
    pem = serialization.Encoding.PEM
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    made.server.write_bytes(private + signed.public_bytes(pem))
    made.authority.write_bytes(authority.public_bytes(pem))
    return made


def _name(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])


def _signed(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    by: ec.EllipticCurvePrivateKey,
    hosts: Sequence[str],
) -> x509.Certificate:
    """Sign a certificate of a server, or of an authority if it is for no hosts."""
    now = datetime.now(UTC)
    built = (
        x509.CertificateBuilder(issuer, subject, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=not hosts, path_length=None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(by.public_key()), critical=False)
        .add_extension(_usage(signs_certificates=not hosts), critical=True)
    )
    if hosts:
        built = built.add_extension(x509.SubjectAlternativeName([_host(each) for each in hosts]), critical=False)
    return built.sign(by, hashes.SHA256())


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        return x509.DNSName(host)
