"""Captions of videos and playlists, through the official client, from a server that responds like YouTube."""

import pytest

from parquetry.errors import BrokenDocument, SettingsError, TransientError
from parquetry.extract.registry import extract
from parquetry.model import Access, Item, RawDocument, Unlisted
from parquetry.settings.sections import ExtractionSettings
from parquetry.sources.base import Place
from parquetry.sources.providers import open_place
from parquetry.sources.youtube import source as youtube
from tests.servers.youtube import PAGE_VIDEOS, Video, YouTube

KILN = "kiln_dries-"
CUES = [(0.0, "Welcome to the kiln."), (12.5, "Oak needs nine weeks,"), (31.0, "ash only six."), (3723.4, "Goodbye.")]


@pytest.fixture
def site(monkeypatch):
    with YouTube() as server:
        monkeypatch.setattr(youtube, "new_session", server.session)
        server.videos[KILN] = Video(tracks={"asr:en": CUES, "de": [(0.0, "Willkommen am Ofen.")]})
        yield server


def source_of(uri, **options):
    return open_place(Place("videos", uri, Access("individual", user_id="ada"), options=options))


def watch(video=KILN):
    return f"https://www.youtube.com/watch?v={video}"


def only(uri, **options):
    """Return the one document of a source."""
    source = source_of(uri, **options)
    (item,) = source.scan("")
    return source.fetch(item)


# --- selection of videos


@pytest.mark.parametrize(
    "uri",
    [
        watch(),
        f"https://m.youtube.com/watch?app=desktop&v={KILN}&t=90s",
        f"{watch()}&list=PL0123456789",
        f"https://youtu.be/{KILN}?si=abc",
        f"https://www.youtube.com/embed/{KILN}",
        f"https://www.youtube.com/v/{KILN}",
        f"https://youtube.com/shorts/{KILN}",
        f"https://music.youtube.com/watch?v={KILN}",
        f"https://www.youtube.com/live/{KILN}?feature=share",
    ],
)
def test_every_form_of_address_is_the_video(site, uri):
    (item,) = source_of(uri).scan("")
    assert (item.path, item.uri) == (f"{KILN}.md", watch())
    assert item.access == Access("individual", user_id="ada")


@pytest.mark.parametrize(
    "uri",
    [
        "https://www.youtube.com/@oakline",
        "https://www.youtube.com/",
        "https://www.youtube.com/watch",
        "https://www.youtube.com/watch?v=short",
        "https://youtu.be/",
        "https://www.youtube.com/playlist",
        "https://www.youtube.com/embed",
    ],
)
def test_other_pages_of_the_site_are_refused_with_what_is_understood(uri):
    with pytest.raises(SettingsError, match=r"source videos: .* is not a video .* or a playlist"):
        source_of(uri)


def test_unknown_option_is_refused():
    with pytest.raises(SettingsError, match="unknown setting language; did you mean languages"):
        source_of(watch(), language="de")


# --- stored documents


def test_captions_become_sections_under_their_timecodes(site):
    item, content = only(watch())
    extraction = extract(RawDocument(content, item.path), ExtractionSettings())
    assert extraction.title == "How a kiln dries"
    assert [heading.title for heading in extraction.headings] == ["0:00", "0:31", "1:02:03"]
    assert "Welcome to the kiln. Oak needs nine weeks,\n\n## 0:31\n\nash only six." in extraction.text
    assert extraction.metadata == {
        "author": "Oakline",
        "url": watch(),
        "language": "en",
        "captions": "automatic",
    }


@pytest.mark.parametrize("start", ["# not a heading", "``` no code", "~~~", "<!-- no comment"])
def test_words_that_look_like_markup_hide_no_timecode(site, start):
    site.videos[KILN].tracks = {"en": [(0.0, start), (60.0, "after")]}
    item, content = only(watch())
    extraction = extract(RawDocument(content, item.path), ExtractionSettings())
    assert [heading.title for heading in extraction.headings] == ["0:00", "1:00"]


@pytest.mark.parametrize(
    ("tracks", "languages", "expected"),
    [
        (["de", "asr:en", "fr"], [], ("en", "automatic")),
        (["de", "en", "asr:en"], [], ("en", "made by hand")),
        (["fr", "de"], [], ("fr", "made by hand")),
        (["asr:en", "de"], ["de", "en"], ("de", "made by hand")),
        (["asr:de", "en"], ["de", "en"], ("de", "automatic")),
        (["asr:de", "de"], ["de"], ("de", "made by hand")),
        (["en-GB", "fr"], ["it", "en"], ("en-GB", "made by hand")),
    ],
)
def test_captions_are_taken_in_the_best_language_and_made_by_hand_if_there_are(site, tracks, languages, expected):
    site.videos[KILN].tracks = {track: [(0.0, track)] for track in tracks}
    item, content = only(watch(), languages=languages)
    told = extract(RawDocument(content, item.path), ExtractionSettings()).metadata
    assert (told["language"], told["captions"]) == expected


def test_video_that_may_not_be_embedded_has_no_title_and_its_captions_all_the_same(site):
    site.videos[KILN].embeddable = False
    item, content = only(watch())
    assert extract(RawDocument(content, item.path), ExtractionSettings()).title is None


def test_change_token_follows_the_captions_and_nothing_else(site):
    before, _ = only(watch())
    assert only(watch())[0].etag == before.etag
    site.videos[KILN].tracks["asr:en"] = [*CUES, (3800.0, "One more thing.")]
    assert only(watch())[0].etag != before.etag


def test_listed_video_is_asked_for_once(site):
    only(watch())
    assert site.asked == ["/watch", "/youtubei/v1/player", "/oembed", "/api/timedtext"]


# --- failures

