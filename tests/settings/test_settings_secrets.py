"""Messages about invalid settings contain no values that may be secret, and no long values."""

import traceback

import pytest

from parquetry.errors import SettingsError
from parquetry.masking import masked
from parquetry.settings.sections import parse_settings

KEY = "sk-proj-a8s7d6f5a8s7d6f5"
LONG = "x" * 81


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"embedding": {"api_key": 12345}}, "embedding.api_key: Input should be a valid string (it is not shown"),
        ({"extraction": {"passwords": "opens it"}}, "extraction.passwords: must be a list (it is not shown"),
        ({"embedding": {"timeout_seconds": KEY}}, "embedding.timeout_seconds: Input should be a valid number"),
        ({"embedding": {"template": KEY}}, "template (not shown: it may be a secret) must contain {text}"),
        ({"source": [{"name": "a", "uri": "b", "schedule": KEY}]}, "schedule (not shown: it may be a secret) of"),
        ({"embedding": {"template": LONG}}, f"template (of {len(LONG)} characters) must contain {{text}}"),
        ({"chunking": {"unit": LONG}}, f"(it is of {len(LONG)} characters)"),
        ({"chunking": {LONG: 1}}, "unknown setting chunking.x"),
        ({"embedding": {"password": "opens it"}}, "unknown setting embedding.password; known: "),
        ({"corpus": {"root": ["http://me:opens it@b"]}}, "corpus.root: Input should be a valid string"),
    ],
)
def test_value_that_may_be_a_secret_or_is_long_is_not_repeated(values, told):
    with pytest.raises(SettingsError) as refusal:
        parse_settings(values, "f.toml")
    assert told in str(refusal.value)
    # The traceback that Prefect logs.
    logged = "".join(traceback.format_exception(refusal.value))
    assert not [secret for secret in (KEY, LONG, "opens it", "12345") if secret in str(refusal.value) + logged]


@pytest.mark.parametrize("values", [{"chunking": {"unit": "words"}}, {"corpus": {"namespace": "two words"}}])
def test_other_values_are_repeated(values):
    ((_, keys),) = values.items()
    (value,) = keys.values()
    with pytest.raises(SettingsError, match=rf"\(it is '{value}'\)$"):
        parse_settings(values, "f.toml")


def test_name_of_a_variable_with_a_key_is_told_and_a_key_in_its_place_is_not():
    """The message about a variable that is not set would name `***`."""
    options = {"access_key_id": "env:SHELF_KEY_ID_7", "account_key": "planted-123-key"}
    parse_settings({"source": [{"name": "a", "uri": "s3://b", "options": options}]}, "f.toml")
    assert masked("no variable 'SHELF_KEY_ID_7'; planted-123-key") == "no variable 'SHELF_KEY_ID_7'; ***"
