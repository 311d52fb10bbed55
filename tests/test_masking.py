"""Credentials in a text are detected and masked; text that only resembles them stays readable."""

import base64
import pickle
from time import process_time

import pytest

from parquetry.errors import TransientError, classify, first_line
from parquetry.masking import excerpt, holds_credentials, masked
from parquetry.settings.sections import parse_settings
from parquetry.sources.registry import open_source, scopes_of

pytestmark = pytest.mark.usefixtures("nothing_announced")
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
    "asterisks": "https://example.org/a***@b",
    "no-url": "notes/a:b@c",
}


@pytest.mark.parametrize("url", WITH.values(), ids=WITH)
def test_url_with_credentials_is_found_and_masked(url):
    assert holds_credentials(url)
    assert holds_credentials(masked(url))
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


BASIC = base64.b64encode(b"somebody:opensesame1").decode()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"Authorization: Bearer {SECRET}", "Authorization: Bearer ***"),
        (f'{{"authorization": "bearer {SECRET}"}}', '{"authorization": "bearer ***"}'),
        (f"Basic {BASIC}: opensesame1 of somebody is wrong", "Basic ***: *** of *** is wrong"),
        (f"x-api-key: {SECRET}; retry", "x-api-key: ***; retry"),
        (f"{{'api_key': '{SECRET}', 'model': 'm'}}", "{'api_key': '***', 'model': 'm'}"),
        (f"SharedKey account:{SECRET}==", "SharedKey ***"),
        (
            f"AWS4-HMAC-SHA256 Credential=AKIA{SECRET}/20310101/us, SignedHeaders=host, Signature={SECRET}",
            "AWS4-HMAC-SHA256 Credential=***, SignedHeaders=host, Signature=***",
        ),
        *(
            (f"no http://a.example/?q=1&{name}={SECRET}&page=2", f"no http://a.example/?q=1&{name}=***&page=2")
            for name in ("apikey", "api_key", "key", "auth", "sig", "signature", "token", "access_token", "secret")
        ),
        (f"http://a.example/?q=1#id_token={SECRET}", "http://a.example/?q=1#id_token=***"),
        (f"http://a.example/?subscription-key={SECRET}: refused", "http://a.example/?subscription-key=***: refused"),
        ("Basic authentication, or Bearer tokens", "Basic authentication, or Bearer tokens"),
        ("embedding.api_key: must be text", "embedding.api_key: must be text"),
        ("http://a.example/?monkey=1&author=2", "http://a.example/?monkey=1&author=2"),
    ],
)
def test_credentials_are_masked_by_where_they_stand(text, shown):
    assert masked(text) == shown
    assert masked(shown) == shown


TOKEN = "pqt_4cNHjx1SEGJaSUgMHf6ItwZIIBPsRu3HrH6cW20tuSGP3XUmPq"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (TOKEN, "pqt_***"),
        (f"no route for {TOKEN}.", "no route for pqt_***."),
        (f"Authorization: Bearer {TOKEN}", "Authorization: Bearer ***"),
        (f"X-Parquetry-Token: {TOKEN}", "X-Parquetry-Token: pqt_***"),
        (f"({TOKEN}{TOKEN})", "(pqt_***)"),
        (f"cut off: {TOKEN[:24]}", "cut off: pqt_***"),
        (f"b'{TOKEN}', {{'a': '{TOKEN}'}}", "b'pqt_***', {'a': 'pqt_***'}"),
        ("begins with pqt_4cNHjx1S...", "begins with pqt_4cNHjx1S..."),
        ("the column pqt_something_else_of_a_table", "the column pqt_something_else_of_a_table"),
    ],
)
def test_token_of_the_service_is_masked_by_its_form_wherever_it_stands(text, shown):
    """A process that never saw the token before has no other way to know it."""
    assert masked(text) == shown
    assert masked(shown) == shown


def test_secret_is_not_cut_in_two_before_it_is_masked(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    assert excerpt(f"12345{SECRET}", 9) == "12345***"


@pytest.mark.slow
@pytest.mark.parametrize(
    "unit",
    ["a", "a://b:", "http://", "https://x@", "://@", "?a.b_", "?key", "Basic ", "Basic YTpi", '"token":', "cookie: ",
     "x-api-key=a ", "Signature=", "authorization: a ", "a.", "Basic YTpiY2RlZmdoaQ== ", "pqt_",
     "pqt_aaaaaaaaaaaaaaaa_"],
)  # fmt: skip
def test_time_grows_with_the_text(unit):
    def seconds(characters):
        text = unit * (characters // len(unit))
        taken = []
        for _ in range(3):
            before = process_time()
            masked(text)
            masked(f"{text}@")
            taken.append(process_time() - before)
        return min(taken)

    assert seconds(1_000_000) < 25 * max(seconds(100_000), 0.01)
