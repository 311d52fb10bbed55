"""A small HTTP server on loopback that lists a bucket as S3 does, or as a test scripts it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from urllib.parse import parse_qs, quote, urlsplit

from tests.servers.loopback import LoopbackServer, Quiet

BUCKET = "library"
_TIME = "2031-05-06T07:08:09.000Z"


@dataclass(frozen=True, slots=True)
class Reply:
    """The server's reply."""

    body: str
    status: int = 200
    missing: int = 0
    """bytes at the end that are announced and not sent"""
    headers: Mapping[str, str] = field(default_factory=dict)


Answer = Callable[[Mapping[str, str]], Reply]
"""function from the parameters of a listing to the reply"""


def page(
    keys: Iterable[str],
    folders: Iterable[str] = (),
    token: str | None = None,
    *,
    truncated: bool | None = None,
    count: int | None = None,
    empty: Collection[str] = (),
) -> Reply:
    """Return a page of a listing.

    Args:
        keys: keys of the objects.
        folders: common prefixes.
        token: token of the next page.
        truncated: reported existence of further pages, if it contradicts the token.
        count: reported number of keys and folders, if it differs from the number sent.
        empty: keys of the objects without content.
    """
    keys, folders = list(keys), list(folders)
    more = token is not None if truncated is None else truncated
    parts = [
        "<EncodingType>url</EncodingType>",
        f"<IsTruncated>{str(more).lower()}</IsTruncated>",
        f"<KeyCount>{len(keys) + len(folders) if count is None else count}</KeyCount>",
        *(f"<NextContinuationToken>{token}</NextContinuationToken>" for _ in range(token is not None)),
        *(f"<Contents>{_object(key, 0 if key in empty else 3)}</Contents>" for key in keys),
        *(f"<CommonPrefixes><Prefix>{quote(folder)}</Prefix></CommonPrefixes>" for folder in folders),
    ]
    return Reply(f"<ListBucketResult>{''.join(parts)}</ListBucketResult>")


def refusal(status: int, code: str) -> Reply:
    return Reply(f"<Error><Code>{code}</Code><Message>because</Message></Error>", status)


def listing_of(keys: Iterable[str], empty: Collection[str] = ()) -> Answer:
    """Return the answers of a bucket with these objects, by the rules of S3."""
    ordered = sorted(set(keys), key=str.encode)

    def answer(query: Mapping[str, str]) -> Reply:
        prefix, delimiter = query.get("prefix", ""), query.get("delimiter", "")
        entries: dict[str, bool] = {}
        for key in ordered:
            if key.startswith(prefix):
                head, cut, _ = key.removeprefix(prefix).partition(delimiter) if delimiter else (key, "", "")
                entries[prefix + head + cut if cut else key] = bool(cut)
        names = list(entries)
        start = int(query.get("continuation-token", 0))
        end = start + int(query.get("max-keys", 1000))
        shown = names[start:end]
        token = str(end) if end < len(names) else None
        objects = [name for name in shown if not entries[name]]
        return page(objects, [name for name in shown if entries[name]], token, empty=empty)

    return answer


class ListingServer(LoopbackServer):
    """Answer requests for the listing of `BUCKET` while the `with` block lasts; tests may replace `answer`."""

    def __init__(self) -> None:
        self.queries: list[Mapping[str, str]] = []
        self.headers: list[Mapping[str, str]] = []
        self.answer: Answer = listing_of([])
        owner = self

        class Handler(Quiet, BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_GET(self) -> None:
                query = {name: values[0] for name, values in parse_qs(urlsplit(self.path).query).items()}
                owner.queries.append(query)
                owner.headers.append({name.title(): value for name, value in self.headers.items()})
                reply = owner.answer(query)
                body = reply.body.encode()
                self.send_response(reply.status)
                for name, value in {"Content-Type": "application/xml", **reply.headers}.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body[: len(body) - reply.missing])
                self.close_connection = reply.missing > 0

        super().__init__(Handler)


def _object(key: str, size: int) -> str:
    return (
        f"<Key>{quote(key)}</Key><Size>{size}</Size><ETag>&quot;{hash(key):x}&quot;</ETag>"
        f"<LastModified>{_TIME}</LastModified>"
    )
