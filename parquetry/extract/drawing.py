"""Draw a page of a PDF, or a picture, for people: a program of its own, run once for each drawing, under limits.

    python -m parquetry.extract.drawing < ORDER_AND_BYTES > PICTURE

The order is one line of JSON (`Order`); the bytes of the document follow. The picture comes out as WebP. Exit code 3
means that the document cannot be drawn, and the output is the reason. Nothing is parsed before the limits hold.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from io import BytesIO
from typing import Any

REFUSED = 3
"""exit code of a document that cannot be drawn"""
_WIDTH = 1_200
"""pixels of a page's width"""
_MOST_PIXELS = 6_000_000
_MOST_TEXT = 200_000
"""characters of a page that are searched"""
_MOST_PIECES = 300
"""pieces of a passage that are searched"""
_LEAST = 6
"""letters and digits of a piece that is searched: shorter ones are found anywhere"""
_WINDOW = 40
"""letters and digits of the pieces of a passage of which no sentence is found"""
_SENTENCE = re.compile(r"[\n.!?;:|]+")
_STRONG, _FAINT = (138, 75, 20, 255), (255, 214, 102, 90)
"""colours of the outline and of what it surrounds: red, green, blue, opacity"""
Box = tuple[float, float, float, float]
"""left, top, right and bottom in pixels"""


@dataclass(frozen=True, slots=True)
class Order:
    """A page or picture to be drawn."""

    media_type: str
    page: int
    """1-based"""
    passage: str
    """text to be outlined on a page; empty for none"""
    memory_bytes: int
    seconds: int
    """of processor time"""

    def line(self) -> bytes:
        """Return the order as a line."""
        return json.dumps(asdict(self)).encode() + b"\n"


def main() -> int:
    """Draw what standard input orders."""
    order = Order(**json.loads(sys.stdin.buffer.readline()))
    _limit(order)
    try:
        picture = _drawn(order, sys.stdin.buffer.read())
        made = BytesIO()
        picture.save(made, "WEBP", quality=82, method=2)
    except MemoryError:
        sys.stdout.write("memory")
        return REFUSED
    except Exception as error:  # noqa: BLE001 - whatever a document does to its reader is one reason: it cannot be drawn
        sys.stdout.write(getattr(error, "reason", "damaged"))
        return REFUSED
    sys.stdout.buffer.write(made.getvalue())
    return 0


def _limit(order: Order) -> None:
    if sys.platform == "win32":
        return
    import resource

    limits = (
        (resource.RLIMIT_AS, order.memory_bytes),
        (resource.RLIMIT_CPU, order.seconds),
        (resource.RLIMIT_FSIZE, 0),
    )
    for kind, most in limits:
        _, hard = resource.getrlimit(kind)
        allowed = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(kind, (allowed, allowed))


def _drawn(order: Order, content: bytes) -> Any:
    if order.media_type == "application/pdf":
        return _pdf_page(content, order.page, order.passage)
    from parquetry.extract.image import shown_picture

    picture = shown_picture(content, order.media_type)
    picture.thumbnail((_WIDTH, _WIDTH * 4))
    return picture


def _pdf_page(content: bytes, number: int, passage: str) -> Any:
    import pypdfium2

    from parquetry.errors import BrokenDocument
    from parquetry.extract.pdf.engine import PASSWORD_ERROR, flattened

    try:
        document = pypdfium2.PdfDocument(content)
    except pypdfium2.PdfiumError as error:
        reason = "encrypted" if getattr(error, "err_code", None) == PASSWORD_ERROR else "damaged"
        raise BrokenDocument(reason, "it cannot be opened") from error
    if number > len(document):
        raise BrokenDocument("damaged", "it has fewer pages")
    document.init_forms()
    page = flattened(document, number - 1, document[number - 1])
    width, height = page.get_size()
    scale = min(_WIDTH / max(width, 1.0), (_MOST_PIXELS / max(width * height, 1.0)) ** 0.5)
    picture = page.render(scale=scale).to_pil().convert("RGB")
    boxes = _boxes(page, passage, picture.size) if passage else []
    return _outlined(picture, boxes) if boxes else picture


