"""Changes that a run still publishes after another run has published first."""

from dataclasses import replace
from datetime import timedelta

import pytest

from parquetry.planning.rebase import by_key, rebase
from tests.records import NOW, THEN, row

LATER = NOW + timedelta(hours=1)


def mine(**fields):
    return row(**{"revision": 20, "content_hash": "mine", "modified_at": NOW, "run_id": "me", **fields})


def theirs(**fields):
    return row(
        **{"revision": 30, "content_hash": "theirs", "modified_at": NOW, "sequence": 2, "run_id": "they", **fields}
    )


BASE = row(revision=10, content_hash="base", modified_at=THEN)
CASES = [
    pytest.param(mine(), BASE, BASE, True, id="the-other-run-left-it-alone"),
    pytest.param(mine(), None, None, True, id="new-and-nobody-else-saw-it"),
    pytest.param(mine(removed=True), BASE, BASE, True, id="removal-of-what-was-left-alone"),
    pytest.param(mine(), None, theirs(content_hash="mine"), False, id="both-added-the-same"),
    pytest.param(mine(), None, theirs(), True, id="both-added-mine-as-new-as-theirs"),
    pytest.param(mine(), None, theirs(modified_at=LATER), False, id="both-added-theirs-newer"),
    pytest.param(mine(), BASE, theirs(content_hash="mine"), False, id="both-changed-to-the-same"),
    pytest.param(mine(modified_at=LATER), BASE, theirs(), True, id="both-changed-mine-newer"),
    pytest.param(mine(), BASE, theirs(modified_at=LATER), False, id="both-changed-theirs-newer"),
    pytest.param(mine(), BASE, None, True, id="changed-here-removed-there"),
    pytest.param(mine(removed=True), BASE, theirs(), False, id="removed-here-changed-there"),
    pytest.param(mine(removed=True), BASE, None, False, id="both-removed"),
    pytest.param(mine(revision=10, content_hash="base"), BASE, theirs(), False, id="permissions-here-changed-there"),
    pytest.param(mine(revision=10, content_hash="base"), BASE, None, False, id="permissions-here-removed-there"),
    pytest.param(
        mine(content_hash="base", fingerprint="ex2-ch1-em1"),
        BASE,
        theirs(content_hash="base"),
        True,
        id="same-content-other-settings",
    ),
    pytest.param(
        mine(content_hash="base"),
        BASE,
        theirs(content_hash="base", status="failed"),
        True,
        id="indexed-here-failed-there",
    ),
]


@pytest.mark.parametrize(("wanted", "before", "now", "kept"), CASES)
def test_row_is_still_news_or_not(wanted, before, now, kept):
    found = rebase([wanted], by_key([before] if before else []), by_key([now] if now else []))
    assert found == ([wanted] if kept else [])


def test_rows_are_judged_each_by_itself():
    untouched, lost = mine(path="a.md"), mine(path="b.md", content_hash="x")
    before = by_key([replace(BASE, path="a.md"), row("b.md")])
    now = by_key([replace(BASE, path="a.md"), theirs(path="b.md", modified_at=LATER)])
    assert rebase([untouched, lost], before, now) == [untouched]


def test_namespaces_do_not_meet():
    here, there = row(namespace="a"), row(namespace="b")
    there = replace(there, document_id=here.document_id)
    assert len(by_key([here, there])) == 2
