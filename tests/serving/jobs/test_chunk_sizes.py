"""An upload may have chunks of a size of its own: it shapes them, and a change of it chunks the stored text again."""

import pytest

from parquetry.model import ChunkSize
from parquetry.serving.search.service import Reader

pytestmark = pytest.mark.slow

TEXT = "\n\n".join(f"Board {number} is of oak, dry, planed on both sides and free of knots." for number in range(120))


def chunks(jobs, name):
    """Return the texts of a document's chunks."""
    with Reader(jobs.settings) as reader:
        return [each["text"] for each in reader.chunks(reader.document(name)["document_id"])]


def publish(jobs, name, **options):
    done = jobs.put(name, TEXT, **options)
    jobs.work()
    assert jobs.done(done).state == "completed"
    return chunks(jobs, name)


def test_own_size_shapes_the_chunks_of_one_document(jobs):
    plain = publish(jobs, "plain.md")
    small = publish(jobs, "small.md", chunk_size=ChunkSize(100, 0))
    large = publish(jobs, "large.md", chunk_size=ChunkSize(1000, 0))
    assert len(small) > len(plain) > len(large)
    assert "".join("".join(small).split()) == "".join(TEXT.split())
    assert max(map(len, small)) < 700
    overlapping = publish(jobs, "overlapping.md", chunk_size=ChunkSize(100, 50))
    assert len(overlapping) > len(small)


def test_change_of_the_size_chunks_the_stored_text_again(jobs):
    first = publish(jobs, "oak.md", chunk_size=ChunkSize(100, 0))
    version = jobs.publishes()
    assert publish(jobs, "oak.md", chunk_size=ChunkSize(100, 0)) == first
    assert jobs.publishes() == version
    assert len(publish(jobs, "oak.md", chunk_size=ChunkSize(400, 0))) < len(first)
    assert publish(jobs, "oak.md") == publish(jobs, "other.md")


def test_same_bytes_under_another_name_get_chunks_of_their_own_size(jobs):
    """The text of the first is reused for the second, its chunks are not."""
    small = publish(jobs, "small.md", chunk_size=ChunkSize(100, 0))
    assert len(publish(jobs, "large.md", chunk_size=ChunkSize(1000, 0))) < len(small)


def test_refresh_leaves_documents_with_their_own_size_alone(jobs):
    publish(jobs, "oak.md", chunk_size=ChunkSize(100, 0))
    version = jobs.publishes()
    asked = jobs.ask("refresh")
    jobs.work()
    assert jobs.done(asked).state == "completed"
    assert jobs.publishes() == version
