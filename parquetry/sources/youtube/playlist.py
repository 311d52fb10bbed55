"""Videos of a YouTube playlist, read from the pages served to browsers."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from parquetry.errors import TransientError
from parquetry.plural import counted

if TYPE_CHECKING:
    import requests

_PAGE = "https://www.youtube.com/playlist"
_MORE = "https://www.youtube.com/youtubei/v1/browse"
_FULL_PAGE = 100
"""videos on every page except the last"""
_INITIAL_DATA = re.compile(r"ytInitialData\"?\]?\s*=\s*(?=\{)")
_KEY = re.compile(r'"INNERTUBE_API_KEY":\s*"([\w-]+)"')
_VERSION = re.compile(r'"INNERTUBE_CLIENT_VERSION":\s*"([\w.]+)"')
_CONSENT = re.compile(r'action="https://consent\.youtube\.com/')
_CONSENT_VALUE = re.compile(r'name="v" value="(.*?)"')


@dataclass(frozen=True, slots=True)
class _Page:
    """A part of a playlist."""

    videos: Sequence[str]
    token: str | None
    """continuation token of the next page; None on the last page"""


def videos_of_playlist(playlist: str, session: requests.Session) -> Iterator[str]:
    """Yield each video of a playlist once, page by page.

    Args:
        playlist: id of the playlist.
        session: HTTP session.

    Raises:
        TransientError: a page is missing or cannot be parsed, so that the rest is unknown.
        requests.RequestException: YouTube cannot be reached, or answers with an error.
    """
    html = _html(playlist, session)
    key, version = _KEY.search(html), _VERSION.search(html)
    place = _INITIAL_DATA.search(html)
    if place is None:
        raise _not_understood(playlist, "its page holds no list")
    data, _ = json.JSONDecoder().raw_decode(html, place.end())
    page = _page(data)
    if not page.videos:
        raise _not_understood(playlist, "its page lists no video; is it empty or private?")
    seen: dict[str, None] = {}
    tokens: set[str] = set()
    while True:
        for video in page.videos:
            if video not in seen:
                seen[video] = None
                yield video
        if page.token is None:
            break
        if key is None or version is None or page.token in tokens:
            raise _not_understood(playlist, f"there is no way on after {counted(len(seen), 'video')}")
        tokens.add(page.token)
        page = _next_page(session, key[1], version[1], page.token)
        if not page.videos:
            raise _not_understood(playlist, f"it breaks off after {counted(len(seen), 'video')}")
    if len(page.videos) >= _FULL_PAGE:
        raise _not_understood(playlist, f"it has {len(seen)} videos and perhaps more")


def _not_understood(playlist: str, what: str) -> TransientError:
    return TransientError("unreadable-answer", f"playlist {playlist}: {what}; nothing of it is removed")


def _html(playlist: str, session: requests.Session) -> str:
    for _ in range(2):
        answer = session.get(_PAGE, params={"list": playlist, "hl": "en"})
        answer.raise_for_status()
        if not _CONSENT.search(answer.text):
            return answer.text
        value = _CONSENT_VALUE.search(answer.text)
        if value is not None:
            session.cookies.set("CONSENT", "YES+" + value[1], domain=".youtube.com")
    raise TransientError("consent", "YouTube asks for consent to cookies, and did not take the answer")


def _next_page(session: requests.Session, key: str, version: str, token: str) -> _Page:
    context = {"client": {"clientName": "WEB", "clientVersion": version, "hl": "en"}}
    answer = session.post(_MORE, params={"key": key}, json={"context": context, "continuation": token})
    answer.raise_for_status()
    return _page(answer.json())


def _page(data: Any) -> _Page:
    """Find the longest list of videos anywhere in a response, because YouTube changes its place."""
    found: list[Any] = max(_lists(data), key=lambda entries: sum(map(bool, map(_video, entries))), default=[])
    videos = [video for entry in found if (video := _video(entry))]
    # The continuation token is at the end of the list, or beside it.
    token = next(_tokens(found), None) or next(_tokens(data), None)
    return _Page(videos, token)


def _lists(node: Any) -> Iterator[list[Any]]:
    if isinstance(node, list):
        yield node
    for child in _children(node):
        yield from _lists(child)


def _tokens(node: Any) -> Iterator[str]:
    if isinstance(node, dict) and "continuationItemRenderer" in node:
        yield from _commands(node["continuationItemRenderer"])
        return
    for child in _children(node):
        yield from _tokens(child)


def _commands(node: Any) -> Iterator[str]:
    if isinstance(node, dict) and isinstance(node.get("continuationCommand"), dict):
        token = node["continuationCommand"].get("token")
        if isinstance(token, str):
            yield token
    for child in _children(node):
        yield from _commands(child)


def _children(node: Any) -> Sequence[Any]:
    return list(node.values()) if isinstance(node, dict) else node if isinstance(node, list) else ()


def _video(entry: Any) -> str | None:
    """Return the id of the video that a list entry stands for; None for other entries."""
    if not isinstance(entry, dict):
        return None
    older, newer = entry.get("playlistVideoRenderer"), entry.get("lockupViewModel")
    if isinstance(older, dict):
        return older.get("videoId")
    if isinstance(newer, dict) and newer.get("contentType") == "LOCKUP_CONTENT_TYPE_VIDEO":
        return newer.get("contentId")
    return None
