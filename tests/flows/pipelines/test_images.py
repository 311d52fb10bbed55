"""Images are described by a language model if the settings ask for it, and only once."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

import pytest
from PIL import Image

from parquetry.errors import SettingsError
from parquetry.planning.costs import Cost
from tests.servers.chat_server import ChatServer, error, said

CRANE = "A yellow crane lifts oak boards from a barge."


def picture() -> bytes:
    stream = BytesIO()
    Image.new("RGB", (40, 30), "white").save(stream, "PNG")
    return stream.getvalue()


@pytest.fixture
def gallery(workshop):
    workshop.write("crane.png", picture())
    workshop.write("note.md", "The crane is inspected every spring.")
    workshop.sections["extraction"] = {"workers": 1, "ocr": False, "include_image_descriptions": True}
    return workshop


def test_described_image_is_found_by_what_it_shows_and_asked_about_once(gallery):
    with ChatServer([said(CRANE)]) as server:
        prices = {"price_per_million_input_tokens": 1000, "price_per_million_output_tokens": 10_000}
        gallery.sections["llm"] = {"model": "m", "base_url": server.url, **prices}
        report = gallery.refresh()
        assert (report.documents.added, report.work.description_tokens) == (2, 129)
        assert report.work.cost_usd == pytest.approx(120 / 1000 + 9 / 100), "the bundled embedder costs nothing"
        described, embedded = report.costs
        assert described == Cost("default", "docs", "describe", 129, pytest.approx(120 / 1000 + 9 / 100))
        assert (embedded.purpose, embedded.cost_usd) == ("embed", 0.0)
        assert gallery.search("boards from a barge", k=1).hits[0].row["text"] == CRANE
        gallery.refresh()
        gallery.sections["chunking"] = {"size": 30, "overlap": 0}
        assert gallery.refresh().work.description_tokens == 0
    assert len(server.bodies) == 1


def test_picture_of_a_kind_that_models_do_not_take_is_not_sent(gallery):
    (gallery.folder / "crane.png").unlink()
    gallery.write("crane.tif", b"II*\0" + bytes(60))
    with ChatServer([]) as server:
        gallery.sections["llm"] = {"model": "m", "base_url": server.url}
        report = gallery.refresh()
    assert [failure.reason for failure in report.failures] == ["damaged"]
    assert server.bodies == []


def test_image_that_the_model_refuses_fails_alone(gallery):
    with ChatServer([error(400, "image is not acceptable")]) as server:
        gallery.sections["llm"] = {"model": "m", "base_url": server.url}
        report = gallery.refresh()
    assert (report.documents.added, report.documents.failed) == (1, 1)
    assert [failure.reason for failure in report.failures] == ["input-rejected"]


def test_descriptions_without_a_model_stop_with_what_to_set(gallery):
    with pytest.raises(SettingsError, match=r"set model in \[llm\]"):
        gallery.refresh()
    assert not Path(gallery.settings.corpus.root).exists()
