"""Credentials in a text are found and masked; what only looks like some stays readable."""

import pickle

import pytest

from knowledge.errors import TransientError, classify, first_line
from knowledge.masking import holds_credentials, masked
from knowledge.settings import parse_settings
from knowledge.sources.registry import open_source, scopes_of

SECRET = "Sw0rdfish"
WITH = {
    "password": f"sftp://reader:{SECRET}@files.example.org/notes",
    "password-with-a-slash": f"s3://AKIAEXAMPLE:{SECRET}/x+y@bucket/notes",
    "password-with-an-at": f"ftp://reader:a@{SECRET}@files.example.org/notes",
    "password-of-the-web": f"https://reader:{SECRET}@example.org/notes",
    "token-as-user": f"https://{SECRET}@example.org/notes",
    "shared-access-signature": f"https://notes.blob.example.org/a/b.md?sv=2031&se=x&sig={SECRET}%3D",
    "shared-access-signature-of-a-container": f"abfs://notes/guide?sv=2031&sig={SECRET}",
    "signed-for-s3": f"https://b.example.org/k?X-Amz-Expires=60&X-Amz-Signature={SECRET}",
    "signed-for-google": f"https://b.example.org/k?X-Goog-Signature={SECRET}",
    "signed-long-ago": f"https://b.example.org/k?Expires=1&Signature={SECRET}",
    "access-token": f"https://example.org/page?access_token={SECRET}",
}
WITHOUT = {
    "github": "github://org:repo@main/docs",
    "container-and-account": "abfs://notes@account.dfs.example.org/guide",
    "port": "https://example.org:8443/@someone/page",
    "user-alone": "sftp://reader@files.example.org/notes",
    "mail-address-in-a-path": "https://example.org/a:b/someone@example.org",
    "page-about-signatures": "https://example.org/page?signature=round&topic=sig",
    "no-url": "notes/a:b@c",
}


@pytest.mark.parametrize("url", WITH.values(), ids=WITH)
def test_url_with_credentials_is_found_and_masked(url):
    assert holds_credentials(url)
    shown = masked(f"cannot read {url}: refused")
    assert SECRET not in shown
    assert "***" in shown
    assert shown.startswith("cannot read ")
    assert shown.endswith(": refused")
    assert masked(shown) == shown


@pytest.mark.parametrize("url", WITHOUT.values(), ids=WITHOUT)
def test_url_without_credentials_is_left_alone(url):
    assert not holds_credentials(url)
    if "signature=" not in url:
        assert masked(url) == url


def test_what_a_library_says_is_masked_before_it_is_stored_or_shown():
    error = TransientError("unreachable", f"no answer from https://example.org/?sig={SECRET}")
    assert SECRET not in classify(error).detail
    assert SECRET not in classify(OSError(f"ftp://reader:{SECRET}@example.org")).detail
    assert SECRET not in first_line(ValueError(f"ftp://reader:{SECRET}@example.org\nmore"))
    assert pickle.loads(pickle.dumps(classify(error))) == classify(error)


@pytest.mark.parametrize("url", WITH.values(), ids=WITH)
def test_source_whose_url_holds_credentials_is_refused_without_showing_them(url):
    settings = parse_settings({}, "test")
    (scope,) = scopes_of(settings, [url])
    with pytest.raises(Exception, match="holds credentials, which would be stored and shown; ") as refusal:
        open_source(scope, "corpus")
    assert SECRET not in str(refusal.value)
    assert type(refusal.value).__name__ == "SettingsError"
