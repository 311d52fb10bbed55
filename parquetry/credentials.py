"""Detection and masking of keys, tokens and passwords in a text, by their form or because this process knows them."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator

from parquetry.known_secrets import known_forms

MASK = "[secret]"
"""replacement of a credential"""

_ISSUED = re.compile(
    r"""(?x)
    -----BEGIN\ [A-Z ]*PRIVATE\ KEY(?:\ BLOCK)?-----(?s:.*?)(?:-----END\ [A-Z ]*PRIVATE\ KEY(?:\ BLOCK)?-----|\Z)
    | \b(?:A3T[A-Z0-9]|AKIA|ASIA|AGPA|AIDA|AROA)[A-Z0-9]{16}\b      # Amazon
    | \bAIza[\w-]{35}                                               # Google
    | \bya29\.[\w-]{20,}
    | \bgh[pousr]_[A-Za-z0-9]{30,}                                  # GitHub
    | \bgithub_pat_\w{22,}
    | \bgl(?:pat|dt|rt|ptt|ft|soat|cbt|agent)-[\w-]{20,}            # GitLab
    | \bxox[abeoprs]-[\w-]{10,}                                     # Slack
    | \bhooks\.slack\.com/services/[\w/]{20,}
    | \bsk-(?:ant-|proj-|svcacct-|admin-|or-v1-)?[A-Za-z0-9_-]{20,} # OpenAI, Anthropic and others
    | \b[rsp]k_(?:live|test)_[A-Za-z0-9]{16,}                       # Stripe
    | \bwhsec_[A-Za-z0-9+/]{20,}
    | \bhf_[A-Za-z0-9]{30,}                                         # Hugging Face
    | \bnpm_[A-Za-z0-9]{36}
    | \bpypi-[\w-]{50,}
    | \bSG\.[\w-]{16,}\.[\w-]{16,}                                  # SendGrid
    | \bdop_v1_[a-f0-9]{64}
    | \bpqt_[A-Za-z0-9]{40,}                                        # this program's service
    | \bshp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}
    | \bAGE-SECRET-KEY-1[A-Z0-9]{50,}
    | \bdapi[a-f0-9]{32}\b                                          # Databricks
    | \b\d{8,10}:AA[\w-]{33}\b                                      # Telegram
    """
)
"""credentials with a prefix by which their issuer marks them"""
_WEB_TOKEN = re.compile(r"(?<![\w-])(?P<header>[\w-]++)\.eyJ[\w-]{8,}+\.[\w-]*+")
"""JSON web token, with the characters before it up to a space"""
_WEB_TOKEN_HEADER = re.compile(r"\beyJ[\w-]{8}")
_LETTERS = """
    PRIVATE eyJ A3T AKIA ASIA AGPA AIDA AROA AIza ya29. ghp_ gho_ ghu_ ghs_ ghr_ github_pat_ glpat- gldt- glrt- glptt-
    glft- glsoat- glcbt- glagent- xox hooks.slack sk- k_live_ k_test_ whsec_ hf_ npm_ pypi- SG. dop_v1_ pqt_ shpat_
    shpca_ shppa_ shpss_ AGE-SECRET dapi :AA
