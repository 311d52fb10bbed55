"""Detection of secrets in a text, so that no URL with one is stored, and masking of everything that leaves the process.

Every pattern takes linear time: none begins a repetition at a position that another one has passed.
"""

from __future__ import annotations

import base64
import binascii
import re
import string
from collections.abc import Iterator
from itertools import islice
from urllib.parse import parse_qsl, urlsplit

from parquetry.known_secrets import is_told, known_forms

MASK = "***"
_NO_PASSWORD = frozenset({"github", "gist"})
"""schemes of URLs with something else in the place of a password"""
_SIGNATURES = frozenset({"sig", "x-amz-signature", "x-goog-signature", "access_token", "password"})
"""parameters of a URL, in lower case, that grant access to everyone who reads it"""
_WORD = re.compile(r"\S+")
_IN_SCHEME = string.ascii_letters + string.digits + "+.-"
_LONGEST_SCHEME = 64
"""maximum characters of a URL's scheme"""
_USER = re.compile(r"[^\s/@:]*")
_PORT = re.compile(r"\d{1,5}/")
_PARAMETER = re.compile(
    r"([?&;#](?:[\w.-]{0,40}[_.-])?"
    r"(?:sig|signature|credential|awsaccesskeyid|token|auth|authorization|api[_-]?key|key|secret|password|passwd|pwd)=)"
    r"(?:[^\s&;:#'\"<>]|:(?!\s|$))+",
    re.IGNORECASE,
)
_SIGNED = re.compile(r"\b(Signature=|Credential=)[\w/+.%=-]{8,}")
"""signature in the header of a request to S3"""
_AUTHORIZED = re.compile(r"\b(Bearer|Basic|SharedKey(?:Lite)?)(\s{1,8})([A-Za-z0-9+/._~:-]+=*)", re.IGNORECASE)
_HEADER = re.compile(
    r"\b((?:proxy-)?authorization|x-api-key|api-key|x-auth-token|(?:set-)?cookie)([\"']?\s{0,8}[:=]\s{0,8}[\"']?)"
    r"((?:[A-Za-z0-9-]{1,40} )?)([^\s\"',;<>]+)",
    re.IGNORECASE,
)
_MEMBER = re.compile(
    r"([\"'](?:api[_-]?key|(?:[a-z]{1,20}[_-])?token|(?:[a-z]{1,20}[_-])?secret|(?:[a-z]{1,20}_){0,2}access_key|password)"
    r"[\"']\s{0,8}:\s{0,8})(\"[^\"]+\"|'[^']+')",
    re.IGNORECASE,
)
"""secret member of a JSON object, or of a printed one"""
_OWN_TOKEN = re.compile(r"pqt_[0-9A-Za-z]{16,}(?:_[0-9A-Za-z]{16,})*")
"""tokens of this program's service, whole or cut off where the rest could still not be guessed"""
_MOST_DECODED = 20
"""maximum decoded users and passwords of `Basic` values that are searched for in the rest of a text"""
_LONGEST_WORD = 20
"""maximum letters of an ordinary word in the place of a credential: `Basic authentication`"""


def masked(text: str) -> str:
    """Mask the secrets that this process knows, tokens of the service, and secrets recognisable by their position.

    The last are: `Bearer` and `Basic` values (with the user and password in one), headers and members of JSON that are
    named after a secret, and the passwords, tokens and signatures of URLs.
    """
    text = without_known(text)
    for each in islice(_in_basic(text), _MOST_DECODED):
        text = text.replace(each, MASK)
    text = _AUTHORIZED.sub(_without_value, text)
    text = _HEADER.sub(_without_value, text)
    text = _SIGNED.sub(rf"\1{MASK}", text)
    text = _MEMBER.sub(lambda match: f"{match[1]}{match[2][0]}{MASK}{match[2][0]}", text)
    if "://" in text:
        text = _WORD.sub(lambda match: _without_user(match[0]), text)
    return _OWN_TOKEN.sub(f"pqt_{MASK}", _PARAMETER.sub(rf"\1{MASK}", text))


def excerpt(text: str, length: int) -> str:
    """Return the beginning of a masked text: cutting before masking could leave half a secret at the end.

    Args:
        text: from a service or library.
        length: maximum characters of the result.
    """
    return masked(text)[:length]


def without_known(text: str) -> str:
    """Mask only the secrets that this process knows, in any form."""
    for form in known_forms():
        if form in text:
            text = text.replace(form, MASK)
    return text


def without_tokens(text: str) -> str:
    """Mask only the tokens of this program's service."""
    return _OWN_TOKEN.sub(f"pqt_{MASK}", text) if "pqt_" in text else text


def mask_error(error: BaseException) -> None:
    """Mask the secrets in an error of a library, before other code shows or stores it."""
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        each = waiting.pop()
        if each is None or id(each) in seen:
            continue
        seen.add(id(each))
        each.args = tuple(masked(value) if isinstance(value, str) else value for value in each.args)
        if notes := getattr(each, "__notes__", None):
            each.__notes__ = [masked(note) for note in notes]
        waiting += [each.__cause__, each.__context__]


def holds_credentials(uri: str) -> bool:
    """Return True if a URL contains a password, a token in place of a user, or the signature of a request."""
    if "://" not in uri:
        return False
    # A mask replaced a credential.
    told = uri.replace(MASK, "x")
    if _without_user(told) != told:
        return True
    parts = urlsplit(uri)
    if parts.scheme.lower() in _NO_PASSWORD:
        return False
    named = {name.lower() for name, _ in parse_qsl(parts.query)}
    return bool(named & _SIGNATURES) or {"signature", "expires"} <= named


def _without_user(word: str) -> str:
    """Mask the passwords of URLs in a word, and tokens in the place of a user."""
    begin, last, done = word.find("://"), word.rfind("@"), 0
    parts: list[str] = []
    while 0 <= begin < last:
        before = word[max(0, begin - _LONGEST_SCHEME) : begin]
        scheme = before[len(before.rstrip(_IN_SCHEME)) :].lower()
        begin += len("://")
        user = _USER.match(word, begin)
        end = user.end() if user else begin
        if word[end] == ":" and scheme not in _NO_PASSWORD and not _PORT.match(word, end + 1):
            # Up to the last `@`: a password with a slash or an `@`, which a URL must not contain, is still a password.
            parts += [word[done : end + 1], MASK]
            done = last
            break
        if word[end] == "@" and end > begin and scheme in ("http", "https"):
            parts += [word[done:begin], MASK]
            done = end
        begin = word.find("://", begin)
    return "".join([*parts, word[done:]])


def _in_basic(text: str) -> Iterator[str]:
    """Yield the users and passwords of `Basic` values that are long enough to be distinguished from other words."""
    for code in dict.fromkeys(match[3] for match in _AUTHORIZED.finditer(text) if match[1].lower() == "basic"):
        try:
            decoded = base64.b64decode(code.rstrip("=") + "=" * (-len(code.rstrip("=")) % 4), validate=True).decode()
        except (binascii.Error, UnicodeDecodeError):
            continue
        user, colon, password = decoded.partition(":")
        if colon:
            yield from filter(is_told, (password, user))


def _without_value(match: re.Match[str]) -> str:
    *before, value = match.groups()
    is_word = value.isalpha() and (value.islower() or value.istitle()) and len(value) <= _LONGEST_WORD
    return match[0] if is_word or value == MASK else "".join(before) + MASK
