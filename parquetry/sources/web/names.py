"""What a page is called within its source: its host, path and query, as a person would write them."""

from __future__ import annotations

import re

import httpx

_ESCAPED = re.compile("(?:%[89A-F][0-9A-F]|%20)+", re.IGNORECASE)
_GENERATED = frozenset({"php", "php3", "php5", "phtml", "asp", "aspx", "jsp", "jspx", "jsf", "cgi", "cfm", "do"})
"""extensions of programs that write pages; never those of what they write"""


def path_of(url: httpx.URL) -> str:
    """The stable name of a page: `example.org/guide/index.html` for `https://example.org/guide/`.

    Neither scheme nor fragment are part of it. A folder is called after its `index.html`, and a page that a program
    writes gets the extension of what it is, so that it is read as a page and not as the program.
    """
    place, _, query = url.raw_path.decode("ascii").partition("?")
    folder, _, name = _readable(place).rpartition("/")
    name = name or "index.html"
    if query:
        name = f"{name}?{_readable(query).replace('/', '%2F')}"
    elif name.rpartition(".")[2].lower() in _GENERATED:
        name += ".html"
    host = f"[{url.host}]" if ":" in url.host else url.host
    port = f":{url.port}" if url.port else ""
    return f"{host}{port}{folder}/{name}"


def _readable(text: str) -> str:
    """Spaces and letters of any script instead of their escapes, where that is safe."""

    def decoded(found: re.Match[str]) -> str:
        try:
            letters = bytes.fromhex(found[0].replace("%", "")).decode("utf-8")
        except UnicodeDecodeError:
            return found[0]
        return letters if letters.isprintable() else found[0]

    return _ESCAPED.sub(decoded, text)