def _boxes(page: Any, passage: str, size: tuple[int, int]) -> list[Box]:
    """Return where the words of a passage stand on a page."""
    from pypdfium2 import raw

    textpage = page.get_textpage()
    text = textpage.get_text_range()[:_MOST_TEXT]
    exact = len(text) == min(textpage.count_chars(), _MOST_TEXT)
    boxes = []
    for first, last in places(text, passage):
        start, end = (
            place if exact else max(0, raw.FPDFText_GetCharIndexFromTextIndex(textpage.raw, place))
            for place in (first, last)
        )
        for number in range(textpage.count_rects(start, end - start + 1)):
            left, bottom, right, top = textpage.get_rect(number)
            boxes.append((*_pixel(page, left, top, size), *_pixel(page, right, bottom, size)))
    return [(min(a, c), min(b, d), max(a, c), max(b, d)) for a, b, c, d in boxes]


def _pixel(page: Any, x: float, y: float, size: tuple[int, int]) -> tuple[float, float]:
    import ctypes

    from pypdfium2 import raw

    across, down = ctypes.c_int(), ctypes.c_int()
    raw.FPDF_PageToDevice(page.raw, 0, 0, *size, 0, x, y, ctypes.byref(across), ctypes.byref(down))
    return float(across.value), float(down.value)


def places(text: str, passage: str) -> Iterator[tuple[int, int]]:
    """Yield first and last index of the pieces of a passage that stand in a text, whatever stands between letters.

    Args:
        text: text of a page, as its engine reads it.
        passage: the passage, as it was extracted: with headings and tables written out, and divided words joined.
    """
    letters, indexes = _letters(text)
    pieces = [_letters(piece)[0] for piece in _SENTENCE.split(passage)[:_MOST_PIECES]]
    found = list(_found(letters, [piece for piece in pieces if len(piece) >= _LEAST]))
    if not found:
        whole = _letters(passage)[0]
        windows = [whole[start : start + _WINDOW] for start in range(0, len(whole), _WINDOW)][:_MOST_PIECES]
        found = list(_found(letters, [each for each in windows if len(each) >= min(_LEAST, len(whole))]))
    for start, length in found:
        yield indexes[start], indexes[start + length - 1]


def _found(letters: str, pieces: Sequence[str]) -> Iterator[tuple[int, int]]:
    at = 0
    for piece in pieces:
        place = letters.find(piece, at) if piece else -1
        if place < 0:
            place = letters.find(piece) if piece else -1
        if place >= 0:
            yield place, len(piece)
            at = place + len(piece)


def _letters(text: str) -> tuple[str, list[int]]:
    """Return the letters and digits of a text in lower case, and the index of each."""
    kept = [(letter, index) for index, mark in enumerate(text) if mark.isalnum() for letter in mark.lower()]
    return "".join(letter for letter, _ in kept), [index for _, index in kept]


def _outlined(picture: Any, boxes: Sequence[Box]) -> Any:
    """Return a picture with boxes coloured, and a line around those that stand together."""
    from PIL import Image, ImageDraw

    layer = Image.new("RGBA", picture.size, (0, 0, 0, 0))
    draw = ImageDraw.Draw(layer)
    for box in boxes:
        draw.rectangle(box, fill=_FAINT)
    for left, top, right, bottom in blocks(boxes):
        draw.rectangle((left - 6, top - 5, right + 6, bottom + 5), outline=_STRONG, width=3)
    return Image.alpha_composite(picture.convert("RGBA"), layer).convert("RGB")


def blocks(boxes: Sequence[Box]) -> list[Box]:
    """Return the boxes around lines that follow one another in one column."""
    found: list[Box] = []
    for box in sorted(boxes, key=lambda each: (each[1], each[0])):
        for place, (left, top, right, bottom) in enumerate(found):
            near = box[1] - bottom < 1.5 * max(box[3] - box[1], 8.0)
            if near and box[0] < right + 12 and box[2] > left - 12:
                found[place] = (min(left, box[0]), min(top, box[1]), max(right, box[2]), max(bottom, box[3]))
                break
        else:
            found.append(box)
    return found


if __name__ == "__main__":
    sys.exit(main())
