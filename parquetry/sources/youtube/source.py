"""YouTube videos: their captions, as text with timecodes."""

from __future__ import annotations

import json
import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from itertools import chain
from urllib.parse import parse_qs, urlsplit
from xml.etree.ElementTree import ParseError

import requests
from pydantic import Field
from youtube_transcript_api import (
    AgeRestricted,
    CouldNotRetrieveTranscript,
    FailedToCreateConsentCookie,
    FetchedTranscript,
    InvalidVideoId,
    PoTokenRequired,
    RequestBlocked,
    Transcript,
    TranscriptList,
    TranscriptsDisabled,
    VideoUnavailable,
    VideoUnplayable,
    YouTubeRequestFailed,
    YouTubeTranscriptApi,
)

from parquetry import ids
from parquetry.errors import BrokenDocument, DocumentError, ParquetryError, SettingsError, TransientError, first_line
from parquetry.model import Access, Item, Unlisted
from parquetry.settings.base import Section
from parquetry.sources.base import Place
from parquetry.sources.options import options_of
from parquetry.sources.paths import within
from parquetry.sources.youtube.playlist import videos_of_playlist
from parquetry.timecodes import sections, timecode

_READ_AHEAD = 200
"""transcripts cached by a listing for the fetch that follows; about 30 KB each"""
_TIMEOUT_SECONDS = 30
_VIDEO = re.compile(r"[\w-]{11}", re.ASCII)
_PLAYLIST = re.compile(r"[\w-]{10,80}", re.ASCII)
_BEFORE_VIDEO = {"embed", "v", "shorts", "live", "e"}
"""first path segments followed by a video id"""
_UNDERSTOOD = "a video (watch?v=, youtu.be/, /embed/, /v/, /shorts/, /live/) or a playlist (playlist?list=)"
_BLOCKED = "blocked"
_BLOCKED_SECONDS = 3600.0
"""back-off when YouTube blocks requests; it does not say how long, and every request prolongs the block"""


class YouTubeOptions(Section):
    """`[source.options]` of a video or playlist."""

    languages: tuple[str, ...] = Field(
        (),
        description="Languages of the captions, the best first (`de`, `en-GB`); empty takes those of the language that "
        "is spoken.",
    )


class YouTubeSource:
    """One video, or the videos of a playlist. Requests are sequential, because YouTube blocks clients that send faster.

    Args:
        place: access of the videos, and the name of the source for messages.
        videos: lists the ids of the videos.
        languages: languages of captions, the best first; empty for the spoken language.
        session: HTTP session.
    """

    def __init__(
        self,
        place: Place,
        videos: Callable[[requests.Session], Iterator[str]],
        languages: Sequence[str],
        session: requests.Session,
    ) -> None:
        self._access: Access = place.access
        self._videos = videos
        self._languages = languages
        self._session = session
        self._api = YouTubeTranscriptApi(http_client=session)
        self._read_ahead: OrderedDict[str, bytes] = OrderedDict()
        self._lock = threading.Lock()

    def scan(self, prefix: str = "") -> Iterator[Item | Unlisted]:
        """List the videos; read the captions of each, because nothing cheaper shows whether they changed."""
        videos = self._videos(self._session)
        while (video := self._next(videos)) is not None:
            if not within(_path(video), prefix):
                continue
            try:
                # A retried listing does not request again what it already has.
                content = self._read_ahead.get(video) or self._transcript(video)
            except DocumentError as error:
                # Its fetch reports the reason; another reason, or captions, is a change.
                yield self._item(video, error.reason, 0)
            except TransientError as error:
                if error.reason == _BLOCKED:
                    raise
                yield Unlisted(_path(video), str(error))
            else:
                self._keep(video, content)
                yield self._item(video, ids.content_hash(content), len(content))

    def _next(self, videos: Iterator[str]) -> str | None:
        with self._lock, _as_transient("the list of videos"):
            return next(videos, None)

    def fetch(self, item: Item) -> tuple[Item, bytes]:
        video = item.path.removesuffix(".md")
        if not _VIDEO.fullmatch(video):
            raise FileNotFoundError(2, "is no video", item.path)
        with self._lock:
            content = self._read_ahead.pop(video, None)
        if content is None:
            content = self._transcript(video)
        return replace(item, size=len(content), etag=ids.content_hash(content)), content

    def _keep(self, video: str, content: bytes) -> None:
        with self._lock:
            self._read_ahead[video] = content
            if len(self._read_ahead) > _READ_AHEAD:
                self._read_ahead.popitem(last=False)

    def _item(self, video: str, etag: str, size: int) -> Item:
        # YouTube does not report when captions changed: use the time at which the change is seen.
        return Item(_path(video), _uri(video), size, etag, datetime.now(UTC), self._access)

    def _transcript(self, video: str) -> bytes:
        with self._lock, _as_transient(_uri(video)):
            track = chosen(self._api.list(video), self._languages)
            return markdown(_about(video, self._session), track.fetch(), _uri(video))


