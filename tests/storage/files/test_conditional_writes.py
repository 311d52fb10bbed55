"""A store that does not honour conditional writes is detected before anything is written to it."""

import pytest

from parquetry.errors import SettingsError
from parquetry.storage.files.conditional_writes import probe, probe_without_race
from parquetry.storage.files.layout import PROBE, layout_of
from parquetry.storage.lake.lake import Lake
from parquetry.storage.maintenance.doctor import examine
from tests.storage.shelf import Shelf

pytestmark = pytest.mark.slow

ROOT = "s3://bucket/kb"


@pytest.fixture
def store(small_store, monkeypatch, tmp_path):
    small_store.reset()
    for name, value in small_store.environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return small_store


@pytest.mark.parametrize(
    ("conditions", "quick", "raced"),
    [
        ("honoured", None, None),
        ("ignored", "ignores conditional writes", "ignores conditional writes"),
        ("refused", "refuses conditional writes", "refuses conditional writes"),
        ("raced", None, "of 4 conditional writes at the same moment win"),
    ],
)
def test_probe_tells_what_a_store_does(store, conditions, quick, raced):
    store.conditions(conditions)
    for test, expected in ((probe_without_race, quick), (probe, raced)):
        found = test(layout_of(ROOT))
        assert (expected in found.what) if expected else (found is None), found
    assert set(store.objects()) <= {f"/bucket/kb/{PROBE}"}


def test_quick_probe_of_a_known_store_is_one_request(store):
    probe_without_race(layout_of(ROOT))
    store.requests()
    assert probe_without_race(layout_of(ROOT)) is None
    assert store.requests() == [["PUT", f"/bucket/kb/{PROBE}"]]


@pytest.mark.parametrize("conditions", ["ignored", "raced"])
def test_corpus_is_not_made_on_an_unsafe_store_and_the_error_says_what_to_do(store, conditions):
    store.conditions(conditions)
    with pytest.raises(SettingsError, match=r"corpus s3://bucket/kb: .*set single_writer = true in \[corpus\]"):
        Lake(ROOT, create=True)
    assert not Lake.exists(ROOT)


@pytest.mark.parametrize("single", [True, False])
def test_store_that_refuses_conditions_can_hold_no_corpus(store, single):
    """The Delta engine has no other way to commit."""
    store.conditions("refused")
    with pytest.raises(SettingsError, match=r"refuses conditional writes \(If-None-Match\); .*use another store"):
        Lake(ROOT, create=True, single_writer=single)


@pytest.mark.parametrize("conditions", ["ignored", "refused"])
def test_store_that_became_unsafe_is_not_written_to(store, conditions):
    shelf = Shelf(ROOT)
    shelf.publish({"a.md": ["one"]})
    store.conditions(conditions)
    for write in (
        lambda: Lake(ROOT, create=True),
        lambda: Lake(ROOT).publish(shelf.lake.snapshot(), shelf.rows(), "run-9"),
        lambda: Lake(ROOT).record({"run_id": "run-9"}, []),
        lambda: Lake(ROOT).record_searches([{}]),
    ):
        before = store.objects()
        with pytest.raises(SettingsError, match=f"{conditions[:-1]}s conditional writes"):
            write()
        assert store.objects() == before
    assert shelf.texts() == {"a.md": ["one"]}


@pytest.mark.parametrize("conditions", ["ignored", "raced", "honoured"])
def test_single_writer_writes_to_any_store(store, conditions):
    store.conditions(conditions)
    shelf = Shelf(ROOT, single_writer=True)
    shelf.publish({"a.md": ["one"]})
    shelf.publish({"b.md": ["two"]})
    shelf.remove("a.md")
    assert shelf.texts() == {"b.md": ["two"]}
    assert [entry.version for entry in shelf.lake.history()] == [3, 2, 1, 0]


@pytest.mark.parametrize(("single", "severity"), [(True, "note"), (False, "problem")])
def test_doctor_tells_what_an_unsafe_store_needs(store, single, severity):
    store.conditions("ignored")
    Shelf(ROOT, single_writer=True)
    (finding,) = examine(Lake(ROOT, single_writer=single)).findings
    assert (finding.check, finding.severity) == ("conditional-writes", severity)
    assert "single_writer = true" in finding.detail
