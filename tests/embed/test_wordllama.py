"""The bundled model: the same vectors as its own library, faster."""

from __future__ import annotations

import importlib.util
import json
import logging
import subprocess
import sys
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer

from parquetry.embed import wordllama
from parquetry.embed.registry import open_embedder
from parquetry.embed.wordllama import WordLlamaEmbedder, embedder_id
from parquetry.errors import SettingsError
from parquetry.settings.embedding import EmbeddingSettings

TEXTS = [
    "Parquetry is a floor laid from many small fitted pieces.",
    "UPPER CASE and MiXeD case, 1234567890, v2.0.0-rc1, e.g. this_name(x) -> y;",
    "two  spaces,   three,    four",
    " leading space", "  two of them", "trailing space ", "line\nbreak", "space before \nbreak", "\nbreak first",
    "blank\n\nline", "break\n   and indent\n\tand tab", "   \n  only space around a break  \n ",
    "Größenwahn, naïve, Ærø, İstanbul, ΣΊΣΥΦΟΣ", "日本語のテキストには空白がない。", "ภาษาไทย ไม่มีช่องว่าง", "العربية",
    "emoji 👩‍👩‍👧‍👦 and a flag 🇳🇱", "a\u2581mark like the tokenizer's own", "nul \x00 and bell \x07", "\u00a0no-break",
    "def f(x):\n    return [y for y in x if y]\n", "| a | b |\n| --- | --- |\n| 1 | 2 |", "x" * 3000, "word " * 2000,
]  # fmt: skip


@pytest.fixture(scope="module")
def embedder() -> WordLlamaEmbedder:
    return WordLlamaEmbedder(EmbeddingSettings())


@pytest.fixture(scope="module")
def library() -> Iterator[Any]:
    """Load the library's own implementation; undo the logging that its import sets up."""
    handlers, level = list(logging.root.handlers), logging.root.level
    from wordllama import WordLlama

    folder = Path(next(iter(importlib.util.find_spec("wordllama").submodule_search_locations)))
    yield WordLlama.load(cache_dir=folder, disable_download=True)
    logging.root.handlers[:] = handlers
    logging.root.setLevel(level)


def test_vectors_are_those_of_the_library_for_lower_cased_text(embedder: WordLlamaEmbedder, library: Any) -> None:
    expected = library.embed([text.lower() for text in TEXTS], norm=True)
    embedded = embedder.embed(TEXTS)
    np.testing.assert_allclose(embedded.vectors, expected, atol=2e-6)
    assert embedded.refused == {}


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(text=st.text(st.sampled_from(list(" \n\t\u2581ab.,0é漢\U0001f600-")), max_size=40) | st.text(max_size=60))
def test_cutting_at_words_never_changes_a_token(embedder: WordLlamaEmbedder, library: Any, text: str) -> None:
    (whole,) = library.tokenizer.encode_batch([text.lower()], add_special_tokens=False)
    (found,) = embedder._tokens.of([text])
    assert found.tolist() == whole.ids
    assert embedder.count_tokens([text]) == [len(whole.ids)]


@pytest.fixture(scope="module")
def sizing(embedder: WordLlamaEmbedder) -> Tokenizer:
    return Tokenizer.from_str(embedder.tokenizer_json)


@settings(max_examples=200, deadline=None)
@given(text=st.text(st.sampled_from(list(" \n\u2581aB.0é漢")), min_size=1, max_size=40))
def test_the_tokenizer_that_sizes_chunks_gives_the_same_tokens(
    embedder: WordLlamaEmbedder, sizing: Tokenizer, text: str
) -> None:
    assert sizing.encode(text, add_special_tokens=False).ids == embedder._tokens.of([text])[0].tolist()


def test_a_document_that_writes_about_control_tokens_is_text_like_any_other(embedder: WordLlamaEmbedder) -> None:
    assert set(embedder._tokens.of(["</s> <unk> <s>"])[0].tolist()).isdisjoint({0, 1, 2})


def test_a_query_is_found_whatever_its_case(embedder: WordLlamaEmbedder) -> None:
    np.testing.assert_array_equal(embedder.embed_query("ANNUAL LEAVE"), embedder.embed_query("annual leave"))
    assert embedder.embed_query("annual leave") @ embedder.embed_query("vacation days") > embedder.embed_query(
        "annual leave"
    ) @ embedder.embed_query("hydraulic pump")


def test_a_query_equals_a_document_to_the_last_bit(embedder: WordLlamaEmbedder) -> None:
    vectors = embedder.embed(TEXTS).vectors
    for text, vector in zip(TEXTS, vectors, strict=True):
        np.testing.assert_array_equal(embedder.embed_query(text), vector)


def test_a_vector_does_not_depend_on_its_neighbours_to_the_last_bit(embedder: WordLlamaEmbedder) -> None:
    """A refresh that embeds one changed chunk must write what a rebuild would have written."""
    many = [f"{text} {number}" for number in range(9) for text in TEXTS]
    together = embedder.embed(many).vectors
    fresh = WordLlamaEmbedder(EmbeddingSettings())
    alone = np.concatenate([fresh.embed([text]).vectors for text in many[::17]])
    np.testing.assert_array_equal(together[::17], alone)


def test_a_few_texts_alone_have_the_vectors_that_they_have_among_many_to_the_last_bit() -> None:
    """A few texts are embedded without the whole table."""
    few = ["The oak table.", "An invoice of 1,200 words. " * 300]
    fresh = WordLlamaEmbedder(EmbeddingSettings())
    alone = fresh.embed(few)
    among = fresh.embed([*few, *(f"Another text, number {number}." for number in range(100))])
    assert alone.vectors.any(axis=1).all()
    assert (alone.vectors == among.vectors[:2]).all()
    assert (fresh.embed(few).vectors == alone.vectors).all()


