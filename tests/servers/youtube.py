"""A server on loopback that answers like YouTube, and a session of the official client that reaches it.

The pages are modelled on those of the site: the watch page and its consent form, the player's API, timed text, oEmbed,
and a playlist in both forms in which its pages list videos.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from html import escape
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qs, urlsplit

from requests.adapters import HTTPAdapter

from parquetry.sources.youtube.source import new_session
from tests.servers.loopback import LoopbackServer, Quiet

KEY, VERSION = "AIzaTestKey_0123", "2.20310610.00.00"
PAGE_VIDEOS = 100


@dataclass
class Video:
    """The server's data on a video."""

    title: str = "How a kiln dries"
    author: str = "Oakline"
    tracks: dict[str, list[tuple[float, str]]] = field(default_factory=dict)
    """language code -> cues; automatic captions have the prefix `asr:`"""
    playability: dict[str, Any] = field(default_factory=lambda: {"status": "OK"})
    embeddable: bool = True
    locked: bool = False
    """True if captions need the site's own player"""


class YouTube(LoopbackServer):
    """The server; use as a context manager."""

    def __init__(self) -> None:
        self.videos: dict[str, Video] = {}
        self.playlists: dict[str, list[str]] = {}
        self.asked: list[str] = []
        """paths of all requests, in order"""
        self.answers: dict[str, tuple[int, str]] = {}
        """path -> status and body that replace the usual answer"""
        self.consent = False
        """True if every page asks for consent until it is given"""
        self.older_pages = False
        """True if playlists are listed in the form of earlier years"""
        self.loses_way = False
        """True if pages of a playlist do not link to the next ones"""
        owner = self

        class Handler(Quiet, BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_GET(self) -> None:
                self._answer(b"")

            def do_POST(self) -> None:
                self._answer(self.rfile.read(int(self.headers.get("Content-Length", 0))))

            def _answer(self, content: bytes) -> None:
                parts = urlsplit(self.path)
                query = {name: values[0] for name, values in parse_qs(parts.query).items()}
                owner.asked.append(parts.path)
                consented = "CONSENT=YES+" in self.headers.get("Cookie", "")
                body = json.loads(content) if content else {}
                status, text = owner._answer(parts.path, query, body, consented=consented)
                raw = text.encode()
                self.send_response(status)
                self.send_header("Content-Type", "text/html; charset=utf-8")
                self.send_header("Content-Length", str(len(raw)))
                self.end_headers()
                self.wfile.write(raw)

        super().__init__(Handler)

    def session(self) -> Any:
        """Return the client's own session; it sends requests for the site's address, and no others, to this server."""
        session = new_session()
        session.mount("https://www.youtube.com/", _Led(f"http://127.0.0.1:{self._server.server_port}/"))
        return session

    def _answer(self, path: str, query: dict[str, str], body: dict[str, Any], *, consented: bool) -> tuple[int, str]:
        if path in self.answers:
            return self.answers[path]
        if self.consent and not consented and path in ("/watch", "/playlist"):
            return 200, '<form action="https://consent.youtube.com/s"><input name="v" value="cb.2031"></form>'
        match path:
            case "/watch":
                return 200, f'<html><script>ytcfg.set({{"INNERTUBE_API_KEY":"{KEY}"}})</script></html>'
            case "/youtubei/v1/player" if query.get("key") == KEY:
                return 200, json.dumps(self._player(body["videoId"]))
            case "/api/timedtext":
                return 200, self._timed_text(query["v"], ("asr:" if "kind" in query else "") + query["lang"])
            case "/oembed":
                return self._oembed(parse_qs(urlsplit(query["url"]).query)["v"][0])
            case "/playlist":
                return 200, self._playlist_page(query["list"])
            case "/youtubei/v1/browse" if query.get("key") == KEY:
                assert body["context"]["client"] == {"clientName": "WEB", "clientVersion": VERSION, "hl": "en"}
                name, _, start = body["continuation"].rpartition("/")
                items = self._entries(name, int(start))
                return 200, json.dumps(
                    {"onResponseReceivedActions": [{"appendContinuationItemsAction": {"continuationItems": items}}]}
                )
        return 404, f"nothing at {path}"

    def _player(self, video: str) -> dict[str, Any]:
        known = self.videos.get(video)
        if known is None:
            return {"playabilityStatus": {"status": "ERROR", "reason": "This video is unavailable"}}
        if not known.tracks:
            return {"playabilityStatus": known.playability}
        tracks = [
            {
                "baseUrl": "https://www.youtube.com/api/timedtext"
                f"?v={video}{'&kind=asr' if code.startswith('asr:') else ''}&lang={code.removeprefix('asr:')}"
                f"{'&exp=xpe' if known.locked else ''}&fmt=srv3",
                "name": {"runs": [{"text": code}]},
                "languageCode": code.removeprefix("asr:"),
                "isTranslatable": True,
                **({"kind": "asr"} if code.startswith("asr:") else {}),
            }
            for code in known.tracks
        ]
        renderer = {
            "captionTracks": tracks,
            "translationLanguages": [{"languageCode": "fr", "languageName": {"runs": [{"text": "French"}]}}],
        }
        return {
            "playabilityStatus": known.playability,
            "captions": {"playerCaptionsTracklistRenderer": renderer},
        }

    def _timed_text(self, video: str, code: str) -> str:
        cues = "".join(
            f'<text start="{start}" dur="2.5">{escape(escape(text))}</text>'
            for start, text in self.videos[video].tracks[code]
        )
        return f'<?xml version="1.0" encoding="utf-8" ?><transcript>{cues}</transcript>'

    def _oembed(self, video: str) -> tuple[int, str]:
        known = self.videos[video]
        if not known.embeddable:
            return 401, "Unauthorized"
        return 200, json.dumps({"title": known.title, "author_name": known.author, "type": "video"})

    def _playlist_page(self, playlist: str) -> str:
        entries = self._entries(playlist, 0)
        contents = [{"playlistVideoListRenderer": {"contents": entries}}] if self.older_pages else entries
        section = {"sectionListRenderer": {"contents": [{"itemSectionRenderer": {"contents": contents}}]}}
        data = {"contents": {"twoColumnBrowseResultsRenderer": {"tabs": [{"tabRenderer": {"content": section}}]}}}
        config = json.dumps({"INNERTUBE_API_KEY": KEY, "INNERTUBE_CLIENT_VERSION": VERSION})
        return f"<script>ytcfg.set({config});</script><script>var ytInitialData = {json.dumps(data)};</script>"

    def _entries(self, playlist: str, start: int) -> list[dict[str, Any]]:
        videos = self.playlists.get(playlist, [])
        entries = [self._entry(video) for video in videos[start : start + PAGE_VIDEOS]]
        if len(videos) > start + PAGE_VIDEOS and not self.loses_way:
            way = {"continuationCommand": {"token": f"{playlist}/{start + PAGE_VIDEOS}"}}
            if not self.older_pages:
                way = {"commandExecutorCommand": {"commands": [{"playlistVotingRefreshPopupCommand": {}}, way]}}
            entries.append({"continuationItemRenderer": {"continuationEndpoint": way}})
        return entries

    def _entry(self, video: str) -> dict[str, Any]:
        if self.older_pages:
            return {"playlistVideoRenderer": {"videoId": video, "title": {"runs": [{"text": video}]}}}
        return {"lockupViewModel": {"contentId": video, "contentType": "LOCKUP_CONTENT_TYPE_VIDEO"}}


class _Led(HTTPAdapter):
    """Send the site's requests to another server."""

    def __init__(self, to: str) -> None:
        super().__init__()
        self._to = to

    def send(self, request: Any, *args: Any, **options: Any) -> Any:
        request.url = request.url.replace("https://www.youtube.com/", self._to, 1)
        return super().send(request, *args, **options)
