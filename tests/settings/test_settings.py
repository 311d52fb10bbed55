"""An invalid settings file is answered with one line per mistake: file, key, value, and a valid alternative."""

import pytest

from parquetry.errors import SettingsError
from parquetry.settings.sections import Settings, load_settings, override, parse_settings
from parquetry.sources.web.source import WebOptions


def complaint(values):
    with pytest.raises(SettingsError) as raised:
        parse_settings(values, "parquetry.toml")
    return str(raised.value)


SOURCE = {"name": "docs", "uri": "docs"}


@pytest.mark.parametrize(
    ("values", "line"),
    [
        pytest.param(
            {"chunking": {"sise": 5}}, "unknown setting chunking.sise; did you mean chunking.size?", id="misspelt-key"
        ),
        pytest.param({"chunkin": {}}, "unknown setting chunkin; did you mean chunking?", id="misspelt-section"),
        pytest.param(
            {"source": [SOURCE, {**SOURCE, "name": "b", "exclud": []}]},
            "unknown setting source[1].exclud; did you mean source[1].exclude?",
            id="misspelt-key-of-a-source",
        ),
        pytest.param(
            {"chunking": {"qqqq": 1}},
            "unknown setting chunking.qqqq; known: preset, size, overlap, unit, across_pages",
            id="nothing-like-it",
        ),
        pytest.param(
            {"chunking": {"size": "big"}},
            "chunking.size: Input should be a valid integer, unable to parse string as an integer (it is 'big')",
            id="wrong-type",
        ),
        pytest.param(
            {"chunking": {"size": 5}},
            "chunking.size: Input should be greater than or equal to 16 (it is 5)",
            id="too-small",
        ),
        pytest.param(
            {"chunking": {"size": 100, "overlap": 100}},
            "chunking: overlap (100) must be smaller than size (100)",
            id="overlap-of-a-whole-chunk",
        ),
        pytest.param(
            {"chunking": {"preset": "huge"}},
            "chunking.preset: Input should be 'characters-1200', 'characters-1000' or 'tokens-512' (it is 'huge')",
            id="unknown-preset",
        ),
        pytest.param(
            {"embedding": {"template": "{body}"}},
            "embedding: template '{body}' may only use {title}, {headings} and {text}",
            id="template-of-unknown-fields",
        ),
        pytest.param(
            {"embedding": {"template": "{title}"}},
            "embedding: template '{title}' must contain {text}",
            id="template-no-text",
        ),
        pytest.param(
            {"source": [{**SOURCE, "visibility": "organization"}]},
            'source[0]: visibility = "organization" needs org_id',
            id="organization-without-one",
        ),
        pytest.param(
            {"source": [{**SOURCE, "visibility": "individual"}]},
            'source[0]: visibility = "individual" needs user_id',
            id="individual-without-one",
        ),
        pytest.param({"source": [{"uri": "docs"}]}, "source[0].name: Field required", id="source-without-a-name"),
        pytest.param(
            {"source": [SOURCE, SOURCE]},
            "two sources of namespace 'default' are named 'docs'; names must differ",
            id="twins",
        ),
        pytest.param(
            {"namespace": [{"name": "hr"}]}, "namespace[0].embedder: Field required", id="namespace-without-an-embedder"
        ),
        pytest.param(
            {"namespace": [{"embedder": "wordllama"}]},
            "namespace[0].name: Field required",
            id="namespace-without-a-name",
        ),
        pytest.param(
            {"namespace": [{"name": "hr", "embeder": "wordllama", "embedder": "wordllama"}]},
            "unknown setting namespace[0].embeder; did you mean namespace[0].embedder?",
            id="misspelt-key-of-a-namespace",
        ),
        pytest.param(
            {"namespace": [{"name": "hr", "embedder": "wordllama"}, {"name": "hr", "embedder": "onnx:m"}]},
            "two [[namespace]] tables are named 'hr'; a namespace has one embedder",
            id="namespace-with-two-embedders",
        ),
        pytest.param(
            {"namespace": [{"name": "a/b", "embedder": "wordllama"}]},
            "namespace[0].name: String should match pattern '^[\\w.-]+$' (it is 'a/b')",
            id="slash-in-the-name-of-a-namespace",
        ),
        pytest.param(
            {"corpus": {"namespace": "a/b"}},
            "corpus.namespace: String should match pattern '^[\\w.-]+$' (it is 'a/b')",
            id="namespace-with-a-slash",
        ),
        pytest.param(
            {"corpus": {"root": ""}},
            "corpus.root: String should have at least 1 character (it is '')",
            id="root-of-a-variable-that-is-not-set",
        ),
        pytest.param(
            {"corpus": "here"}, "corpus: must be a table of settings (it is 'here')", id="section-that-is-none"
        ),
        pytest.param(
            {"source": {"name": "docs"}},
            "source: must be a list, each of its tables under [[source]]",
            id="source-that-is-no-list",
        ),
        pytest.param({"source": "docs"}, "source: must be a list (it is 'docs')", id="source-that-is-a-text"),
        pytest.param(
            {"corpus": [{"root": "kb"}]},
            "corpus: must be a table of settings, under [corpus] instead of [[corpus]]",
            id="section-that-is-a-list",
        ),
        pytest.param(
            {"source": [{**SOURCE, "schedule": "hourly"}]},
            "source[0]: schedule 'hourly' of source 'docs' is not a cron expression; "
            "'0 3 * * *' is every night at three (UTC)",
            id="schedule-that-is-no-cron-expression",
        ),
        pytest.param(
            {"source": [{**SOURCE, "schedule": "0 3 31 2 *"}]},
            "source[0]: schedule '0 3 31 2 *' of source 'docs' never fires; '0 3 * * *' is every night at three (UTC)",
            id="schedule-on-a-day-that-never-comes",
        ),
    ],
)
def test_mistake_is_one_line_with_key_value_and_remedy(values, line):
    found = complaint(values)
    assert found == f"parquetry.toml: {line}"
    assert "\n" not in found


