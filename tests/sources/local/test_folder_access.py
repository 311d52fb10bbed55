"""Access to the documents of a folder; a mistake in it never widens the access."""

import os
import re

import pytest

from parquetry.errors import SettingsError
from parquetry.model import Access, Item, Unlisted
from parquetry.sources.base import Place
from parquetry.sources.local.source import LocalSource, open_local

PUBLIC = Access()
ADA = Access("individual", user_id="ada")


def write(root, **files):
    for path, text in files.items():
        file = root / path.replace("__", "/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


def say(root, folder, text):
    (root / folder).mkdir(parents=True, exist_ok=True)
    (root / folder / ".parquetry.toml").write_text(text)


def seen(source, prefix=""):
    """Return path -> access, or the message about an unlisted path."""
    return {found.path: found.access if isinstance(found, Item) else found.detail for found in source.scan(prefix)}


@pytest.fixture
def root(tmp_path):
    for path in ("a.md", "hr/b.md", "hr/ada/c.md", "hr/ada/deep/d.md", "it/e.md"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(path)
    return tmp_path


# --- sidecars


def test_folder_without_a_word_has_the_access_of_its_source(root):
    assert set(seen(LocalSource(root, access=ADA)).values()) == {ADA}


def test_what_is_nearest_wins_key_by_key(root):
    say(root, "", 'tags = ["all"]')
    say(root, "hr", 'visibility = "organization"\norg_id = "acme"\ntags = ["policy"]')
    say(root, "hr/ada", 'visibility = "individual"\nuser_id = "ada"')
    say(root, "hr/ada/deep", 'visibility = "public"\ntags = []')
    assert seen(LocalSource(root)) == {
        "a.md": Access(tags=("all",)),
        "hr/b.md": Access("organization", org_id="acme", tags=("policy",)),
        "hr/ada/c.md": Access("individual", org_id="acme", user_id="ada", tags=("policy",)),
        "hr/ada/deep/d.md": Access(),
        "it/e.md": Access(tags=("all",)),
    }


@pytest.mark.parametrize("prefix", ["hr/ada", "hr/ada/deep/d.md", "hr"])
def test_part_of_a_source_has_the_access_that_the_whole_lists(root, prefix):
    say(root, "hr", 'visibility = "individual"\nuser_id = "ada"')
    source = LocalSource(root)
    whole = seen(source)
    part = seen(source, prefix)
    assert part == {path: access for path, access in whole.items() if f"{path}/".startswith(f"{prefix}/")} != {}


def test_sidecar_is_no_document_even_where_hidden_files_are(root):
    say(root, "hr", 'tags = ["x"]')
    assert set(seen(LocalSource(root, exclude=["!.*"]))) == {
        "a.md", "hr/b.md", "hr/ada/c.md", "hr/ada/deep/d.md", "it/e.md",
    }  # fmt: skip


def test_change_of_a_sidecar_is_noticed_by_the_next_listing(root):
    source = LocalSource(root)
    assert seen(source)["hr/b.md"] == PUBLIC
    say(root, "hr", 'visibility = "individual"\nuser_id = "ada"')
    assert seen(source)["hr/b.md"] == ADA
    (root / "hr" / ".parquetry.toml").unlink()
    assert seen(source)["hr/b.md"] == PUBLIC


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("visibility = ", "is not valid TOML"),
        ('visibility = "secret"', "visibility: .*'public', 'organization' or 'individual'"),
        ('visibilty = "individual"', "unknown setting visibilty; did you mean visibility"),
        ('visibility = "individual"', "needs user_id"),
        ('visibility = "organization"', "needs org_id"),
        ('user_id = "ada"', 'user_id says nothing here; add visibility = "individual"'),
        ('org_id = "acme"', 'org_id says nothing here; add visibility = "organization"'),
        ('visibility = "individual"\nuser_id = ""', "user_id"),
        ('tags = "x"', "tags: must be a list"),
        ("x" * 70_000, "has more than 65536 bytes"),
        ("\x00", "is not valid TOML"),
        ("tags = " + "[" * 30_000 + "]" * 30_000, r"is not valid TOML: nested deeper than 100 levels \(too-deep\)"),
        ("tags" + ".a" * 30_000 + " = 1", r"is not valid TOML: nested deeper than 100 levels \(too-deep\)"),
    ],
)
def test_broken_sidecar_hides_its_folder_and_says_why(root, text, problem):
    say(root, "hr", text)
    found = seen(LocalSource(root))
    assert set(found) == {"a.md", "it/e.md", "hr"}
    assert found["hr"].startswith("hr/.parquetry.toml")
    assert re.search(problem, found["hr"])
    (only,) = LocalSource(root).scan("hr/ada")
    assert isinstance(only, Unlisted)


