"""Randomly changed documents are read or refused for a reason, within the limits."""

from __future__ import annotations

import pytest

from parquetry.errors import DocumentError
from parquetry.extract.allowance import CHARACTERS_FREE, CHARACTERS_PER_BYTE
from parquetry.extract.detect import detect
from parquetry.model import RawDocument
from parquetry.sessions.transcripts.base import Unread
from parquetry.settings.embedding import ChunkingSettings
from parquetry.settings.sections import ExtractionSettings
from parquetry.tasks.engine.workers import WorkerPool
from tests.fuzz import seeds
from tests.fuzz.fuzzing import TIMEOUT, fuzz, keep
from tests.fuzz.mutation import File, mutated

pytestmark = [pytest.mark.slow, pytest.mark.timeout(TIMEOUT)]

EXHAUSTED = {"timeout", "memory", "crashed", "unexpected"}
ENDINGS = (".txt", ".md", ".html", ".csv", ".json", ".jsonl", ".eml", ".xml", ".rst", ".py", ".pdf", ".xls", ".ipynb")


@pytest.fixture
def pool():
    # Small files get a share of the limits; on a busy machine they need more than the default.
    settings = ExtractionSettings(workers=1, memory_mb=1536, timeout_seconds=600, ocr=False)
    made = WorkerPool(settings, ChunkingSettings(), None)
    yield made
    made.close()


def test_changed_documents_are_read_or_refused_within_the_limits(pool):
    def check(file: File) -> str:
        content, name = file
        try:
            prepared = pool.result(pool.prepare(RawDocument(content, name)))
        except DocumentError as error:
            if error.reason in EXHAUSTED:
                pytest.fail(f"{keep(content, name)}: {error}")
            return error.reason
        except Exception:
            keep(content, name)
            raise
        most = CHARACTERS_FREE + CHARACTERS_PER_BYTE * (len(content) if content[:2] != b"PK" else 100 * len(content))
        assert len(prepared.extraction.text) <= 2 * most, keep(content, name)
        return "read"

    seen = fuzz(mutated(seeds.documents(), ENDINGS), check, share=0.4)
    assert seen["read"]
    assert seen["damaged"]


def test_changed_documents_are_told_apart_in_the_process_of_the_run():
    """Detection runs in the main process, which has no limits."""

    def check(file: File) -> str:
        content, name = file
        try:
            return detect(content, name)
        except DocumentError as error:
            return error.reason
        except Exception:
            keep(content, name)
            raise

    assert len(fuzz(mutated(seeds.documents(), ENDINGS), check, share=0.1)) > 10


def test_changed_chat_sessions_are_read_or_refused_within_the_limits(pool):
    def check(file: File) -> str:
        content, name = file
        read = pool.result(pool.sessions(RawDocument(content, name)))
        if read.verdict is None:
            return "in part" if any(isinstance(each, Unread) for each in read.found) else "read"
        assert read.verdict.reason not in EXHAUSTED, (keep(content, name), read.verdict)
        return read.verdict.reason

    seen = fuzz(mutated(seeds.transcripts(), (".json", ".md", ".csv", ".txt")), check, share=0.1)
    assert seen["read"]
    assert seen["in part"]
