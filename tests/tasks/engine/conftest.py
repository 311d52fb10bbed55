"""Pools of processes that read documents."""

import pytest

from parquetry.model import RawDocument
from parquetry.settings.embedding import ChunkingSettings
from parquetry.settings.sections import ExtractionSettings
from parquetry.tasks.engine.workers import WorkerPool

TEXT = RawDocument(b"# Leave\n\nThirty days.\n", "leave.md")


@pytest.fixture
def pool():
    yield from pool_with(60)


@pytest.fixture
def impatient_pool():
    yield from pool_with(2)


@pytest.fixture
def five_seconds():
    yield from pool_with(5)


@pytest.fixture
def two_processes():
    yield from pool_with(60, 2)


def pool_with(seconds, workers=1):
    settings = ExtractionSettings(workers=workers, timeout_seconds=seconds, memory_mb=1024)
    made = WorkerPool(settings, ChunkingSettings(), None)
    yield made
    made.close()
