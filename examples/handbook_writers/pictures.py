"""Images with text on them: signs and labels, and the page that came from a scanner."""

from __future__ import annotations

import io
import random
from collections.abc import Mapping, Sequence
from typing import Any

from PIL import Image, ImageDraw, ImageFont

from .source import Block, Heading, Paragraph

_PAGE = (1240, 1754)
"""A4 at 150 dots per inch"""

_SAVE: dict[str, dict[str, Any]] = {
    "png": {"format": "PNG"},
    "jpg": {"format": "JPEG", "quality": 70},
    "webp": {"format": "WEBP", "quality": 80},
    "gif": {"format": "GIF"},
}


def write_sign(sign: Mapping[str, Any], kind: str) -> bytes:
    """A sign: centred lines in a frame.

    Args:
        sign: size, background, foreground, border, and lines with text and height, all in pixels.
        kind: file extension of the format.
    """
    width, height = sign["size"]
    image = Image.new("RGB", (width, height), sign["background"])
    draw = ImageDraw.Draw(image)
    draw.rectangle((12, 12, width - 13, height - 13), outline=sign["border"], width=10)
    lines = sign["lines"]
    gap = (height - 60 - sum(line["height"] for line in lines)) / (len(lines) + 1)
    top = 30 + gap
    for line in lines:
        font = ImageFont.load_default(line["height"])
        draw.text((width / 2, top), line["text"], fill=sign["foreground"], font=font, anchor="ma")
        top += line["height"] + gap
    return _encode(image, kind)


def scan(blocks: Sequence[Block]) -> bytes:
    """A JPEG of a typed page as an office scanner sees it: slightly askew, grey, with noise."""
    page = Image.new("L", _PAGE, 255)
    draw = ImageDraw.Draw(page)
    draw.rectangle((90, 90, _PAGE[0] - 90, _PAGE[1] - 90), outline=90, width=3)
    top = 190
    for block in blocks:
        size = 56 if isinstance(block, Heading) else 34
        font = ImageFont.load_default(size)
        for line in _lines(block):
            draw.text((170, top), line, fill=25, font=font)
            top += int(size * 1.5)
        top += 34
    draw.ellipse((820, 1330, 1060, 1570), outline=120, width=6)
    draw.text((940, 1450), "KTI 2031", fill=120, font=ImageFont.load_default(40), anchor="mm")
    page = page.rotate(0.7, Image.Resampling.BICUBIC, fillcolor=255)
    noise = Image.frombytes("L", _PAGE, random.Random(1911).randbytes(_PAGE[0] * _PAGE[1]))
    return _encode(Image.blend(page, noise, 0.06), "jpg")


def _lines(block: Block) -> tuple[str, ...]:
    match block:
        case Heading():
            return (block.text,)
        case Paragraph():
            return block.lines
        case _:
            raise ValueError(f"nobody types a {type(block).__name__} on the certificate")


def _encode(image: Image.Image, kind: str) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, **_SAVE[kind])
    return buffer.getvalue()
