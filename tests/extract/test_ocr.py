"""OCR: the text, its order, and no downloads or output while reading."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from PIL import Image, ImageDraw, ImageFont

from parquetry.errors import MissingExtra
from parquetry.extract import ocr
from parquetry.extract.layout import HYPHEN_MARK
from parquetry.extract.ocr import OcrLine, as_text_lines, in_reading_order


def picture(*texts: str, width: int = 420, pitch: int = 40) -> Image.Image:
    image = Image.new("RGB", (width, pitch * len(texts) + 20), "white")
    draw = ImageDraw.Draw(image)
    for i, text in enumerate(texts):
        draw.text((20, 14 + i * pitch), text, fill="black", font=ImageFont.load_default(24))
    return image


def at(text: str, left: float, top: float, width: float = 300, height: float = 20) -> OcrLine:
    return OcrLine(text, 1.0, left, top, left + width, top + height)


def order(*lines: OcrLine) -> list[str]:
    return [line.text for line in in_reading_order(lines)]


@pytest.mark.parametrize("turned", [0, 90, 180, 270])
def test_text_is_read_in_order_however_the_picture_is_turned(turned: int):
    image = picture("Harbour crane seven", "Keep clear of load").rotate(turned, expand=True)
    assert [line.text for line in ocr.read(image)] == ["Harbour crane seven", "Keep clear of load"]


def test_a_long_picture_is_read_in_pieces_without_losing_or_doubling_a_line(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(ocr, "_LONGEST_SIDE", 240)
    monkeypatch.setattr(ocr, "_TILE_OVERLAP", 100)
    texts = [f"Rule number {i}" for i in range(10, 24)]
    assert [line.text for line in ocr.read(picture(*texts, width=260))] == texts


@pytest.mark.parametrize("size", [(1, 1), (400, 3), (60, 60)])
def test_a_picture_without_text_has_no_lines(size: tuple[int, int]):
    assert ocr.read(Image.new("RGB", size, "white")) == []


@pytest.mark.slow
def test_pictures_are_read_one_at_a_time_among_processes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """Reading a page takes hundreds of megabytes; a killed process must not block the others."""
    lock = tmp_path / "lock"
    lock.touch()
    monkeypatch.setattr(ocr, "_turns", None)
    ocr.take_turns(lock)
    image = picture("Hall two")
    ocr.read(image)  # loads the models, so that only the lock can keep the second reading waiting
    hold = "import fcntl, sys, time; f = open(sys.argv[1]); fcntl.flock(f, 2); print(1, flush=True); time.sleep(600)"
    with subprocess.Popen([sys.executable, "-c", hold, str(lock)], stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        other.stdout.readline()
        with ThreadPoolExecutor(1) as threads:
            reading = threads.submit(ocr.read, image)
            try:
                with pytest.raises(TimeoutError):
                    reading.result(timeout=3)
            finally:
                other.kill()
            assert [line.text for line in reading.result(timeout=120)] == ["Hall two"]


def test_a_shape_is_not_taken_for_a_letter():
    image = Image.new("RGB", (200, 200), "white")
    ImageDraw.Draw(image).rectangle((50, 50, 150, 150), fill="black")
    assert ocr.read(image) == []


def test_without_the_extra_the_error_names_the_install_line(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("parquetry.extract.ocr.available", lambda: False)
    ocr._engine.cache_clear()
    with pytest.raises(MissingExtra, match=r"pip install 'parquetry\[ocr\]'"):
        ocr.read(Image.new("RGB", (60, 60), "white"))


@pytest.mark.slow
def test_reading_is_silent_and_needs_no_network():
    program = """
import socket
def refuse(*args, **kwargs): raise AssertionError("network")
socket.socket.connect = socket.create_connection = socket.getaddrinfo = refuse
from PIL import Image
from parquetry.extract import ocr
ocr.read(Image.new("RGB", (60, 60), "white"))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_columns_are_read_one_by_one_between_a_title_and_a_footer():
    left = [at(f"left {i}", 0, 50 + i * 25) for i in range(4)]
    right = [at(f"right {i}", 340, 58 + i * 25) for i in range(4)]
    title, footer = at("title", 0, 0, 640), at("footer", 0, 200, 640)
    mixed = [line for pair in zip(left, right, strict=True) for line in pair]
    assert order(footer, *mixed, title) == [
        "title",
        *(f"left {i}" for i in range(4)),
        *(f"right {i}" for i in range(4)),
        "footer",
    ]


def test_cells_of_a_table_are_read_row_by_row():
    cells = [at(f"{row}{column}", 100 * column, 25 * row, 30) for column in range(3) for row in range(3)]
    assert order(*cells) == ["00 01 02", "10 11 12", "20 21 22"]


@pytest.mark.slow
def test_columns_between_wide_lines_again_and_again_are_looked_for_with_measure(monkeypatch):
    lines = []
    for top in range(0, 2500, 25):
        lines += [at("wide", 0, top, 1000)] if top % 100 == 0 else [at("a", 0, top, 450), at("b", 550, top, 450)]
    monkeypatch.setattr(ocr, "_MOST_LOOKED_AT", 1_000_000)
    looked = 0

    def look(_frame: object, event: str, _argument: object) -> None:
        nonlocal looked
        looked += event == "call"

    sys.setprofile(look)
    try:
        ordered = in_reading_order(lines)
    finally:
        sys.setprofile(None)
    assert sum(len(line.text.split()) for line in ordered) == len(lines)
    assert looked < 3_000_000


def test_upright_lines_are_read_from_right_to_left():
    columns = [at(f"column {i}", 30 * i, 0, 20, 300) for i in range(3)]
    assert order(*columns) == ["column 2", "column 1", "column 0"]


def test_a_word_divided_at_a_line_end_is_marked_and_a_dash_is_not():
    lines = [
        at("the impor-", 0, 0),
        at("tant thing -", 0, 25),
        at("is dashed", 0, 50),
        at("pages 4-", 0, 75),
        at("ix", 0, 100),
    ]
    texts = [line.text for line in as_text_lines(lines)]
    assert texts == [f"the impor{HYPHEN_MARK}", "tant thing -", "is dashed", "pages 4-", "ix"]
