"""Knowledge arrays of agent files become sources with the right audience."""

import json

import pytest

from parquetry.errors import SettingsError
from parquetry.settings.agent_files import plan_sources, read_agent
from parquetry.settings.sections import load_settings
from parquetry.settings.template import template


@pytest.fixture
def agent(tmp_path):
    """Return a function that writes an agent file and reads it."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "leave.md").write_text("Thirty days.")
    (tmp_path / "oak.txt").write_text("Oak.")

    def write(knowledge, name="Ada", file="ada.json", **more):
        path = tmp_path / file
        path.write_text(json.dumps({"name": name, "bio": ["..."], "knowledge": knowledge, **more}))
        return read_agent(path)

    return write


def as_tuples(plan):
    return [(each.name, each.uri, each.visibility, each.user_id, each.org_id) for each in plan.sources]


def test_every_form_of_an_item(agent, tmp_path):
    ada = agent(
        [
            "The lift is inspected in May.",
            {"path": "oak.txt"},
            {"directory": "docs", "shared": True},
            {"item": {"case": "path", "value": "docs/leave.md"}},
            {"item": {"case": "directory", "value": {"directory": ".", "shared": True}}},
        ]
    )
    plan = plan_sources([ada], tmp_path, None)
    assert as_tuples(plan) == [
        ("Ada-texts", "./knowledge/Ada", "individual", "Ada", None),
        ("Ada-oak.txt", "./oak.txt", "individual", "Ada", None),
        ("docs", "./docs", "public", None, None),
        ("Ada-leave.md", "./docs/leave.md", "individual", "Ada", None),
        (tmp_path.name, "./.", "public", None, None),
    ]
    (text,) = plan.texts
    assert text.file.parent == tmp_path / "knowledge" / "Ada"
    assert text.file.name.startswith("The-lift-is-inspected-in-May-")
    assert text.text == "The lift is inspected in May."


def test_owner_is_the_id_and_shared_is_for_the_organization(agent, tmp_path):
    ada = agent([{"path": "oak.txt"}, {"directory": "docs", "shared": True}], id="7f1c")
    assert as_tuples(plan_sources([ada], tmp_path / "etc", "acme")) == [
        ("Ada-oak.txt", "../oak.txt", "individual", "7f1c", None),
        ("docs", "../docs", "organization", None, "acme"),
    ]


def test_what_several_agents_share_is_one_source(agent, tmp_path):
    agents = [
        agent([{"directory": "docs", "shared": True}, "One."]),
        agent(["Two.", {"directory": "./docs", "shared": True}], "Bob", "bob.json"),
    ]
    plan = plan_sources(agents, tmp_path, None)
    assert [each.name for each in plan.sources] == ["docs", "Ada-texts", "Bob-texts"]
    assert len(plan.texts) == 2


def test_names_of_sources_differ(agent, tmp_path):
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "docs").mkdir()
    items = [{"directory": "docs", "shared": True}, {"directory": "other/docs", "shared": True}]
    assert [each.name for each in plan_sources([agent(items)], tmp_path, None).sources] == ["docs", "docs-2"]


def test_one_place_has_one_audience(agent, tmp_path):
    """A source has one audience; the wider one would show what is private."""
    agents = [agent([{"directory": "docs"}]), agent([{"directory": "docs", "shared": True}], "Bob", "bob.json")]
    with pytest.raises(SettingsError, match=r"bob\.json: knowledge\[0\]: docs is also knowledge of others"):
        plan_sources(agents, tmp_path, None)


def test_written_settings_load(agent, tmp_path):
    odd = agent([{"directory": "docs"}, 'A "quoted" text\\ with é'], name='A "b" \x7f c')
    plan = plan_sources([odd], tmp_path, None)
    (tmp_path / "parquetry.toml").write_text(template([each.as_toml() for each in plan.sources]), "utf-8")
    sources = load_settings(tmp_path / "parquetry.toml").source
    assert [each.name for each in sources] == [each.name for each in plan.sources]
    assert {each.user_id for each in sources} == {'A "b" \x7f c'}
    assert sources[0].uri == str(tmp_path / "docs")


@pytest.mark.parametrize(
    ("item", "problem"),
    [
        (7, "has no known form"),
        (None, "has no known form"),
        ({}, "has no known form"),
        ({"path": "oak.txt", "directory": "docs"}, "has no known form"),
        ({"path": 7}, "its path is empty or no text"),
        ({"path": "a\0b"}, "its path is empty or no text"),
        ({"path": "oak.txt", "shared": "yes"}, "shared is neither true nor false"),
        ({"path": "oak.txt", "public": True}, "unknown key 'public'"),
        ({"item": {"case": "url", "value": "x"}}, "has an unknown case"),
        ({"item": {"case": "path"}}, "its path is empty or no text"),
        ({"item": {"case": "path", "value": "oak.txt", "more": 1}}, "unknown key 'more'"),
        ({"item": "oak.txt"}, "has no known form"),
        ("  ", "its text is empty or no text"),
        ("\ud800", "its text is empty or no text"),
    ],
    ids=str,
)
def test_malformed_item_is_named(agent, item, problem):
    with pytest.raises(SettingsError, match=rf"ada\.json: knowledge\[1\].* {problem}") as refused:
        agent(["fine", item])
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("[]", "holds no object"),
        ("{", "is not JSON"),
        ("[" * 100_000, "is nested too deep"),
        ('{"knowledge": []}', "has neither name nor id"),
        ('{"name": "Ada", "knowledge": "text"}', "knowledge is no array"),
        ("\xff", "is not JSON in UTF-8"),
    ],
    ids=["array", "cut", "deep", "no-name", "knowledge", "latin-1"],
)
def test_malformed_file_is_one_line(tmp_path, content, problem):
    file = tmp_path / "agent.json"
    file.write_bytes(content.encode("latin-1"))
    with pytest.raises(SettingsError, match=problem) as refused:
        read_agent(file)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("item", "problem"),
    [
        ({"path": "nothing.md"}, "nothing.md"),
        ({"path": "docs"}, "is a folder"),
        ({"directory": "oak.txt"}, "is no folder"),
    ],
    ids=["missing", "folder", "file"],
)
def test_place_that_is_not_there_is_named(agent, tmp_path, item, problem):
    with pytest.raises(SettingsError, match=rf"knowledge\[0\].*{problem}"):
        plan_sources([agent([item])], tmp_path, None)


def test_agent_without_knowledge_is_told(agent, tmp_path):
    with pytest.raises(SettingsError, match="there is no knowledge in it"):
        plan_sources([agent([])], tmp_path, None)
