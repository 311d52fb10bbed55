"""Pages and pictures of documents: drawn by a process with limits, for those who may see them."""

import io
import shutil

import pytest
from PIL import Image

from parquetry.extract.drawing import Order
from parquetry.serving.service import drawings
from parquetry.serving.service.drawings import NotDrawn
from parquetry.settings.sections import parse_settings
from tests.documentation import ROOT
from tests.servers.http_app import running_app
from tests.workshop import Workshop

pytestmark = pytest.mark.slow

PDF = ROOT / "examples" / "handbook" / "sales" / "newsletter.pdf"
BROWN = (138, 75, 20)
"""colour of the outline"""


@pytest.fixture(scope="module")
def gallery(tmp_path_factory):
    """Run an application over a PDF that Ada alone sees."""
    workshop = Workshop(tmp_path_factory.mktemp("gallery"))
    shutil.copy(PDF, workshop.write("newsletter.pdf", b""))
    workshop.sections["source"] = {"visibility": "individual", "user_id": "ada"}
    workshop.refresh()
    tables = {"corpus": {"root": str(workshop.root / "corpus")}, "serve": {"token_required": True}}
    source = {"name": "docs", "uri": str(workshop.folder), "visibility": "individual", "user_id": "ada"}
    with running_app(parse_settings({**tables, "source": [source]}, "test")) as app:
        with app.resources.follower.reader(wait=60) as reader:
            (row,) = reader.documents()
        app.path, app.file = f"/documents/{row['document_id']}", workshop.folder / "newsletter.pdf"
        app.asking = {
            user: app.client(app.resources.tokens.create(user, user_id=user, rights=["read"])[1])
            for user in ("ada", "ben")
        }
        yield app
        for client in app.asking.values():
            client.close()


def asked(gallery, place, user="ada"):
    token = gallery.asking[user].headers["Authorization"].removeprefix("Bearer ")
    return gallery.asking[user].get(f"{gallery.path}/{place}", headers={"X-Parquetry-Token": token})


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
