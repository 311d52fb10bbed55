"""Settings follow migrations as long as they say what a migration knows."""

from datetime import UTC, datetime

import pytest

from parquetry.planning.migration import (
    Migration,
    Migrations,
    SettingChange,
    changed,
    changes_to,
    embedder_key,
    followed,
    outdated_line,
    parse_target,
    sides,
    target_column,
)
from parquetry.settings.sections import parse_settings

AT = datetime(2026, 11, 26, tzinfo=UTC)


def settings(embedder="old", namespaces=(), **chunking):
    values = {"corpus": {"embedder": embedder}, "chunking": chunking}
    return parse_settings({**values, "namespace": [{"name": n, "embedder": e} for n, e in namespaces]}, "test")


def migration(*changes, state="switched", key="k"):
    return Migration(key, tuple(SettingChange(*each) for each in changes), (), AT, state)


TO_NEW = migration(("corpus.embedder", "old", "new"))
BACK = migration(("corpus.embedder", "new", "old"))
LEGAL = migration(("namespace.legal.embedder", "old", "new"))


@pytest.mark.parametrize(
    ("said", "migrations", "expected"),
    [
        ("old", [], "old"),
        ("old", [TO_NEW], "new"),
        ("new", [TO_NEW], "new"),
        ("third", [TO_NEW], "third"),
        ("old", [TO_NEW, BACK], "old"),
        ("new", [TO_NEW, BACK], "old"),
        ("old", [TO_NEW, migration(("corpus.embedder", "new", "newest"))], "newest"),
    ],
)
def test_embedder_that_a_migration_knows_is_followed_and_any_other_stays(said, migrations, expected):
    found, outdated = followed(settings(said), migrations)
    assert found.corpus.embedder == expected
    assert [(each.before, each.after) for each in outdated] == ([(said, expected)] if said != expected else [])


def test_migration_of_one_namespace_leaves_the_others():
    found, outdated = followed(settings("old"), [LEGAL])
    assert (found.embedder_of("legal"), found.embedder_of("default")) == ("new", "old")
    assert 'namespace.legal.embedder = "new" instead of "old"' in outdated_line("corpus", outdated)
    agreed, nothing = followed(settings("old", [("legal", "new")]), [LEGAL])
    assert (agreed.embedder_of("legal"), nothing) == ("new", ())


def test_chunk_settings_are_followed_one_by_one():
    sizes = migration(("chunking.size", 1200, 800), ("chunking.overlap", 200, 100))
    found, outdated = followed(settings(size=1200, overlap=50), [sizes])
    assert (found.chunking.size, found.chunking.overlap) == (800, 50)
    assert [each.key for each in outdated] == ["chunking.size"]


def test_both_sides_do_not_depend_on_what_the_settings_say():
    for said in ("old", "new"):
        before, after = sides(settings(said), TO_NEW)
        assert (before.corpus.embedder, after.corpus.embedder) == ("old", "new")


def test_explicit_keys_win_over_a_preset():
    found = changed(settings(preset="tokens-512"), [SettingChange("chunking.size", 512, 256)])
    assert (found.chunking.size, found.chunking.unit) == (256, "tokens")


def test_values_that_are_there_already_are_no_changes():
    assert changes_to(settings("old", size=800), [("corpus.embedder", "old"), ("chunking.size", 800)]) == ()
    (change,) = changes_to(settings("old"), [(embedder_key("legal"), "new")])
    assert (change.key, change.before) == ("namespace.legal.embedder", "old")


def test_target_is_read_as_it_was_written():
    each = Migration("k", TO_NEW.changes, ("hash", "new@8"), AT)
    assert parse_target(target_column(each)) == (each.changes, each.models)


def test_migrations_are_told_apart_by_their_state():
    known = Migrations(
        (TO_NEW, migration(("corpus.embedder", "new", "other"), state="abandoned"), migration(state="building"))
    )
    assert (known.active, known.switched) == (known.all[2], (TO_NEW,))
    assert known.embedders == ("old", "new")


def test_masks_give_every_revision_another_number_and_lead_back():
    mask = TO_NEW.mask
    revisions = {1, 2, 12345, 2**62}
    candidates = {revision ^ mask for revision in revisions}
    assert not candidates & revisions
    assert {candidate ^ mask for candidate in candidates} == revisions
    assert all(0 < candidate < 2**63 for candidate in candidates)
