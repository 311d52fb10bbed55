"""The collection that the benchmark puts together is one that `eval` reads, with an answer for each question."""

from __future__ import annotations

from pathlib import Path

from benchmarks.eval_memory import DOCUMENTS, QUESTIONS, write_collection
from parquetry.ranking.evaluation import CollectionDocument, read_dataset


def test_titles_ask_for_the_document_that_their_texts_went_into(tmp_path: Path) -> None:
    parts = [
        CollectionDocument(str(number), f"Title {number}.", f"Title {number}. Text {number}.") for number in range(1300)
    ]
    assert write_collection(parts, tmp_path) == QUESTIONS
    dataset = read_dataset(tmp_path)
    texts = {document.id: document.text for document in dataset.documents}
    assert (len(texts), len(dataset.queries), dataset.unknown) == (DOCUMENTS, QUESTIONS, 0)
    assert not any("Title" in text for text in texts.values())
    for query, asked in dataset.queries.items():
        (document,) = dataset.judgements[query]
        assert asked.replace("Title", "Text") in texts[document].split("\n\n")
