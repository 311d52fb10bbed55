"""One execution alone claims an allowance, and none after its end."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Barrier

import pytest

from parquetry.errors import StorageError
from parquetry.storage.files.layout import layout_of
from parquetry.storage.lake.allowances import Allowances
from parquetry.storage.lake.orders import Orders


@pytest.fixture(params=["folder", pytest.param("store", marks=pytest.mark.slow)])
def root(request, tmp_path, monkeypatch) -> str:
    if request.param == "folder":
        return str(tmp_path)
    store = request.getfixturevalue("small_store")
    store.reset()
    for name, value in store.environment().items():
        monkeypatch.setenv(name, value)
    return "s3://bucket/kb"


def test_of_executions_at_the_same_moment_one_claims_an_allowance(root):
    allowances = Allowances(layout_of(root))
    for _ in range(5):
        name = allowances.place()
        start = Barrier(4)

        def claim(name: str = name, start: Barrier = start) -> bool:
            start.wait()
            return Allowances(layout_of(root)).claim(name)

        with ThreadPoolExecutor(4) as threads:
            claims = [threads.submit(claim) for _ in range(4)]
        assert sum(each.result() for each in claims) == 1
        assert allowances.end(name)


def test_ended_allowance_cannot_be_claimed_and_leaves_no_mark(root):
    allowances = Allowances(layout_of(root))
    name = allowances.place()
    assert not allowances.end(name)
    assert not allowances.claim(name)
    claimed = allowances.place()
    assert allowances.claim(claimed)
    assert allowances.end(claimed)
    assert not allowances.claim(claimed)
    orders = Orders(layout_of(root))
    assert orders._files.entries(layout_of(root).orders) == []


def test_marks_of_a_run_that_was_killed_are_deleted_with_its_orders(tmp_path):
    layout = layout_of(str(tmp_path))
    allowances = Allowances(layout)
    name = allowances.place()
    assert allowances.claim(name)
    old = f"{datetime.now(UTC) - timedelta(days=8):%Y%m%dT%H%M%S}"
    for mark in list(Path(layout.orders).iterdir()):
        mark.rename(mark.with_name(re.sub(r"\d{8}T\d{6}", old, mark.name)))
    recent = allowances.place()
    Orders(layout).delete_abandoned()
    assert [each.name for each in Path(layout.orders).iterdir()] == [f"{recent}-allowance.json"]


@pytest.mark.slow
def test_store_without_conditional_writes_cannot_share_a_budget(small_store, monkeypatch):
    small_store.reset()
    for name, value in small_store.environment().items():
        monkeypatch.setenv(name, value)
    allowances = Allowances(layout_of("s3://bucket/kb"))
    name = allowances.place()
    small_store.conditions("refused")
    with pytest.raises(StorageError, match=r"refuses conditional writes .*workers cannot share a budget"):
        allowances.claim(name)
