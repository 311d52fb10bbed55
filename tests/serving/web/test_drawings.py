"""Pages and pictures of documents: drawn by a process with limits, for those who may see them."""

import gzip
import io
import re
import shutil

import pytest
from PIL import Image

from parquetry.extract.drawing import Order
from parquetry.serving.service import drawings
from parquetry.serving.service.document_pages import divided
from parquetry.serving.service.drawings import NotDrawn
from parquetry.serving.web.documents import DrawnPages, drawn_pages
from parquetry.settings.sections import parse_settings
from tests.documentation import ROOT
from tests.files.pdf_writer import lines, write_pdf
from tests.servers.http_app import running_app
from tests.workshop import Workshop

pytestmark = pytest.mark.slow

PDF = ROOT / "examples" / "handbook" / "sales" / "newsletter.pdf"
NOTICE = ROOT / "examples" / "handbook" / "workshop" / "forklift-notice.png"
BOARDS = write_pdf([lines(50, 780, [f"Board {page} is planed, and the list goes", "on to"]) for page in (1, 2, 3)])
"""three pages, all of one chunk, each of which ends within a sentence"""
BROWN = (138, 75, 20)
"""colour of the outline"""


@pytest.fixture(scope="module")
def gallery(tmp_path_factory):
    """Run an application over two PDFs and a picture that Ada alone sees."""
    workshop = Workshop(tmp_path_factory.mktemp("gallery"))
    shutil.copy(PDF, workshop.write("newsletter.pdf", b""))
    workshop.write("boards.pdf", BOARDS)
    workshop.write("packed.pdf.gz", gzip.compress(BOARDS))
    shutil.copy(NOTICE, workshop.write("notice.png", b""))
    workshop.sections["chunking"] = {"across_pages": True}
    workshop.sections["source"] = {"visibility": "individual", "user_id": "ada"}
    workshop.refresh()
    tables = {"corpus": {"root": str(workshop.root / "corpus")}, "serve": {"token_required": True}}
    source = {"name": "docs", "uri": str(workshop.folder), "visibility": "individual", "user_id": "ada"}
    with running_app(parse_settings({**tables, "source": [source]}, "test")) as app:
        with app.resources.follower.reader(wait=60) as reader:
            ids = {row["filename"]: row["document_id"] for row in reader.documents()}
        app.path, app.file = f"/documents/{ids['newsletter.pdf']}", workshop.folder / "newsletter.pdf"
        names = ("boards.pdf", "packed.pdf.gz", "notice.png")
        app.boards, app.packed, app.notice = (f"/documents/{ids[name]}" for name in names)
        app.asking = {
            user: app.client(app.resources.tokens.create(user, user_id=user, rights=["read", "search"])[1])
            for user in ("ada", "ben")
        }
        yield app
        for client in app.asking.values():
            client.close()


def asked(gallery, place, user="ada", path=""):
    token = gallery.asking[user].headers["Authorization"].removeprefix("Bearer ")
    return gallery.asking[user].get(f"{path or gallery.path}/{place}", headers={"X-Parquetry-Token": token})


def browns(answer):
    picture = Image.open(io.BytesIO(answer.content))
    assert picture.size[0] == 1200
    return sum(
        count
        for count, color in picture.getcolors(picture.size[0] * picture.size[1])
        if sum(abs(one - other) for one, other in zip(color, BROWN, strict=True)) < 60
    )


def test_page_is_drawn_with_the_chunk_outlined_and_only_for_those_who_see_the_document(gallery):
    plain, outlined = asked(gallery, "pages/1"), asked(gallery, "pages/1?chunk=0")
    assert [each.headers["content-type"] for each in (plain, outlined)] == ["image/webp"] * 2
    assert outlined.headers["cache-control"] == "no-store"
    assert browns(plain) < 200
    assert browns(outlined) > 2000
    assert asked(gallery, "pages/1", "ben").status_code == 404
    assert "text/html" in asked(gallery, "pages/1", "ben").headers["content-type"]
    assert 'src="' in gallery.asking["ada"].get(f"{gallery.path}?chunk=0").text