def test_sidecar_that_is_no_file_of_this_folder_hides_it(root):
    elsewhere = root / "it" / "said.toml"
    elsewhere.write_text('visibility = "public"')
    (root / "hr" / ".parquetry.toml").symlink_to(elsewhere)
    (root / "it" / ".parquetry.toml").mkdir()
    os.mkfifo(root / "hr" / "ada" / ".parquetry.toml")
    found = seen(LocalSource(root, access=ADA))
    assert set(found) == {"a.md", "hr", "it"}


def test_link_is_seen_by_those_who_see_the_file(root):
    """Otherwise a user who may write to a shared folder could publish files that only the program may read."""
    say(root, "hr/ada", 'visibility = "individual"\nuser_id = "ada"')
    (root / "it" / "borrowed.md").symlink_to(root / "hr" / "ada" / "deep" / "d.md")
    assert seen(LocalSource(root))["it/borrowed.md"] == ADA
    say(root, "hr", "broken")
    found = seen(LocalSource(root))
    assert "hr/.parquetry.toml is not valid TOML" in found["it/borrowed.md"]


def test_very_deep_folder_is_no_trouble(tmp_path):
    deep = "/".join(["d"] * 500)
    folder = tmp_path
    for _ in range(500):
        folder = folder / "d"
        folder.mkdir()
    (tmp_path / deep / "x.md").write_text("x")
    say(tmp_path, "d", 'visibility = "individual"\nuser_id = "ada"')
    assert seen(LocalSource(tmp_path), f"{deep}/x.md") == {f"{deep}/x.md": ADA}


# --- agent layout


def test_every_folder_is_its_agents_and_shared_is_as_the_source_says(tmp_path):
    write(tmp_path, **{"root.md": "", "shared__a.md": "", "shared__ada__b.md": "", "ada__c.md": "", "ada__x__d.md": ""})
    place = Place("kb", str(tmp_path), Access("organization", org_id="acme"), options={"access": "agents"})
    assert seen(open_local(place)) == {
        "root.md": Access("organization", org_id="acme"),
        "shared/a.md": Access("organization", org_id="acme"),
        "shared/ada/b.md": Access("organization", org_id="acme"),
        "ada/c.md": Access("individual", org_id="acme", user_id="ada"),
        "ada/x/d.md": Access("individual", org_id="acme", user_id="ada"),
    }


def test_sidecar_stands_above_the_layout(tmp_path):
    write(tmp_path, **{"ada__c.md": "", "ada__open__d.md": ""})
    say(tmp_path, "ada/open", 'visibility = "public"')
    place = Place("kb", str(tmp_path), options={"access": "agents"})
    assert seen(open_local(place)) == {"ada/c.md": ADA, "ada/open/d.md": PUBLIC}


@pytest.mark.parametrize("folder", ["", "shared", "ada", "ada/open"])
@pytest.mark.parametrize("said", ['visibility = "public"', 'visibility = "organization"\norg_id = "other"'])
def test_sidecar_of_the_layout_shows_nothing_to_whom_the_source_does_not(tmp_path, folder, said):
    """Agents write these files themselves."""
    write(tmp_path, **{"readme.md": "", "shared__a.md": "", "ada__b.md": "", "ada__open__c.md": ""})
    say(tmp_path, folder, said)
    place = Place("kb", str(tmp_path), Access("organization", org_id="acme"), options={"access": "agents"})
    found = seen(open_local(place))
    shown = f"{folder}/.parquetry.toml" if folder else ".parquetry.toml"
    assert found.pop(folder) == (
        f"{shown}: it would show more than the source allows, which is organization acme; narrow it, or change the "
        "visibility of the source"
    )
    assert not [path for path in found if f"{path}/".startswith(f"{folder}/")]
    assert {access.org_id for access in found.values()} <= {"acme"}
    assert "public" not in {access.visibility for access in found.values()}


def test_sidecar_of_the_layout_may_narrow(tmp_path):
    write(tmp_path, **{"shared__a.md": "", "shared__hr__b.md": "", "ada__c.md": ""})
    say(tmp_path, "shared/hr", 'visibility = "individual"\nuser_id = "eve"')
    say(tmp_path, "ada", 'visibility = "organization"\norg_id = "acme"')
    place = Place("kb", str(tmp_path), Access("organization", org_id="acme"), options={"access": "agents"})
    assert seen(open_local(place)) == {
        "shared/a.md": Access("organization", org_id="acme"),
        "shared/hr/b.md": Access("individual", org_id="acme", user_id="eve"),
        "ada/c.md": Access("organization", org_id="acme"),
    }


def test_layout_of_a_source_that_one_user_may_see_is_refused(tmp_path):
    place = Place("kb", str(tmp_path), ADA, options={"access": "agents"})
    with pytest.raises(
        SettingsError, match=r'source kb: access = "agents" shows each folder to another user, .* ada alone'
    ):
        open_local(place)


def test_unknown_layout_is_refused(tmp_path):
    with pytest.raises(SettingsError, match="source kb: options: access"):
        open_local(Place("kb", str(tmp_path), options={"access": "teams"}))