"""
_BEGINNINGS = tuple(_LETTERS.split())
"""strings of which one occurs in every match: a text without them, nearly every one, need not be searched"""

_IN_ADDRESS = re.compile(
    r"\b[a-z][a-z0-9+.-]{0,20}://[^\s/:@\"'<>]{0,200}:(?P<secret>[^\s/@\"'<>]{1,500})@", re.IGNORECASE
)
_IN_HEADER = re.compile(r"\b(?:Bearer|Basic)\s+(?P<secret>[A-Za-z0-9+/._~-]{16,}=*)")
_NAMED = re.compile(
    r"""(?ix)
    (?<![a-z])
    (?P<name>
        pass[ _-]?(?:word|phrase|code|wort) | passwd | pwd | pin(?:[ -]?(?:code|number))? | passwort | kennwort
        | contrase[nñ]a | clave | mot\ de\ passe | wachtwoord | senha | пароль | 密码 | 口令 | パスワード
        | (?:api|access|secret|private|account|auth|encryption|signing|master|license|wifi|wi-fi|shared|service)
          [ _-]?(?:access[ _-]?)?(?:key|token|secret)
        | (?:client|app|webhook)[ _-]?secret | token | secret
    )
    ["'`]?
    (?: \s*(?:=|:=|:|：|=>|->)\s*
      | \s+(?:[\w-]+\s+){0,6}?(?:is|was|are|ist|lautet|es|est|(?:set|changed|reset)\s+to)\s+
        (?:now\s+|still\s+|always\s+|(?:set|changed|reset)\s+to\s+)?(?::\s*)?
      | (?:是|は|为)\s*
      | \s+(?=["'`])
    )
    (?P<quote>["'`“„«]?)(?P<secret>[^\s"'`”“»,;，。<>]{3,200})
    """
)
"""a word for a secret and, after a sign or a verb, the possible secret"""
_LETTERS_ALONE = re.compile(r"[^\W\d_]+(?:[-.][^\W\d_]+)*[.!?:)]*")
_PLACEHOLDER = re.compile(
    r"(?i)[$%{<\[(].*|.*(?:\*{3}|x{4}|\.{3}|…|•{3}).*|your[-_].*|example.*|changeme.*|redacted.*|hidden|\[?secret\]?|"
    r"none|null|true|false|undefined|string|str|env\b.*|os\.environ.*|process\.env.*|get\w*\(.*"
)
_DIGITS_ALONE = re.compile(r"\d+[.!?%]?")
_PIN = re.compile(r"\d{4,8}[.!?]?")
_UNNAMED = re.compile(r"(?<![\w/+=.-])[A-Za-z0-9+/_-]{32,}={0,2}(?![\w/+=-])")
_SYLLABLES = re.compile(r"[a-z]{5,}")
"""syllables: several in a name, but one in 40 letters of random base64 only once in twenty"""
_UNNAMED_BITS = 4.3
"""Minimum entropy of a text without spaces that counts as a key, if it mixes lower and upper case and digits: random
base64 of 40 letters has about 4.7, hexadecimal digits (commits, hashes) at most 4.0, identifiers in programs about 3.8.
"""


def credentials(text: str) -> list[tuple[int, int]]:
    """Find keys, tokens and passwords in a text: start and one past the end of each, in order, none overlapping."""
    found = sorted((*_known(text), *_all(text)))
    spans: list[tuple[int, int]] = []
    for start, end in found:
        if spans and start < spans[-1][1]:
            spans[-1] = (spans[-1][0], max(end, spans[-1][1]))
        else:
            spans.append((start, end))
    return spans


def masked(text: str) -> str:
    """Return the text with `[secret]` for every credential."""
    parts, last = [], 0
    for start, end in credentials(text):
        parts += [text[last:start], MASK]
        last = end
    return "".join([*parts, text[last:]])


def _known(text: str) -> Iterator[tuple[int, int]]:
    """Find the secrets of this process, in any form."""
    for form in known_forms():
        start = text.find(form)
        while start >= 0:
            yield start, start + len(form)
            start = text.find(form, start + len(form))


def _all(text: str) -> Iterator[tuple[int, int]]:
    if any(letters in text for letters in _BEGINNINGS):
        for match in _ISSUED.finditer(text):
            yield match.span()
        for match in _WEB_TOKEN.finditer(text):
            if header := _WEB_TOKEN_HEADER.search(match["header"]):
                yield match.start() + header.start(), match.end()
    for pattern in (_IN_ADDRESS, _IN_HEADER):
        for match in pattern.finditer(text):
            if not _PLACEHOLDER.fullmatch(match["secret"]):
                yield match.span("secret")
    for match in _NAMED.finditer(text):
        if _is_secret(match["name"], match["secret"], quoted=bool(match["quote"])):
            yield match.span("secret")
    for match in _UNNAMED.finditer(text):
        if _looks_random(match[0]):
            yield match.span()


def _is_secret(name: str, value: str, *, quoted: bool) -> bool:
    """Return True if the value after a word for a secret is one, rather than prose: `the password is required`."""
    if _PLACEHOLDER.fullmatch(value):
        return False
    if name.lower().startswith("pin"):
        return _PIN.fullmatch(value) is not None
    if _LETTERS_ALONE.fullmatch(value):
        return quoted and len(value) >= 4
    weak = name.lower() in {"token", "secret"}
    if _DIGITS_ALONE.fullmatch(value):
        return not weak and len(value) >= 4
    return len(value.rstrip(".!?:)")) >= (6 if weak else 4)


def _looks_random(value: str) -> bool:
    kinds = any(c.islower() for c in value) and any(c.isupper() for c in value) and any(c.isdigit() for c in value)
    if not kinds or len(_SYLLABLES.findall(value)) > 1:
        return False
    counts = Counter(value)
    bits = -sum(count / len(value) * math.log2(count / len(value)) for count in counts.values())
    return bits >= _UNNAMED_BITS