def test_every_mistake_has_its_own_line():
    found = complaint({"chunking": {"sise": 5, "unit": "words"}, "corpus": {"root": 3}})
    assert [line.split(": ")[1].split(";")[0] for line in found.splitlines()] == [
        "corpus.root",
        "chunking.unit",
        "unknown setting chunking.sise",
    ]


def test_secrets_do_not_show_in_complaints():
    found = complaint({"llm": {"api_key": ["sk-secret"]}, "embedding": {"api_key": 5}})
    assert "sk-secret" not in found
    assert "sk-secret" not in str(parse_settings({"llm": {"api_key": "sk-secret"}}, "x"))


def test_same_name_in_two_namespaces_is_two_sources():
    settings = parse_settings({"source": [SOURCE, {**SOURCE, "namespace": "hr"}]}, "x")
    assert [source.namespace for source in settings.source] == [None, "hr"]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({}, (1200, 200, "characters")),
        ({"preset": "tokens-512"}, (512, 20, "tokens")),
        ({"preset": "characters-1000"}, (1000, 200, "characters")),
        ({"preset": "tokens-512", "overlap": 64}, (512, 64, "tokens")),
    ],
)
def test_preset_sets_what_is_not_set(values, expected):
    chunking = parse_settings({"chunking": values}, "x").chunking
    assert (chunking.size, chunking.overlap, chunking.unit) == expected


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"[corpus\nroot = 1", "is not valid TOML: .*line 1"),
        (b'[corpus]\nroot = "caf\xe9"', "cannot be read: .*utf-8"),
    ],
)
def test_file_that_cannot_be_understood_says_where(tmp_path, content, problem):
    file = tmp_path / "parquetry.toml"
    file.write_bytes(content)
    with pytest.raises(SettingsError, match=problem) as raised:
        load_settings(file)
    assert str(file) in str(raised.value)
    assert "\n" not in str(raised.value)


def test_missing_file_names_the_command_that_writes_one(tmp_path):
    with pytest.raises(SettingsError, match=r"nothing.toml does not exist; `parquetry init` writes one"):
        load_settings(tmp_path / "nothing.toml")


def test_folder_is_no_settings_file(tmp_path):
    with pytest.raises(SettingsError, match="cannot be read"):
        load_settings(tmp_path)