def test_chunk_that_goes_on_is_outlined_on_each_of_its_pages(gallery):
    shown = gallery.asking["ada"].get(f"{gallery.boards}?chunk=0").text
    places = [f"pages/{number}?chunk=0" for number in (1, 2, 3)]
    assert re.findall(r'<img src="[^"]+/(pages/[^"]+)"', shown) == places
    assert re.findall("<h2>(Page .*?)</h2>", shown) == ["Page 1", "Page 2", "Page 3"]
    for place in places:
        assert browns(asked(gallery, place, path=gallery.boards)) > 2000, place
    found = gallery.asking["ada"].get("/search", params={"q": "planed boards", "mode": "text"}).text
    assert "boards.pdf<span>page 1</span>" in found
    # Without a chosen chunk, the page on which the text begins stands beside it, and nothing is outlined.
    shown = gallery.asking["ada"].get(gallery.boards).text
    assert re.findall(r'/pages/([^"]+)"><img', shown) == ["1"]


def test_page_of_a_compressed_file_is_not_drawn(gallery):
    shown = gallery.asking["ada"].get(f"{gallery.packed}?chunk=0").text
    assert "is planed" in shown
    assert "/pages/" not in shown
    assert asked(gallery, "pages/1", path=gallery.packed).status_code == 404


def test_picture_stands_beside_the_text_that_was_read_from_it(gallery):
    shown = gallery.asking["ada"].get(gallery.notice).text
    assert "FORKLIFT" in re.search(r'<div class="reading">(.*?)</section>', shown, re.DOTALL)[1].upper()
    assert re.findall(r'<img src="([^"]+)" width="4" height="3" loading="lazy" alt="([^"]+)"', shown) == [
        (f"{gallery.notice}/pages/1", "The picture, whose text stands beside it")
    ]
    drawn = Image.open(io.BytesIO(asked(gallery, "pages/1", path=gallery.notice).content))
    assert drawn.size[0] / drawn.size[1] == pytest.approx(Image.open(NOTICE).size[0] / Image.open(NOTICE).size[1], 0.01)


def test_part_of_a_chunk_on_a_page_is_what_stands_between_its_ends():
    pages = [(0, 10, 1), (12, 20, 2), (22, 30, 3), (32, 40, 5)]
    text = "one two\n\nthree four\n\nfive"
    assert divided(text, 3, pages) == {1: "one two", 2: "three fo", 3: "\n\nfive"}
    assert divided("two", 4, pages) == {1: "two"}
    assert divided("\n\n", 10, pages) == {}


def test_as_many_pages_of_a_chunk_are_drawn_as_one_looks_at():
    chunks = [{"page": 4}, {"page": 6}]
    assert drawn_pages(chunks, 1, [6, 7]) == DrawnPages((6, 7), 1, 0)
    assert drawn_pages(chunks, 0, range(4, 30)) == DrawnPages(tuple(range(4, 12)), 0, 18)
    assert drawn_pages(chunks, None, []) == DrawnPages((4,), None, 0)
    assert drawn_pages([], 7, []) == DrawnPages((1,), None, 0)


def test_what_cannot_be_drawn_is_said_in_its_place(gallery):
    answer = asked(gallery, "pages/99")
    assert (answer.status_code, answer.headers["content-type"]) == (404, "image/svg+xml")
    assert "it cannot be drawn: damaged" in answer.text
    content = gallery.file.read_bytes()
    gallery.file.write_bytes(content + b"\n")
    assert "its file has changed since it was read" in asked(gallery, "pages/2").text
    gallery.file.unlink()
    assert "its file is not there any more" in asked(gallery, "pages/2").text
    gallery.file.write_bytes(content)


def test_picture_that_needs_more_memory_than_its_limit_ends_alone():
    made = io.BytesIO()
    Image.new("RGB", (9_000, 9_000)).save(made, "PNG")
    small, enough = (Order("image/png", 1, "", megabytes * 1024**2, 20) for megabytes in (300, 2_000))
    with pytest.raises(NotDrawn, match=r"memory|ended"):
        drawings._drawn(small, made.getvalue())
    assert Image.open(io.BytesIO(drawings._drawn(enough, made.getvalue()))).size == (1200, 1200)


def test_process_that_draws_does_not_inherit_secrets(tmp_path, monkeypatch):
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\nenv\n")
    program.chmod(0o700)
    monkeypatch.setenv("OPENAI_API_KEY", "a secret")
    monkeypatch.setattr(drawings.sys, "executable", str(program))
    told = drawings._drawn(Order("image/png", 1, "", 10**9, 20), b"").decode()
    assert "PATH=" in told
    assert "OPENAI" not in told


def test_drawings_give_way_to_later_ones(monkeypatch):
    cache = drawings._Cache()
    monkeypatch.setattr(drawings, "_CACHED_BYTES", 10)
    for name in "abc":
        cache.put(name, b"1234")
    assert [cache.get(name) for name in "abc"] == [None, b"1234", b"1234"]