def open_youtube(place: Place) -> YouTubeSource:
    """Open the video or playlist at a URL.

    Raises:
        SettingsError: the URL is neither, or the options are invalid.
    """
    options = options_of(place, YouTubeOptions)
    return YouTubeSource(place, _videos_at(place), options.languages, new_session())


def new_session() -> requests.Session:
    """Return an HTTP session that reaches only YouTube and has a timeout on every request."""
    session = requests.Session()
    session.mount("http://", _Refusing())
    session.mount("https://", _Refusing())
    session.mount("https://www.youtube.com/", _Patient())
    session.mount("https://consent.youtube.com/", _Patient())
    return session


class _Patient(requests.adapters.HTTPAdapter):
    def send(self, request: requests.PreparedRequest, *args: object, **options: object) -> requests.Response:
        options["timeout"] = _TIMEOUT_SECONDS
        return super().send(request, *args, **options)  # type: ignore[arg-type]


class _Refusing(requests.adapters.HTTPAdapter):
    def send(self, request: requests.PreparedRequest, *_: object, **__: object) -> requests.Response:
        raise requests.exceptions.InvalidURL(f"{urlsplit(str(request.url)).hostname} is not YouTube")


def _videos_at(place: Place) -> Callable[[requests.Session], Iterator[str]]:
    video, playlist = named_by(place.uri)
    if video:
        return lambda _: iter((video,))
    if playlist:
        return lambda session: videos_of_playlist(playlist, session)
    raise SettingsError(f"source {place.name}: {place.uri} is not {_UNDERSTOOD}")


def named_by(uri: str) -> tuple[str, str]:
    """Return the ids of the video and of the playlist that a URL names; an empty one for the other, or for both."""
    parts = urlsplit(uri)
    steps = [step for step in parts.path.split("/") if step]
    query = {key: values[0] for key, values in parse_qs(parts.query).items()}
    video = ""
    if (parts.hostname or "").endswith("youtu.be") and steps:
        video = steps[0]
    elif steps[:1] == ["watch"]:
        video = query.get("v", "")
    elif len(steps) > 1 and steps[0] in _BEFORE_VIDEO:
        video = steps[1]
    playlist = query.get("list", "") if steps[:1] == ["playlist"] else ""
    if _VIDEO.fullmatch(video):
        return video, ""
    return "", playlist if _PLAYLIST.fullmatch(playlist) else ""


def captions_of(video: str) -> tuple[str, bytes]:
    """Read the captions of one video, as Markdown.

    Args:
        video: its id.

    Returns:
        The URL of the video, and the text.

    Raises:
        BrokenDocument: it has no captions, or they are not shown to everybody.
        TransientError: YouTube cannot be asked at the moment.
    """
    source = YouTubeSource(Place(_uri(video), _uri(video)), lambda _: iter((video,)), (), new_session())
    return _uri(video), source.fetch(Item(_path(video), _uri(video), 0, "", datetime.now(UTC), Access()))[1]


def chosen(tracks: TranscriptList, languages: Sequence[str]) -> Transcript:
    """Choose captions in the best available language, manual ones before automatic ones.

    Args:
        tracks: all captions of a video.
        languages: the best first, each matching its regional forms, too; empty for the spoken language.

    Raises:
        BrokenDocument: `no-captions`: none of the languages is available.
    """
    available = list(tracks)
    if not available:
        raise BrokenDocument("no-captions", "the video has no captions")
    if not languages:
        # Automatic captions are in the spoken language; manual ones may be translations.
        spoken = [track.language_code for track in available if track.is_generated]
        languages = [*spoken, *(track.language_code for track in available)]
    for language in languages:
        for track in available:
            if _matches(track.language_code, language):
                return track
    there = ", ".join(dict.fromkeys(track.language_code for track in available))
    raise BrokenDocument(
        "no-captions", f"the video has no captions in {', '.join(languages)} (options.languages); it has: {there}"
    )


