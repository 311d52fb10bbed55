"""HTTPS to a pinned address: the certificate is checked against the name, not the address."""

import ssl
from ipaddress import ip_address

import pytest

from parquetry.errors import TransientError
from parquetry.net import client as module
from parquetry.net.client import GuardedClient
from parquetry.net.ssrf import parse_allowed
from tests.servers.certificates import certificate_for
from tests.servers.web_server import Page, WebServer


@pytest.fixture
def certificate(tmp_path):
    return certificate_for(tmp_path, "wiki.example")


@pytest.fixture
def secured(certificate):
    """A server, and the names that clients requested in their handshakes."""
    names = []
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate.server)
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
    trust(certificate.authority)
    with client_of(server, "wiki.example").get(f"https://wiki.example:{server.port}/") as answer:
        assert answer.read() == b"secret"
    assert names == ["wiki.example"]
    assert server.asked[0].headers["Host"] == f"wiki.example:{server.port}"


def test_certificate_of_another_name_is_refused(secured, certificate, trust):
    server, _ = secured
    trust(certificate.authority)
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
