"""Secrets of the process are recognised in every form in which a message may repeat them; ordinary words are not."""

import base64
import html
import json
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from parquetry.known_secrets import announce, is_told, known_forms, names_secret
from parquetry.masking import masked, without_known
from parquetry.settings.sections import override, parse_settings

KEY = 'k/"9 +ü&planted'


pytestmark = pytest.mark.usefixtures("nothing_announced")


@pytest.mark.parametrize(
    "form",
    [
        KEY,
        json.dumps(KEY),
        json.dumps(KEY, ensure_ascii=False),
        repr(KEY),
        json.dumps(KEY).replace("/", r"\/"),
        quote(KEY),
        quote(KEY, safe=""),
        quote(KEY, safe="").replace("%2F", "%2f").replace("%2B", "%2b").replace("%C3%BC", "%c3%bc"),
        quote_plus(KEY),
        html.escape(KEY),
        base64.b64encode(KEY.encode()).decode(),
        base64.urlsafe_b64encode(KEY.encode()).decode(),
        *(base64.b64encode(f"{user}:{KEY}".encode()).decode() for user in ("u", "us", "use")),
        *(base64.b64encode(f"u:{KEY}{rest}".encode()).decode() for rest in ("\n", "ab")),
    ],
)
def test_announced_secret_is_replaced_in_every_form(form):
    announce(KEY)
    shown = without_known(f"before {form} after")
    assert "***" in shown
    assert form[4:-6] not in shown
    assert len(shown) <= len("before *** after") + 10
    assert shown.startswith("before ")
    assert shown.endswith(" after")


@pytest.mark.parametrize(
    ("name", "value", "secret"),
    [
        ("OPENAI_API_KEY", "sk-1234567", "sk-1234567"),
        ("AWS_SECRET_ACCESS_KEY", "ab/cd+ef12", "ab/cd+ef12"),
        ("AWS_SESSION_TOKEN", "FwoGZXIvYXdz", "FwoGZXIvYXdz"),
        ("AZURE_STORAGE_CONNECTION_STRING", "AccountName=notes;AccountKey=Zm9vYmFy==;BlobEndpoint=x", "Zm9vYmFy=="),
        ("AZURE_STORAGE_SAS_TOKEN", "sv=2031&sig=ab%2Bcd12", "ab+cd12"),
        ("BLOB_READ_WRITE_TOKEN", "vercel_blob_rw_x1", "vercel_blob_rw_x1"),
        ("PREFECT_API_AUTH_STRING", "admin:hunter2!", "hunter2!"),
        ("HTTPS_PROXY", "http://me:hunter%2B2@proxy:8080", "hunter+2"),
        ("FSSPEC_S3", '{"client": {"secret": "of-minio-1"}}', "of-minio-1"),
        ("DEPLOY_KEY", "-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG\n-----END KEY-----", "MIIEvQIBADANBgkqhkiG"),
    ],
    ids=["openai", "aws", "aws-session", "azure", "azure-sas", "vercel", "prefect", "proxy", "fsspec", "key-file"],
)
def test_variable_of_the_environment_that_holds_a_secret_is_known_by_its_name(monkeypatch, name, value, secret):
    assert secret not in known_forms()
    monkeypatch.setenv(name, value)
    assert masked(f"it said {secret}!") == "it said ***!"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("OPENAI_API_KEY", "none"),
        ("OPENAI_API_KEY", "ollama"),
        ("OPENAI_API_KEY", "EMPTY"),
        ("GOOGLE_APPLICATION_CREDENTIALS", __file__),
        ("PWD", "/corpus/of/boards"),
        ("EDITOR", "emacs-nox-1"),
    ],
)
def test_words_and_places_are_no_secrets(monkeypatch, name, value):
    monkeypatch.setenv(name, value)
    assert masked(f"it said {value}!") == f"it said {value}!"


def test_short_secret_is_replaced_where_credentials_stand(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "k1")
    shown = masked("k1 tasks; Authorization: Bearer k1, https://a.example/?api_key=k1")
    assert shown == "k1 tasks; Authorization: Bearer ***, https://a.example/?api_key=***"


def test_secrets_of_settings_are_known_as_soon_as_they_are_read():
    source = {"name": "a", "uri": "s3://b", "options": {"profile": "backup", "client": {"secret": "of-options-1"}}}
    told = {
        "embedding": {"api_key": "of-embedding-1"},
        "llm": {"api_key": "of-llm-1"},
        "extraction": {"passwords": ["of a document"]},
        "source": [source],
    }
    override(parse_settings(told, "test"), {"llm": {"api_key": "of-command-line-1"}})
    for secret in ("of-embedding-1", "of-llm-1", "of a document", "of-options-1", "of-command-line-1"):
        assert without_known(secret) == "***"
    assert without_known("backup") == "backup"


@pytest.mark.parametrize("name", ["api_key", "apikey", "X-Api-Key", "AccountKey", "PASSWORD", "clientSecret", "sas"])
def test_name_of_a_secret_is_told(name):
    assert names_secret(name)


@pytest.mark.parametrize(
    "name", ["max_reply_tokens", "batch_tokens", "monkey", "author", "PWD", "keyboard", "SSH_AUTH_SOCK"]
)
def test_name_of_no_secret_is_left_alone(name):
    assert not names_secret(name)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    before=st.text(max_size=20),
    secret=st.text(st.characters(exclude_characters="*", codec="utf-8"), min_size=8, max_size=40),
    after=st.text(max_size=20),
)
def test_no_text_keeps_a_secret_that_was_announced(before, secret, after):
    announce(secret)
    for form in (secret, quote(secret, safe=""), json.dumps(secret)[1:-1]):
        assert secret.strip() not in without_known(f"{before}{form}{after}") or not is_told(secret.strip())
        assert masked(masked(f"{before}{form}{after}")) == masked(f"{before}{form}{after}")
