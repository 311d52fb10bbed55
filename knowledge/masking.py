"""Credentials in a text: found, so that no URL with one is stored, and masked in everything that is shown."""

from __future__ import annotations

import re
from urllib.parse import parse_qsl, urlsplit

MASK = "***"
_NO_PASSWORD = frozenset({"github", "gist"})
"""schemes whose URLs hold something else in the place of a password"""
_SIGNATURES = frozenset({"sig", "x-amz-signature", "x-goog-signature", "access_token", "password"})
"""parameters of a URL, in lower case, that open what it names to everybody who reads it"""
_USER = re.compile(r"\b(?!(?:github|gist)://)([a-z][a-z0-9+.-]*://[^\s/@:]*):(?!\d{1,5}/)\S*@", re.IGNORECASE)
"""up to the last `@`: a password with a slash or an `@` in it, which no URL may have, is one all the same"""
_TOKEN = re.compile(r"\b(https?://)[^\s/@:]+@", re.IGNORECASE)
_PARAMETER = re.compile(
    r"([?&;](?:sig|(?:x-(?:amz|goog)-)?(?:signature|credential)|x-amz-security-token|awsaccesskeyid|access_token|token"
    r"|api[_-]?key|password|secret)=)[^\s&;:#'\"]+",
    re.IGNORECASE,
)


def masked(text: str) -> str:
    """A message without the passwords, tokens and signatures of the URLs in it."""
    text = _TOKEN.sub(rf"\1{MASK}@", _USER.sub(rf"\1:{MASK}@", text))
    return _PARAMETER.sub(rf"\1{MASK}", text)


def holds_credentials(uri: str) -> bool:
    """Whether a URL holds a password, a token in place of a user, or the signature of a request."""
    if "://" not in uri:
        return False
    if _USER.match(uri) or _TOKEN.match(uri):
        return True
    parts = urlsplit(uri)
    if parts.scheme.lower() in _NO_PASSWORD:
        return False
    named = {name.lower() for name, _ in parse_qsl(parts.query)}
    return bool(named & _SIGNATURES) or {"signature", "expires"} <= named
