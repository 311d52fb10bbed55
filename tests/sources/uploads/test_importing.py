"""Pages and videos that are imported on demand."""

import pytest

from parquetry.errors import BrokenDocument, DocumentError, SkippedDocument, TransientError
from parquetry.settings.sections import parse_settings
from parquetry.sources.uploads.importing import fetch_url
from parquetry.sources.youtube import source as youtube
from tests.servers.web_server import Page, WebServer
from tests.servers.youtube import Video, YouTube

VIDEO = "kiln_dries-"


@pytest.fixture
def server():
    with WebServer() as server:
        yield server


def settings_of(*allow, **serve):
    return parse_settings({"uploads": {"allow": list(allow)}, "serve": serve}, "test")


def test_page_is_fetched_with_its_name_and_type(server):
    page = "<!doctype html><title>Oak</title><p>Oak dries.</p>"
    server.pages["/wood/oak"] = Page(page, headers={"Content-Type": "text/html; charset=utf-8"})
    found = fetch_url(f"{server.url}/wood/oak#drying", settings_of(server.place))
    assert (found.content, found.filename, found.content_type) == (page.encode(), "oak", "text/html")
    assert (found.kind, found.url, dict(found.metadata)) == ("url", f"{server.url}/wood/oak", {})


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("ftp://example.org/x", "bad-url"),
        ("file:///etc/passwd", "bad-url"),
        ("gopher://example.org/", "bad-url"),
        ("javascript:alert(1)", "bad-url"),
        ("/etc/passwd", "bad-url"),
        ("http://", "bad-url"),
        ("https://ada:secret@example.org/", "bad-url"),
        ("https://example.org/?access_token=secret", "bad-url"),
        ("http://127.0.0.1/", "forbidden-address"),
        ("http://localhost:1/", "forbidden-address"),
        ("http://[::1]/", "forbidden-address"),
        ("http://[::ffff:127.0.0.1]/", "forbidden-address"),
        ("http://169.254.169.254/latest/meta-data", "forbidden-address"),
        ("http://10.0.0.1/", "forbidden-address"),
        ("http://192.168.1.1/", "forbidden-address"),
        ("http://0x7f000001/", "forbidden-address"),
        ("http://2130706433/", "forbidden-address"),
        ("http://0.0.0.0/", "forbidden-address"),
    ],
)
def test_address_that_may_not_be_asked_is_refused_before_any_connection(url, reason):
    with pytest.raises(DocumentError) as error:
        fetch_url(url, settings_of())
    assert error.value.reason == reason
    assert "secret" not in str(error.value)


def test_redirect_to_a_forbidden_address_is_not_followed(server):
    with WebServer() as inner:
        inner.pages["/"] = Page("secret")
        server.pages["/"] = Page("", 302, headers={"Location": f"{inner.url}/"})
        with pytest.raises(BrokenDocument) as error:
            fetch_url(f"{server.url}/", settings_of(server.place))
        assert error.value.reason == "forbidden-address"
        assert inner.asked == []


@pytest.mark.parametrize(
    ("page", "error", "reason"),
    [
        (Page("gone", 404), BrokenDocument, "not-found"),
        (Page("no", 403), BrokenDocument, "forbidden"),
        (Page("busy", 503), TransientError, "server-error"),
        (Page(b""), SkippedDocument, "empty"),
        (Page(b"x" * 2000), DocumentError, "too-large"),
    ],
    ids=["404", "403", "503", "empty", "large"],
)
def test_page_that_cannot_be_had_says_why(server, page, error, reason):
    server.pages["/"] = page
    with pytest.raises(error) as raised:
        fetch_url(f"{server.url}/", settings_of(server.place, max_document_bytes=1000))
    assert raised.value.reason == reason


def test_robots_are_respected(server):
    server.pages["/robots.txt"] = Page("User-agent: *\nDisallow: /private\n")
    server.pages["/private"] = Page("secret")
    with pytest.raises(DocumentError, match="robots"):
        fetch_url(f"{server.url}/private", settings_of(server.place))
    assert "/private" not in server.paths()


@pytest.fixture
def site(monkeypatch):
    with YouTube() as server:
        monkeypatch.setattr(youtube, "new_session", server.session)
        yield server


@pytest.mark.parametrize(
    "url", [f"https://youtu.be/{VIDEO}?t=3", f"https://www.youtube.com/watch?v={VIDEO}&list=PL0123456789"]
)
def test_video_is_its_captions(site, url):
    site.videos[VIDEO] = Video(tracks={"asr:en": [(0.0, "Oak needs nine weeks.")]})
    found = fetch_url(url, settings_of())
    assert b"Oak needs nine weeks." in found.content
    assert (found.kind, found.url) == ("youtube", f"https://www.youtube.com/watch?v={VIDEO}")
    assert (found.filename, found.content_type) == (f"{VIDEO}.md", "text/markdown")
    assert found.metadata == {"source": "youtube"}
    assert found.title


def test_video_without_captions_says_what_to_do(site):
    site.videos[VIDEO] = Video(tracks={})
    with pytest.raises(BrokenDocument, match="hand in a transcript") as error:
        fetch_url(f"https://youtu.be/{VIDEO}", settings_of())
    assert error.value.reason == "no-captions"


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("https://www.youtube.com/playlist?list=PL0123456789", "playlist"),
        ("https://www.youtube.com/@somebody", "not-a-video"),
    ],
)
def test_page_of_the_site_that_is_no_video_is_skipped(url, reason):
    with pytest.raises(SkippedDocument) as error:
        fetch_url(url, settings_of())
    assert error.value.reason == reason
