"""A search index that is damaged or not writable: it is rebuilt, or an older one or the tables answer."""

from __future__ import annotations

import json
import shutil

import duckdb
import pytest

from parquetry.model import Access
from parquetry.planning.rows import RunStamp
from parquetry.storage.maintenance.erasure import forget_user
from tests.records import NOW
from tests.storage.damaged_shelf import DAMAGES, damage, files_of, later

pytestmark = pytest.mark.slow


def index_of(corpus):
    (file,) = (corpus / "index").glob("*.duckdb")
    return file


@pytest.mark.parametrize("how", DAMAGES)
def test_damaged_index_heals(corpora, found, right, how):
    corpus = next(corpora)
    damage(index_of(corpus), how)
    assert found(corpus).out == right
    asked = found(corpus)
    assert (asked.out, asked.lines) == (right, [])


def with_postings_damaged(corpus):
    """Flip a bit of the words, which opening the file does not read."""
    file = index_of(corpus)
    with duckdb.connect(file, read_only=True) as index:
        (block,) = index.execute(
            "SELECT min(block_id) FROM pragma_storage_info('segment.postings') WHERE block_id >= 0"
        ).fetchone()
    content = bytearray(file.read_bytes())
    content[3 * 4096 + block * 262_144 + 100] ^= 4
    file.write_bytes(content)
    return file


def test_index_that_turns_out_to_be_damaged_is_built_again_once(corpus, found, right):
    file = with_postings_damaged(corpus)
    asked = found(corpus)
    assert (asked.code, asked.out) == (0, right)
    assert asked.lines == [f"the search index {file} was damaged; it is built again"]
    assert found(corpus).lines == []


def test_sql_heals_the_index_too(corpus, ask):
    with_postings_damaged(corpus)
    asked = ask(corpus, "sql", "SELECT count(*) FROM search_text('oak')", "--json")
    assert json.loads(asked.out)["rows"] == [[3]]


def test_both_files_of_the_index_may_be_damaged(corpus, found, right):
    """The older file, from which the next one is made, is damaged like the one to be replaced."""
    later(corpus).publish({"d.md": ["a plane"]})
    expected = found(corpus).out
    for file in (corpus / "index").glob("*.duckdb"):
        content = bytearray(file.read_bytes())
        for place in range(3 * 4096 + 100, len(content), 262_144):
            content[place] ^= 1
        file.write_bytes(content)
    asked = found(corpus)
    assert asked.out == expected
    assert asked.code == 0


def test_damaged_index_that_cannot_be_replaced_is_not_asked(corpus, found, right):
    file = with_postings_damaged(corpus)
    lock_out(corpus)
    asked = found(corpus)
    assert asked.out == right
    (line,) = asked.lines
    assert line.startswith(f"the search index {file} is damaged, and the search index in {file.parent} cannot be")


# --- an index that cannot be written


def lock_out(corpus):
    """Make the index unwritable."""
    (corpus / "index" / "refresh.lock").unlink(missing_ok=True)
    (corpus / "index" / "refresh.lock").mkdir(parents=True)


def test_search_that_can_write_no_index_answers_from_the_newest_there_is(corpus, found, right):
    later(corpus).publish({"d.md": ["the oak again"]})
    lock_out(corpus)
    asked = found(corpus)
    assert (asked.code, asked.out) == (0, right)
    assert asked.out["version"] == 4
    (line,) = asked.lines
    assert line.startswith(f"the search index in {corpus / 'index'} cannot be written: ")
    assert line.endswith("; answering from version 4, the newest that is indexed")


OUTDATED = {
    "removed": lambda shelf: shelf.remove("a.md"),
    "shown to fewer": lambda shelf: shelf.permit("a.md", Access("individual", user_id="ada")),
    "erased": lambda shelf: forget_user(shelf.lake, "eve", RunStamp("forget-1", NOW), shelf.settings),
}


@pytest.mark.parametrize("what", OUTDATED)
def test_earlier_index_does_not_answer_with_what_is_not_to_be_seen_any_more(corpus, ask, what):
    shelf = later(corpus)
    shelf.publish({"e.md": ["an oak of eve's"]}, access=Access("individual", user_id="eve"))
    assert ask(corpus, "search", "oak", "--mode", "text").code == 0
    kept = shutil.copytree(corpus / "index", corpus.parent / f"kept-{what}")
    OUTDATED[what](shelf)
    shutil.rmtree(corpus / "index")
    kept.rename(corpus / "index")
    for file in (corpus / "index").glob("index-4.*"):
        # A file from before the erased document was published.
        file.unlink()
    lock_out(corpus)
    asked = ask(corpus, "search", "oak", "--mode", "text", "--user", "eve", "--json")
    texts = {hit["text"] for hit in json.loads(asked.out)["results"]}
    gone = {"an oak of eve's"} if what == "erased" else {"the oak stands here", "a second oak chunk"}
    assert texts
    assert not texts & gone
    (line,) = asked.lines
    assert line.endswith("; answering from the tables, which takes as long as building it")


def test_without_any_index_the_tables_answer_or_the_damaged_file_is_named(corpus, found, right):
    shutil.rmtree(corpus / "index")
    lock_out(corpus)
    asked = found(corpus)
    assert asked.out == right
    assert asked.lines[0].endswith("; answering from the tables, which takes as long as building it")
    file, *_ = files_of(corpus, "chunks")
    damage(file, "half")
    asked = found(corpus)
    assert (asked.code, asked.lines) == (4, [f"parquetry: the corpus is damaged: {file} is cut short or damaged"])
