"""Each request passes the gate: host, origin, token and rate decide, in this order."""

import pytest

from parquetry.errors import StorageError
from parquetry.serving.access.gate import Arrival, Gate, presented_token
from parquetry.serving.access.principals import ANONYMOUS, OPERATOR
from parquetry.serving.access.refusals import AccessRefused, Forbidden, NotAuthenticated, RateLimited
from parquetry.serving.access.token_table import FILE
from parquetry.serving.access.token_text import new_token
from parquetry.serving.access.tokens import TokenStore
from parquetry.settings.serving import ServeSettings


@pytest.fixture
def store(tmp_path):
    with TokenStore(tmp_path) as opened:
        yield opened


@pytest.fixture
def plain(store):
    return store.create("app", user_id="ada")[1]


def arrival(method="GET", peer="127.0.0.1", host="localhost:8000", **headers):
    raw = [(b"host", host.encode())] if host is not None else []
    raw += [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    return Arrival.of(method, peer, raw)


def reason_of(gate, request, **options):
    """Return the maker of a request, or the reason of its refusal."""
    try:
        return gate.admit(request, **options)
    except AccessRefused as refusal:
        return refusal.reason


LOCAL = ServeSettings()
SETTINGS = {
    "loopback": LOCAL,
    "loopback, tokens": ServeSettings(token_required=True),
    "loopback, known host": ServeSettings(hosts=("kb.example.com",)),
    "loopback, known origin": ServeSettings(cors_origins=("https://app.example.com",)),
    "loopback, any origin": ServeSettings(cors_origins=("*",)),
    "everywhere": ServeSettings(host="0.0.0.0"),
    "one address": ServeSettings(host="192.168.1.5"),
}
WITHOUT_TOKEN = [
    ("loopback", {}, OPERATOR),
    ("loopback", {"method": "POST"}, OPERATOR),
    ("loopback", {"peer": "::1", "host": "[::1]:8000"}, OPERATOR),
    ("loopback", {"method": "POST", "origin": "http://localhost:8000"}, OPERATOR),
    ("loopback", {"peer": "10.0.0.7"}, "token-missing"),
    ("loopback", {"peer": None}, "token-missing"),
    ("loopback", {"host": "evil.com"}, "host-not-allowed"),
    ("loopback", {"host": "kb.example.com"}, "host-not-allowed"),
    ("loopback", {"host": None}, "host-not-allowed"),
    ("loopback", {"method": "POST", "origin": "https://evil.com"}, "origin-not-allowed"),
    ("loopback", {"method": "DELETE", "sec_fetch_site": "cross-site"}, "origin-not-allowed"),
    ("loopback", {"origin": "https://evil.com"}, "token-missing"),
    ("loopback", {"x_forwarded_for": "127.0.0.1"}, "token-missing"),
    ("loopback", {"forwarded": "for=127.0.0.1"}, "token-missing"),
    ("loopback", {"via": "1.1 proxy"}, "token-missing"),
    ("loopback", {"x_real_ip": "127.0.0.1"}, "token-missing"),
    ("loopback", {"authorization": "Basic YWRhOnNlY3JldA=="}, "token-foreign"),
    ("loopback", {"authorization": "Bearer sk-of-a-model"}, "token-foreign"),
    ("loopback", {"authorization": ""}, "token-foreign"),
    ("loopback", {"x_parquetry_token": ""}, "token-malformed"),
    ("loopback, tokens", {}, "token-missing"),
    ("loopback, known host", {}, OPERATOR),
    ("loopback, known host", {"host": "kb.example.com"}, "token-missing"),
    ("loopback, known host", {"host": "evil.com"}, "host-not-allowed"),
    ("loopback, known origin", {"method": "POST", "origin": "https://app.example.com"}, OPERATOR),
    ("loopback, any origin", {"method": "POST", "origin": "https://evil.com"}, "token-missing"),
    ("loopback, any origin", {"origin": "https://evil.com"}, "token-missing"),
    ("everywhere", {}, "token-missing"),
    ("everywhere", {"host": "anything.example.com"}, "token-missing"),
    ("one address", {"host": "192.168.1.5:8000", "peer": "192.168.1.9"}, "token-missing"),
]


@pytest.mark.parametrize(("where", "request_", "expected"), WITHOUT_TOKEN)
def test_request_without_a_token_is_only_served_to_the_machine_itself(store, where, request_, expected):
    assert reason_of(Gate(SETTINGS[where], store), arrival(**request_)) == expected


@pytest.mark.parametrize("where", SETTINGS)
@pytest.mark.parametrize("peer", ["127.0.0.1", "10.0.0.7"])
def test_bearer_of_a_token_is_its_principal_on_every_address(store, plain, where, peer):
    gate, expected = Gate(SETTINGS[where], store), store.find(plain)
    assert gate.admit(arrival(peer=peer, authorization=f"Bearer {plain}")) == expected
    assert gate.admit(arrival(peer=peer, authorization=f"bearer  {plain} ")) == expected
    assert gate.admit(arrival("POST", peer=peer, x_parquetry_token=plain)) == expected


@pytest.mark.parametrize(
    "wrong", [new_token(), "pqt_", "pqt_x", "pqt_" + "x" * 100_000], ids=["unknown", "empty", "short", "long"]
)
def test_wrong_token_is_refused_even_where_none_is_needed(store, wrong):
    """Its bearer believes to have a name; the operator sees more than any name."""
    assert str(reason_of(Gate(LOCAL, store), arrival(authorization=f"Bearer {wrong}"))).startswith("token-")


def test_refusal_of_a_token_says_why_and_not_which(store, plain):
    gate = Gate(LOCAL, store)
    store.revoke(plain)
    with pytest.raises(NotAuthenticated, match="the token was revoked; create one with: parquetry token") as refusal:
        gate.admit(arrival(authorization=f"Bearer {plain}"))
    assert refusal.value.reason == "token-revoked"
    assert plain[4:] not in repr(refusal.value)


def test_browser_of_a_known_page_does_not_help_a_wrong_host(store, plain):
    gate = Gate(LOCAL, store)
    assert reason_of(gate, arrival(host="evil.com", authorization=f"Bearer {plain}")) == "host-not-allowed"
    request = arrival("POST", origin="https://evil.com", authorization=f"Bearer {plain}")
    assert reason_of(gate, request) == "origin-not-allowed"


def test_other_bearers_are_anonymous_where_a_dialect_takes_them(store, plain):
    """They are keys of a model's service: they do not say who asks."""
    gate = Gate(LOCAL, store)
    foreign = {"authorization": "Bearer sk-of-a-model"}
    assert gate.admit(arrival(**foreign), foreign_bearers=True) == ANONYMOUS
    assert gate.admit(arrival(), foreign_bearers=True) == OPERATOR
    assert gate.admit(arrival(**foreign, x_parquetry_token=plain), foreign_bearers=True) == store.find(plain)
    required = Gate(ServeSettings(token_required=True), store)
    assert reason_of(required, arrival(**foreign), foreign_bearers=True) == "token-missing"
    assert required.admit(arrival(authorization=f"Bearer {plain}"), foreign_bearers=True) == store.find(plain)


def test_two_tokens_are_refused(store, plain):
    other = store.create("other")[1]
    gate = Gate(LOCAL, store)
    twice = [(b"host", b"localhost"), *[(b"authorization", f"Bearer {each}".encode()) for each in (plain, plain)]]
    assert reason_of(gate, Arrival.of("GET", "127.0.0.1", twice)) == "several-tokens"
    differing = arrival(authorization=f"Bearer {plain}", x_parquetry_token=other)
    assert reason_of(gate, differing) == "several-tokens"
    assert presented_token(arrival(authorization=f"Bearer {plain}", x_parquetry_token=plain)) == plain


@pytest.mark.parametrize("name", [b"host", b"Origin"])
def test_header_that_is_there_twice_is_none_of_the_two(store, name):
    raw = [(b"host", b"localhost:8000"), (b"origin", b"http://localhost:8000"), (name, b"http://localhost:8000")]
    with pytest.raises(Forbidden):
        Gate(LOCAL, store).admit(Arrival.of("POST", "127.0.0.1", raw))


def test_each_token_has_its_rate_and_the_operator_none(store, plain):
    gate = Gate(ServeSettings(requests_per_minute=3), store)
    other = store.create("other")[1]
    for _ in range(3):
        gate.admit(arrival(authorization=f"Bearer {plain}"))
    with pytest.raises(RateLimited) as refusal:
        gate.admit(arrival(authorization=f"Bearer {plain}"))
    assert refusal.value.retry_after == 20
    gate.admit(arrival(authorization=f"Bearer {other}"))
    assert [gate.admit(arrival()) for _ in range(10)] == [OPERATOR] * 10


def test_tokens_that_cannot_be_read_admit_nobody(store, plain, tmp_path):
    gate = Gate(LOCAL, store)
    store.close()
    (tmp_path / FILE).write_bytes(b"no database at all" * 100)
    with pytest.raises(StorageError):
        gate.admit(arrival(authorization=f"Bearer {plain}"))


def test_route_without_a_token_is_screened_all_the_same(store):
    gate = Gate(LOCAL, store)
    gate.screen(arrival(peer="10.0.0.7"))
    with pytest.raises(Forbidden):
        gate.screen(arrival(host="evil.com"))