UNSEEN = "This video is unavailable"
NO_ROBOT = "Sign in to confirm you’re not a bot"
ADULT = "This video may be inappropriate for some users."


def disabled(site):
    site.videos[KILN].tracks = {}


def empty(site):
    site.videos[KILN].tracks = {"en": [(0.0, " ")]}


def gone(site):
    del site.videos[KILN]


def locked(site):
    site.videos[KILN].locked = True


def plays(status, reason):
    def apply(site):
        site.videos[KILN] = Video(playability={"status": status, "reason": reason})

    return apply


@pytest.mark.parametrize(
    ("happens", "reason"),
    [
        (disabled, "no-captions"),
        (empty, "no-captions"),
        (gone, "unavailable"),
        (locked, "captions-locked"),
        (plays("LOGIN_REQUIRED", ADULT), "age-restricted"),
        (plays("UNPLAYABLE", "Members only"), "unplayable"),
    ],
)
def test_video_without_readable_captions_is_listed_and_fails_with_its_reason(site, happens, reason):
    happens(site)
    source = source_of(watch())
    (item,) = source.scan("")
    assert item.etag == reason
    with pytest.raises(BrokenDocument) as raised:
        source.fetch(item)
    assert raised.value.reason == reason


def test_captions_in_other_languages_only_are_told(site):
    source = source_of(watch(), languages=["it"])
    (item,) = source.scan("")
    with pytest.raises(BrokenDocument, match=r"no captions in it \(options.languages\); it has: de, en"):
        source.fetch(item)


def answers(path, status, body=""):
    def apply(site):
        site.answers[path] = (status, body)

    return apply


@pytest.mark.parametrize(
    ("happens", "reason"),
    [
        (plays("LOGIN_REQUIRED", NO_ROBOT), "blocked"),
        (answers("/watch", 429), "blocked"),
        (answers("/watch", 200, '<div class="g-recaptcha">'), "blocked"),
    ],
)
def test_block_ends_the_listing(site, happens, reason):
    """Every further request would only prolong the block."""
    site.playlists["PLcourse00001"] = [KILN, "other_video"]
    happens(site)
    with pytest.raises(TransientError) as raised:
        list(source_of("https://www.youtube.com/playlist?list=PLcourse00001").scan(""))
    assert raised.value.reason == reason


@pytest.mark.parametrize(
    ("happens", "words"),
    [
        (answers("/watch", 503), "unreachable"),
        (answers("/oembed", 500), "unreachable"),
        (answers("/api/timedtext", 200), "unreadable-answer"),
        (answers("/youtubei/v1/player", 200, "<html>"), "unreachable|unreadable-answer"),
        (answers("/youtubei/v1/player", 200, "{}"), "unreadable-answer"),
        (answers("/watch", 200, "<html>"), "unreadable-answer"),
    ],
)
def test_video_that_cannot_be_read_now_is_not_taken_for_gone(site, happens, words):
    happens(site)
    (found,) = source_of(watch()).scan("")
    assert isinstance(found, Unlisted)
    assert any(word in found.detail for word in words.split("|"))


def test_listing_that_is_tried_again_asks_only_for_the_rest(site):
    site.playlists["PLcourse00001"] = [KILN, "other_video"]
    site.videos["other_video"] = Video(playability={"status": "LOGIN_REQUIRED", "reason": NO_ROBOT})
    source = source_of("https://www.youtube.com/playlist?list=PLcourse00001")
    with pytest.raises(TransientError):
        list(source.scan(""))
    site.videos["other_video"] = Video(tracks={"en": CUES})
    assert len(list(source.scan(""))) == 2
    assert site.asked.count("/api/timedtext") == 2


def test_consent_is_given_once(site):
    site.consent = True
    site.playlists["PLcourse00001"] = [KILN]
    item, _ = only("https://www.youtube.com/playlist?list=PLcourse00001")
    assert item.path == f"{KILN}.md"


def test_session_reaches_youtube_and_nothing_else():
    with pytest.raises(Exception, match=r"127\.0\.0\.1 is not YouTube"):
        youtube.new_session().get("http://127.0.0.1/secret")


# --- playlists


@pytest.mark.parametrize("older", [False, True], ids=["lockups", "renderers"])
@pytest.mark.parametrize("count", [1, PAGE_VIDEOS + 1, 2 * PAGE_VIDEOS + 30])
def test_playlist_is_listed_to_its_end(site, count, older):
    site.older_pages = older
    names = [f"video-{number:05}" for number in range(count)]
    site.playlists["PLcourse00001"] = [*names, names[0]]
    # Without captions: this test is about the listing.
    site.videos.update({name: Video() for name in names})
    found = list(source_of("https://www.youtube.com/playlist?list=PLcourse00001").scan(""))
    assert [item.path for item in found] == [f"{name}.md" for name in names]


@pytest.mark.parametrize("count", [0, PAGE_VIDEOS, PAGE_VIDEOS + 20])
def test_playlist_whose_end_is_not_known_is_no_whole_listing(site, count):
    site.loses_way = True
    names = [f"video-{number:05}" for number in range(count)]
    site.playlists["PLcourse00001"] = names
    site.videos.update({name: Video() for name in names})
    found = []
    with pytest.raises(TransientError, match="nothing of it is removed"):
        found.extend(source_of("https://www.youtube.com/playlist?list=PLcourse00001").scan(""))


def test_part_of_a_playlist_asks_for_that_video_alone(site):
    site.playlists["PLcourse00001"] = [KILN, "other_video"]
    source = source_of("https://www.youtube.com/playlist?list=PLcourse00001")
    assert [item.path for item in source.scan(f"{KILN}.md") if isinstance(item, Item)] == [f"{KILN}.md"]
    assert site.asked.count("/watch") == 1