def _matches(code: str, wanted: str) -> bool:
    return code.lower() == wanted.lower() or code.lower().startswith(wanted.lower() + "-")


def markdown(about: dict[str, str], transcript: FetchedTranscript, uri: str) -> bytes:
    """Format a transcript as Markdown: front matter, and a heading with its timecode every half minute.

    Args:
        about: title and author, as far as known.
        transcript: the captions.
        uri: URL of the video.

    Raises:
        BrokenDocument: `no-captions`, the captions contain no words.
    """
    front = {
        **about,
        "url": uri,
        "language": transcript.language_code,
        "captions": "automatic" if transcript.is_generated else "made by hand",
    }
    spoken = sections((snippet.start, snippet.text) for snippet in transcript)
    if not spoken:
        raise BrokenDocument("no-captions", "the captions of the video are empty")
    head = ["---", *(f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in front.items()), "---"]
    body = chain.from_iterable((f"\n## {timecode(start)}\n", _paragraph(words)) for start, words in spoken)
    return ("\n".join([*head, *body]) + "\n").encode("utf-8", "replace")


def _paragraph(words: Sequence[str]) -> str:
    """Join words to one line that starts no heading, code or HTML, which would hide the headings after it."""
    text = " ".join(words)
    return "\\" + text if text[0] in "#`~<" else text


def _about(video: str, session: requests.Session) -> dict[str, str]:
    """Read title and author from the oEmbed endpoint."""
    answer = session.get("https://www.youtube.com/oembed", params={"url": _uri(video), "format": "json"})
    if answer.status_code in (400, 401, 403, 404):
        # The owner does not allow embedding; the captions are available all the same.
        return {}
    answer.raise_for_status()
    told = answer.json()
    return {key: told[name] for key, name in (("title", "title"), ("author", "author_name")) if told.get(name)}


def _path(video: str) -> str:
    return f"{video}.md"


def _uri(video: str) -> str:
    return f"https://www.youtube.com/watch?v={video}"


@contextmanager
def _as_transient(what: str) -> Iterator[None]:
    """Translate errors of YouTube's responses into the project's errors."""
    try:
        yield
    except CouldNotRetrieveTranscript as error:
        raise _meaning(error) from error
    except requests.RequestException as error:
        raise TransientError("unreachable", f"YouTube could not be asked for {what}: {first_line(error)}") from error
    except (ParseError, AttributeError, KeyError, TypeError, IndexError, ValueError) as error:
        raise TransientError(
            "unreadable-answer",
            f"YouTube's answer for {what} is not what its interface gave before ({type(error).__name__}); if it "
            "stays so, update youtube-transcript-api",
        ) from error


def _meaning(error: CouldNotRetrieveTranscript) -> ParquetryError:
    match error:
        case TranscriptsDisabled():
            return BrokenDocument("no-captions", "the video has no captions")
        case RequestBlocked():
            return TransientError(
                _BLOCKED,
                "YouTube refuses requests from this machine's address; refresh less often, or set HTTPS_PROXY to a "
                "way out that it accepts",
                retry_after=_BLOCKED_SECONDS,
            )
        case AgeRestricted():
            return BrokenDocument("age-restricted", "YouTube shows the video only to people who have signed in")
        case VideoUnavailable() | InvalidVideoId():
            return BrokenDocument("unavailable", "YouTube says that the video is not available")
        case VideoUnplayable():
            return BrokenDocument(
                "unplayable", f"YouTube does not play the video: {error.reason or 'it says no reason'}"
            )
        case PoTokenRequired():
            return BrokenDocument("captions-locked", "YouTube gives the captions of this video to its own player only")
        case FailedToCreateConsentCookie():
            return TransientError("consent", "YouTube asks for consent to cookies, and did not take the answer")
        case YouTubeRequestFailed():
            return TransientError("unreachable", f"YouTube answered with an error: {error.reason}")
        case _:
            return TransientError(
                "unreadable-answer",
                "YouTube's page is not what it was; if it stays so, update youtube-transcript-api",
            )
