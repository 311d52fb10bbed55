"""Builds the binary documents of the example handbook from the readable ones in `content/`.

    python examples/build_handbook.py [FOLDER]

`content/finance/pay-bands.pdf.md` becomes `handbook/finance/pay-bands.pdf`: the last suffix says how the source is
written, the one before it what is built. Documents that people write as they are (Markdown, HTML, CSV, code) stand in
`handbook/` itself. The bytes depend on the sources and on the versions of Pillow and reportlab, and on nothing else.
"""

from __future__ import annotations

import os
import sys
import tomllib
from pathlib import Path

from handbook_writers.book import write_epub
from handbook_writers.mail import write_eml
from handbook_writers.odf import write_ods, write_odt
from handbook_writers.pdf import write_pdf
from handbook_writers.pictures import write_sign
from handbook_writers.sheets import write_xlsx
from handbook_writers.slides import write_pptx
from handbook_writers.source import EDITION, Manuscript, read_manuscript
from handbook_writers.word import write_docx

HERE = Path(__file__).parent


def write_text(manuscript: Manuscript) -> bytes:
    """Plain text in the encoding that the manuscript names, with the line ends of the offices that use it."""
    return manuscript.body.replace("\n", "\r\n").encode(manuscript.properties["encoding"])


MANUSCRIPTS = {
    ".docx": write_docx,
    ".epub": write_epub,
    ".odt": write_odt,
    ".pdf": write_pdf,
    ".pptx": write_pptx,
    ".txt": write_text,
}
TABLES = {".eml": write_eml, ".ods": write_ods, ".xlsx": write_xlsx}


def build(source: Path) -> bytes:
    """The document that a source describes."""
    kind = Path(source.stem).suffix
    text = source.read_text("utf-8")
    if source.suffix == ".md":
        return MANUSCRIPTS[kind](read_manuscript(text))
    values = tomllib.loads(text)
    return TABLES[kind](values) if kind in TABLES else write_sign(values, kind.removeprefix("."))


def main(target: Path) -> None:
    # reportlab has no other way to be told the date of a document.
    os.environ["SOURCE_DATE_EPOCH"] = str(int(EDITION.timestamp()))
    content = HERE / "content"
    for source in sorted(content.rglob("*.*")):
        path = target / source.relative_to(content).with_suffix("")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(build(source))
        print(path.relative_to(target).as_posix(), path.stat().st_size)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "handbook")
