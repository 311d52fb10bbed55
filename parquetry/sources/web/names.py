"""Path of a page within its source: host, path and query in readable form."""

from __future__ import annotations

import re

import httpx

_ESCAPED = re.compile("(?:%[89A-F][0-9A-F]|%20)+", re.IGNORECASE)
_GENERATED = frozenset({"php", "php3", "php5", "phtml", "asp", "aspx", "jsp", "jspx", "jsf", "cgi", "cfm", "do"})
"""extensions of programs that generate pages; never the format of their output"""


def path_of(url: httpx.URL) -> str:
    """Return the stable path of a page: `example.org/guide/index.html` for `https://example.org/guide/`.

    Scheme and fragment are left out. A folder is named after its `index.html`, and a generated page gets the extension
    of its content, so that it is extracted as a page and not as program code.
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
    """Decode percent-encoded spaces and letters of any script where that is safe."""

    def decoded(found: re.Match[str]) -> str:
        try:
            letters = bytes.fromhex(found[0].replace("%", "")).decode("utf-8")
        except UnicodeDecodeError:
            return found[0]
        return letters if letters.isprintable() else found[0]

    return _ESCAPED.sub(decoded, text)
