"""The secrets of this process: announced by the code that reads one, or recognised by an environment variable's name.

A service may repeat a secret in a different form from the one in which it was set, so every form is recognised.
"""

from __future__ import annotations

import base64
import json
import os
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from html import escape
from pathlib import Path
from threading import Lock
from typing import Any
from urllib.parse import quote, quote_plus, unquote

_SHORTEST = 6
"""minimum characters of a secret that is masked anywhere. Where the form marks a credential, as in a URL, shorter ones
are masked too."""
_SHORTEST_WORD = 8
"""minimum characters of a secret of letters alone: services without keys get words such as `ollama`, common in texts"""
_SHORTEST_CODE = 8
"""minimum characters in base64 that identify a secret"""
_LINE = 16
"""minimum characters of a line that identifies a secret of several lines, such as a private key"""
_NAME = re.compile(
    r"(?:^|[^a-z])(?:api_?keys?|[a-z]*apikeys?|key|key_id|token|(?:access|api|auth|bearer)_tokens|secrets?|passwords?|passwd"
    r"|passphrase|pass|auth|auth_string|authorization|credentials?|connection_string|sas|signature|sig|cookie)$"
)
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_ASSIGNED = re.compile(r"(?<![\w-])([\w-]++)=([^;&]+)")
_IN_URL = re.compile(r"://[^/@:]*:([^/]+)@")
_lock = Lock()
_announced: frozenset[str] = frozenset()


def announce(*secrets: str | None) -> None:
    """Register secrets read by this process, so that no text that leaves it contains them."""
    global _announced
    found = {part for secret in secrets if secret for part in _parts(secret)}
    if not found <= _announced:
        with _lock:
            _announced |= found


def names_secret(name: str) -> bool:
    """Return True if a setting or variable of this name holds a secret."""
    return _NAME.search(_HUMP.sub("_", name).replace("-", "_").lower()) is not None


def is_told(secret: str) -> bool:
    """Return True if a secret is long enough to be distinguished from other words anywhere."""
    return len(secret) >= (_SHORTEST_WORD if secret.isalpha() else _SHORTEST)


def known_forms() -> tuple[str, ...]:
    """Return every form of every known secret, longest first."""
    environment = frozenset(
        part for name, value in os.environ.items() for part in _in_variable(name, value) if part not in _announced
    )
    return _forms(_announced | environment)


@lru_cache(maxsize=1024)
def _in_variable(name: str, value: str) -> tuple[str, ...]:
    """Return the secrets in an environment variable: its value, or the password of a URL, or parts of a JSON object."""
    found = {unquote(password) for password in _IN_URL.findall(value)}
    if value.startswith("{"):
        found.update(_in_json(value))
    elif names_secret(name) and not _is_place(value):
        found.update(_parts(value))
    return tuple(filter(is_told, found))


def _is_place(value: str) -> bool:
    """Return True if a value is an existing path: the location of a secret, not the secret itself."""
    try:
        return os.sep in value and Path(value).exists()
    except (OSError, ValueError):
        return False


def _in_json(text: str) -> Iterator[str]:
    try:
        yield from secrets_in(json.loads(text))
    except (ValueError, RecursionError):
        return


def secrets_in(value: Any) -> Iterator[str]:
    """Yield the texts under names for a secret, at any depth of mappings."""
    if isinstance(value, Mapping):
        for name, each in value.items():
            if isinstance(each, str) and names_secret(str(name)):
                yield each
            yield from secrets_in(each)


def _parts(secret: str) -> Iterator[str]:
    """Yield a secret and its secret parts: of a connection string, of a user with a password, of a key file."""
    secret = secret.strip()
    found = [secret]
    for name, value in _ASSIGNED.findall(secret):
        if names_secret(name):
            found += [value, unquote(value)]
    user, _, password = secret.partition(":")
    if user and not any(sign in secret for sign in (" ", "://")):
        found.append(password)
    lines = secret.splitlines()
    found += [line for line in lines if len(line) >= _LINE and not line.startswith("-----")]
    yield from filter(is_told, found)


@lru_cache(maxsize=8)
def _forms(secrets: frozenset[str]) -> tuple[str, ...]:
    found = {form for secret in secrets for form in _forms_of(secret)}
    return tuple(sorted(found, key=lambda form: (-len(form), form)))


def _forms_of(secret: str) -> Iterator[str]:
    """Yield the spellings of a secret: as it is, escaped for JSON, a URL or HTML, or within longer base64."""
    yield secret
    for written in (json.dumps(secret), json.dumps(secret, ensure_ascii=False), repr(secret)):
        yield written[1:-1]
        yield written[1:-1].replace("/", r"\/")
    yield escape(secret)
    for in_url in (quote(secret, safe=""), quote(secret), quote_plus(secret)):
        yield in_url
        yield re.sub("%[0-9A-F]{2}", lambda match: match[0].lower(), in_url)
    content = secret.encode("utf-8", "surrogatepass")
    for encoded in (base64.b64encode, base64.urlsafe_b64encode):
        yield encoded(content).decode()
        for before in range(3):
            # The letters with only bits of the secret, whatever stands before and after it.
            code = encoded(bytes(before) + content).decode()[-(-8 * before // 6) : 8 * (before + len(content)) // 6]
            if len(code) >= _SHORTEST_CODE:
                yield code
