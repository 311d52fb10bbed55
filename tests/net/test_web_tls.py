"""HTTPS to a pinned address: the certificate is checked against the name, not the address."""

import datetime
import ssl
from ipaddress import ip_address

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from parquetry.errors import TransientError
from parquetry.net import client as module
from parquetry.net.client import GuardedClient
from parquetry.net.ssrf import parse_allowed
from tests.servers.web_server import Page, WebServer


@pytest.fixture
def certificate(tmp_path):
    """A self-signed certificate of wiki.example and its key, in one file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "wiki.example")])
    now = datetime.datetime.now(datetime.UTC)
    signed = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("wiki.example")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem, private = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    file = tmp_path / "wiki.pem"
    file.write_bytes(key.private_bytes(pem, private, serialization.NoEncryption()) + signed.public_bytes(pem))
    return file


@pytest.fixture
def secured(certificate):
    """A server, and the names that clients requested in their handshakes."""
    names = []
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    context.sni_callback = lambda connection, name, its_context: names.append(name)
    server = WebServer({"/": Page("secret")})
    server._server.socket = context.wrap_socket(server._server.socket, server_side=True)
    with server:
        yield server, names


@pytest.fixture
def trust(monkeypatch):
    """Set the certificate authorities that the environment trusts."""

    def set_file(file):
        monkeypatch.setenv("SSL_CERT_FILE", str(file))
        module._trust.cache_clear()

    yield set_file
    module._trust.cache_clear()


def client_of(server, *names):
    allowed = parse_allowed([f"{name}:{server.port}" for name in names])
    return GuardedClient(
        allowed, user_agent="t", max_bytes=999, seconds=10, resolve=lambda host, port: [ip_address("127.0.0.1")]
    )


def test_name_is_asked_for_and_its_certificate_is_believed(secured, certificate, trust):
    server, names = secured
    trust(certificate)
    with client_of(server, "wiki.example").get(f"https://wiki.example:{server.port}/") as answer:
        assert answer.read() == b"secret"
    assert names == ["wiki.example"]
    assert server.asked[0].headers["Host"] == f"wiki.example:{server.port}"


def test_certificate_of_another_name_is_refused(secured, certificate, trust):
    server, _ = secured
    trust(certificate)
    with (
        pytest.raises(TransientError, match="certificate") as raised,
        client_of(server, "other.example").get(f"https://other.example:{server.port}/"),
    ):
        pass
    assert raised.value.reason == "tls"
    assert server.asked == []


def test_certificate_that_nobody_vouches_for_is_refused(secured, tmp_path, trust):
    server, _ = secured
    with (
        pytest.raises(TransientError, match="certificate") as raised,
        client_of(server, "wiki.example").get(f"https://wiki.example:{server.port}/"),
    ):
        pass
    assert raised.value.reason == "tls"