def test_no_file_means_defaults_and_a_file_in_the_working_folder_is_found(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert load_settings().corpus.root == "./corpus"
    (tmp_path / "parquetry.toml").write_text("[corpus]\nroot = 'kb'")
    assert load_settings().corpus.root == "kb"


def test_relative_places_are_relative_to_the_file(tmp_path):
    (tmp_path / "conf").mkdir()
    file = tmp_path / "conf" / "p.toml"
    places = ["docs", "../up", "/srv/docs", "s3://bucket/x"]
    tables = "".join(f"[[source]]\nname = '{n}'\nuri = '{place}'\n" for n, place in enumerate(places))
    file.write_text(f"[corpus]\nroot = 'kb'\nembedder = 'onnx:models/m'\n{tables}")
    settings = load_settings(file)
    assert settings.corpus.root == str(tmp_path / "conf" / "kb")
    assert settings.corpus.embedder == f"onnx:{tmp_path}/conf/models/m"
    assert [source.uri for source in settings.source] == [
        str(tmp_path / "conf" / "docs"),
        str(tmp_path / "up"),
        "/srv/docs",
        "s3://bucket/x",
    ]


def test_namespace_has_its_own_embedder_or_the_one_of_the_corpus(tmp_path):
    file = tmp_path / "p.toml"
    file.write_text("[corpus]\nembedder = 'openai:m'\n[[namespace]]\nname = 'hr'\nembedder = 'onnx:models/m'\n")
    settings = load_settings(file)
    assert settings.embedder_of("hr") == f"onnx:{tmp_path}/models/m"
    assert settings.embedder_of("legal") == "openai:m"
    assert settings.embedders == ("openai:m", f"onnx:{tmp_path}/models/m")


def test_embedder_that_several_namespaces_share_is_one():
    tables = [{"name": name, "embedder": "wordllama"} for name in ("hr", "it")]
    assert parse_settings({"namespace": tables}, "x").embedders == ("wordllama",)


def numbers():
    """Yield every numeric setting: section, name and field."""
    for section, field in Settings.model_fields.items():
        model = getattr(field.annotation, "__args__", [field.annotation])[0]
        for name, key in model.model_fields.items():
            if {int, float} & {key.annotation, *getattr(key.annotation, "__args__", ())}:
                yield pytest.param(section, name, key, id=f"{section}.{name}")


@pytest.mark.parametrize(("section", "name", "key"), list(numbers()))
@pytest.mark.parametrize("value", [10**30, 1e300, float("inf"), float("nan")], ids=["whole", "large", "inf", "nan"])
def test_every_number_has_a_maximum_that_is_told(section, name, key, value):
    (most,) = (bound.le for bound in key.metadata if hasattr(bound, "le"))
    needed = {"source": {"name": "a", "uri": "a"}, "agent": {"name": "a", "model": "m"}}.get(section)
    table = {name: value} if needed is None else {**needed, name: value}
    with pytest.raises(SettingsError, match=name) as refused:
        parse_settings({section: table if needed is None else [table]}, "x")
    assert "\n" not in str(refused.value)
    if value == 1e300 and key.annotation in (float, float | None):
        assert f"less than or equal to {most}" in str(refused.value)


def test_every_number_of_the_options_of_pages_has_a_maximum():
    numbers = [key for key in WebOptions.model_fields.values() if key.annotation in (int, float)]
    assert len(numbers) == 4
    assert all(any(hasattr(bound, "le") for bound in key.metadata) for key in numbers)


def test_override_is_checked_and_keeps_the_rest():
    settings = parse_settings({"chunking": {"size": 500}, "llm": {"api_key": "sk-1"}}, "x")
    changed = override(settings, {"corpus": {"root": "kb"}})
    assert (changed.corpus.root, changed.chunking) == ("kb", settings.chunking)
    assert changed.llm.api_key.get_secret_value() == "sk-1"
    with pytest.raises(SettingsError, match=r"command line: corpus\.namespace: String should match"):
        override(settings, {"corpus": {"namespace": ""}} | {"corpus": {"namespace": "a b"}})


def test_override_keeps_keys_that_win_over_a_preset():
    settings = parse_settings({"chunking": {"preset": "tokens-512", "overlap": 64}}, "x")
    assert override(settings, {"corpus": {"root": "kb"}}).chunking == settings.chunking
