"""FinanceBench as a collection in BEIR format: a document is a page of a filing.

python -m benchmarks.financebench_pages FINANCEBENCH_DEV FOLDER
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import pypdfium2 as pdfium


def write_pages(source: Path, folder: Path) -> None:
    """Write the collection.

    Args:
        source: folder with the filings as PDF and `questions.jsonl`.
        folder: folder to create.
    """
    (folder / "qrels").mkdir(parents=True, exist_ok=True)
    with (folder / "corpus.jsonl").open("w", encoding="utf-8") as corpus:
        for filing in sorted(source.glob("*.pdf")):
            document = pdfium.PdfDocument(filing)
            for number, page in enumerate(document):
                text = page.get_textpage().get_text_range()
                if text.strip():
                    record = {"_id": f"{filing.stem}/{number}", "title": "", "text": text}
                    corpus.write(json.dumps(record, ensure_ascii=False) + "\n")
            document.close()
    questions = [json.loads(line) for line in (source / "questions.jsonl").read_text("utf-8").splitlines()]
    queries = [{"_id": each["financebench_id"], "text": each["question"]} for each in questions]
    (folder / "queries.jsonl").write_text("".join(json.dumps(each) + "\n" for each in queries), "utf-8")
    judged = [
        f"{each['financebench_id']}\t{each['doc_name']}/{evidence['evidence_page_num']}\t1\n"
        for each in questions
        for evidence in each["evidence"]
    ]
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n" + "".join(judged), "utf-8")


def main(arguments: Sequence[str] | None = None) -> None:
    source, folder = map(Path, sys.argv[1:] if arguments is None else arguments)
    write_pages(source, folder)


if __name__ == "__main__":
    main()
