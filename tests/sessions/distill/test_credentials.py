"""Credentials are recognised by their form and masked; sentences about them are left alone."""

from __future__ import annotations

import pytest

from parquetry.credentials import credentials, masked

# A `·` prevents secret scanners of repositories from matching these.
SECRET = [
    ("The key is sk-proj·-abcDEF1234567890abcDEF1234567890.", "The key is [secret]."),
    ("AKI·AIOSFODNN7EXAMPLE is the access key.", "[secret] is the access key."),
    ("ghp·_abcdefghijklmnopqrstuvwxyz0123456789", "[secret]"),
    ("password: hunter2", "password: [secret]"),
    ("The password for the staging database is s3cr3t!pass", "The password for the staging database is [secret]"),
    ("Das Passwort lautet Sommer2024!", "Das Passwort lautet [secret]"),
    ("DB_PASSWORD=correcthorse1", "DB_PASSWORD=[secret]"),
    ('api_key = "abcdefgh12345678"', 'api_key = "[secret]"'),
    ("postgres://app:Pa55word@db.internal:5432/app", "postgres://app:[secret]@db.internal:5432/app"),
    ("Authorization: Bearer abcdef0123456789abcdef", "Authorization: Bearer [secret]"),
    ("eyJhbGc·iOiJIUzI1NiJ9.eyJzdWI·iOiIxMjM0In0.abcdefghijk", "[secret]"),
    ("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "[secret]"),
    ("xoxb·-123456789012-abcdefghij", "[secret]"),
    ("The PIN is 4711.", "The PIN is [secret]"),
    ('The wifi password is "sunflower"', 'The wifi password is "[secret]"'),
    ("token=9f86d081884c7d659a2f", "token=[secret]"),
    ("My password was changed to Xy7$kk", "My password was changed to [secret]"),
    ("The secret is abc123xyz", "The secret is [secret]"),
    ("The passphrase is correct-horse-battery-9", "The passphrase is [secret]"),
    ("client_secret: 8Q~abcdefghijk", "client_secret: [secret]"),
    ("contraseña: Verano2024", "contraseña: [secret]"),
    ("密码是 abc12345", "密码是 [secret]"),
    ("glpat·-abcdefghij0123456789", "[secret]"),
    ("AIzaS·yA1234567890abcdefghijklmnopqrstuv", "[secret]"),
    ("curl -H 'Authorization: Basic dXNlcjpwYXNzd29yZDEyMw=='", "curl -H 'Authorization: Basic [secret]'"),
    ("AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEY", "AWS_SECRET_ACCESS_KEY=[secret]"),
    ("The login is ada and the password is Tr0ub4dor&3.", "The login is ada and the password is [secret]"),
    ("https://hooks.slack.com/services·/T00000000/B00000000/XXXXabcdefghijklmnop", "https://[secret]"),
    ("Her PIN code is 1234.", "Her PIN code is [secret]"),
    ("sk_live·_abcdefghijklmnop1234", "[secret]"),
    ("npm·_abcdefghijklmnopqrstuvwxyz0123456789", "[secret]"),
    ("pqt·_4cNHjx1SEGJaSUgMHf6ItwZIIBPsRu3HrH6cW20tuSGP3XUmP", "[secret]"),
    ("wachtwoord: Zomer2024", "wachtwoord: [secret]"),
    ('{"api_key": "f00dfacef00dface1234"}', '{"api_key": "[secret]"}'),
    ("mysql -p: PASSWORD='s3cret-pass'", "mysql -p: PASSWORD='[secret]'"),
    ("пароль: Лето2024", "пароль: [secret]"),
]
OTHER = [
    "Part ID00000000000000000000000000000000042x is obsolete.",
    "The password is required.",
    "Passwords must have at least 12 characters.",
    "The password is never stored in the repository.",
    "The token expires after 3600 seconds.",
    "Tokens are rotated every 90 days.",
    "The API key is read from the environment variable OPENAI_API_KEY.",
    'password = os.environ["DB_PASSWORD"]',
    "The secret is to keep the dough cold.",
    "The key to good tests is isolation.",
    "api_key: <your key>",
    "PASSWORD=${DB_PASSWORD}",
    "token: [secret]",
    "Commit 3fa2c8110123456789abcdef0123456789abcdef broke the build.",
    "The class KnowledgeBaseRefreshControllerFactoryBean2 is too long.",
    "The limit is set by max_tokens = 4096.",
    "Token: 128k context",
    "The pin is on the board.",
    "Basic authentication is disabled.",
    "Bearer tokens are checked by the gateway.",
    "The Secret Garden is her favourite book.",
    "The access token is valid for 15 minutes.",
    "sk-learn is used for clustering.",
    "Each token is about 4 characters.",
    "The master key is kept in the vault.",
    "https://example.org/a/b?c=d is the handbook.",
    "The tokenizer is tiktoken-0.8",
    "Her favourite book is The Secret: it changed her life.",
    "The password of the handbook chapter is explained on page 3.",
    "Use a password manager.",
    "Secret: none",
    "The session token is a UUID.",
    "Wheels: parquetry-0.1.0-py3-none-any.whl",
    "docker.io/library/postgres@sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "The path is /usr/local/lib/python3.11/site-packages/knowledge",
    "TestBuildDAGs_LargeDataset/Single_session_with_10000_records failed.",
    "The token was left out and the changelog moved to specstory-cli/changelog.md",
    "ThisIsAVeryLongClassNameWithoutAnyDigits",
    "http://localhost:8080/path@2",
    "PIN the version of numpy to 2.1.",
    "He lost his keys: three of them.",
    "max_tokens: 4096",
]


@pytest.mark.parametrize(("text", "shown"), SECRET)
def test_a_credential_is_masked_and_nothing_else(text, shown):
    assert masked(text.replace("·", "")) == shown
    assert "[secret]" in shown


@pytest.mark.parametrize("text", OTHER)
def test_what_only_looks_like_it_is_left_alone(text):
    assert masked(text) == text


def test_a_private_key_is_masked_to_its_end_or_to_the_end_of_the_text():
    key = "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1r\nZXktdjE=\n-----END OPENSSH PRIVATE KEY-----"
    assert masked(f"Here:\n{key}\nThanks.") == "Here:\n[secret]\nThanks."
    assert masked(f"Here:\n{key[:60]}") == "Here:\n[secret]"


def test_a_masked_text_has_nothing_more_to_mask():
    for text, shown in SECRET:
        assert masked(shown) == shown, text


def test_places_do_not_overlap():
    text = "token=ghp" + "_abcdefghijklmnopqrstuvwxyz0123456789 and password: hunter2"
    spans = credentials(text)
    assert [text[start:end] for start, end in spans] == ["ghp" + "_abcdefghijklmnopqrstuvwxyz0123456789", "hunter2"]


HOSTILE = {
    "dots": "a." * 50_000,
    "half web tokens": "eyJaaaaaaaa." * 8000,
    "words": "password is " * 9000,
    "beginnings": "sk-" * 30_000,
    "addresses": "http://" * 9000,
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_text_takes_no_time_worth_mentioning(text):
    """No timing: a pattern that scans to the end from every start would exceed the test's time limit."""
    masked(text)


def test_what_this_process_is_let_in_with_is_a_credential_whatever_it_looks_like(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "open sesame please")
    assert masked("Say open sesame please twice: open sesame please.") == "Say [secret] twice: [secret]."