def test_forgetting_pieces_in_between_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory stays bounded on a corpus of words that never repeat."""
    texts = [f"{text} {number}" for number in range(9) for text in TEXTS]
    expected = WordLlamaEmbedder(EmbeddingSettings()).embed(texts).vectors
    monkeypatch.setattr(wordllama, "_KEPT_BYTES", 4000)
    forgetful = WordLlamaEmbedder(EmbeddingSettings())
    np.testing.assert_array_equal(forgetful.embed(texts).vectors, expected)
    assert len(forgetful._tokens._kept) < 40


@pytest.mark.parametrize("dimension", [64, 128])
def test_a_shorter_dimension_is_the_start_of_the_full_one(embedder: WordLlamaEmbedder, dimension: int) -> None:
    short = open_embedder("wordllama", EmbeddingSettings(dimension=dimension)).embed(TEXTS[:3]).vectors
    full = embedder.embed(TEXTS[:3]).vectors[:, :dimension]
    np.testing.assert_allclose(short, full / np.linalg.norm(full, axis=1, keepdims=True), atol=1e-6)


def test_a_dimension_that_the_model_has_not_is_refused_with_the_choices() -> None:
    with pytest.raises(SettingsError, match="100, but wordllama gives vectors of 64, 128, 256"):
        open_embedder("wordllama", EmbeddingSettings(dimension=100))


def test_prefixes_are_embedded_and_only_the_documents_one_is_in_the_id() -> None:
    plain = EmbeddingSettings()
    prefixed = EmbeddingSettings(document_prefix="about: ", query_prefix="find: ")
    embedder = WordLlamaEmbedder(prefixed)
    np.testing.assert_array_equal(
        embedder.embed(["cats"]).vectors, WordLlamaEmbedder(plain).embed(["about: cats"]).vectors
    )
    np.testing.assert_array_equal(embedder.embed_query("cats"), WordLlamaEmbedder(plain).embed_query("find: cats"))
    assert embedder_id(plain) == "wordllama:l2-supercat/1@256"
    assert embedder_id(prefixed) == embedder.id != embedder_id(plain)
    assert embedder_id(EmbeddingSettings(query_prefix="find: ")) == embedder_id(plain)


def test_loading_is_silent_and_leaves_the_library_and_its_logging_alone() -> None:
    """The library's import takes most of a second, sets up logging, and could try to download."""
    code = (
        "import sys, json, logging; from parquetry.embed.registry import open_embedder;"
        "from parquetry.settings.sections import EmbeddingSettings;"
        "vector = open_embedder('wordllama', EmbeddingSettings()).embed_query('annual leave');"
        "loaded = {'wordllama', 'requests', 'safetensors', 'openai', 'onnxruntime'} & set(sys.modules);"
        "print(json.dumps([sorted(loaded),"
        "len(logging.root.handlers), len(vector)]))"
    )
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == [[], 0, 256]
    assert done.stderr == ""


def test_a_missing_package_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wordllama.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(SettingsError, match="pip install wordllama"):
        WordLlamaEmbedder(EmbeddingSettings())


def test_damaged_weights_say_what_to_reinstall(tmp_path: Path) -> None:
    file = tmp_path / "weights.safetensors"
    file.write_bytes(b"")
    with pytest.raises(SettingsError, match="reinstall"):
        wordllama._token_vectors(file)


def test_embedder_that_gave_its_memory_back_embeds_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    read, as_written = [], wordllama._Pieces._read
    monkeypatch.setattr(wordllama._Pieces, "_read", lambda pieces: read.append(1) or as_written(pieces))
    embedder = WordLlamaEmbedder(EmbeddingSettings())
    many = [f"{text} {number}" for text in TEXTS for number in range(10)]
    tracemalloc.start()
    try:
        before = embedder.embed(many).vectors
        held, _ = tracemalloc.get_traced_memory()
        embedder.give_memory_back()
        left, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held - left > 30_000_000
    assert (embedder._tokens._tokenizer, len(read)) == (None, 1)
    for _ in range(2):
        assert np.array_equal(embedder.embed(many).vectors, before)
    assert len(read) == 2


@pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="no figures of memory")
def test_threads_of_the_tokenizer_remember_no_pieces() -> None:
    """Ten thousand each would stay, even after the embedder has given its memory back: 10 MB more than this."""
    ended = subprocess.run([sys.executable, "-c", _HELD_AFTER_MANY_WORDS], capture_output=True, text=True, timeout=300)
    assert ended.returncode == 0, ended.stderr
    assert float(ended.stdout) < 10


_HELD_AFTER_MANY_WORDS = """
import random
from pathlib import Path
from parquetry.freed_memory import give_back, keep_little
keep_little()
from parquetry.embed.wordllama import WordLlamaEmbedder
from parquetry.settings.embedding import EmbeddingSettings

def held():
    give_back()
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Anonymous:")) / 1024

embedder = WordLlamaEmbedder(EmbeddingSettings())
embedder.embed(["oak"] * 100)
embedder.give_memory_back()
before = held()
letters = random.Random(1)
for _ in range(300):
    embedder.embed([" ".join("".join(letters.choices("etaoinshrdlu", k=9)) for _ in range(10)) for _ in range(10)])
embedder.give_memory_back()
print(held() - before)
"""
