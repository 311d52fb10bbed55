"""Detects the kind of a text. All patterns here take linear time in the part of the text that they inspect."""

from __future__ import annotations

import json
import re
import unicodedata

from parquetry.extract import media_types as kinds
from parquetry.extract.encoding import KOREAN_ESCAPE, is_ebcdic
from parquetry.extract.media_types import is_source_code
from parquetry.extract.terminal import without_codes

_HEAD_BYTES = 16 * 1024
_SAMPLE_BYTES = 4 * 1024
_JSON_BYTES = 4 << 20
_CONTROL_SHARE = 0.005
"""share of control characters above which a file is binary; random bytes have 0.1"""
_MISCELLANY = (("<?", "?>"), ("<!--", "-->"))
"""opening and closing marks of what may precede the root of a page or of XML"""
_SOLID = re.compile(r"\S")
_HTML_START = re.compile(r"<!doctype\s+html\b|<html[\s>]|<head[\s>]|<body[\s>]", re.I)
_XML_START = re.compile(r"<\?xml\s")
_XML_ROOT = re.compile(r"<!DOCTYPE\s|<[A-Za-z_][\w.:-]*(?:\s+[\w.:-]+\s*=\s*[\"']|\s*/?>)")
_VTT_START = re.compile(r"WEBVTT(?:[ \t\r\n]|$)")
_SRT_START = re.compile(r"\s{0,20}\d{1,9}[ \t]{0,20}\r?\n[ \t]{0,20}\d{1,4}:\d\d:\d\d[,.]\d{1,3}[ \t]{1,20}-->")
_INTERPRETER = re.compile(r"[A-Za-z][\w+-]*")
_HEADER_LINE = re.compile(r"[!-9;-~]+:(?:[ \t]|$)|[ \t]+\S")
_FROM_LINE = re.compile(r"From [^\r\n]{0,500}\d:\d\d")
_TRACE_HEADERS = {"received", "return-path", "message-id", "mime-version", "delivered-to", "dkim-signature", "x-mailer"}
_LETTER_HEADERS = {"from", "to", "subject", "date", "cc", "reply-to", "sender"}
_CONTROL_BYTES = bytes(set(range(32)) - {9, 10, 12, 13, 27} | {127})


def text_head(content: bytes) -> str | None:
    """Return the first characters of a text in any common encoding; None if the content is binary."""
    head = content[:_HEAD_BYTES]
    for mark, encoding in (
        (b"\xef\xbb\xbf", "utf-8"),
        (b"\xff\xfe\x00\x00", "utf-32-le"),
        (b"\x00\x00\xfe\xff", "utf-32-be"),
        (b"\xff\xfe", "utf-16-le"),
        (b"\xfe\xff", "utf-16-be"),
    ):
        if head.startswith(mark):
            text = head[len(mark) :].decode(encoding, "ignore")
            return text if _mostly_printable(text) else None
    if b"\x00" in head:
        for encoding in ("utf-32-le", "utf-32-be", "utf-16-le", "utf-16-be"):
            wide = _wide(head, encoding)
            if wide is not None:
                return wide
    if is_ebcdic(content):
        return head.decode("cp037")
    if KOREAN_ESCAPE in head:
        return head.decode("ascii", "ignore")
    middle = len(content) // 2
    for sample in (head, content[middle : middle + _SAMPLE_BYTES]):
        shown = without_codes(sample)
        controls = len(shown) - len(shown.translate(None, _CONTROL_BYTES))
        if controls > len(sample) * _CONTROL_SHARE + 1:
            return None
    try:
        return head.decode("utf-8")
    except UnicodeDecodeError as error:
        # A character cut at the end of the window is still UTF-8; anything else is a legacy encoding, in which ASCII,
        # all that is searched for, is unchanged.
        return head.decode("utf-8" if error.start >= len(head) - 3 else "latin-1", "ignore")


def _wide(head: bytes, encoding: str) -> str | None:
    width = 4 if "32" in encoding else 2
    head = head[: len(head) // width * width]
    try:
        text = head.decode(encoding)
    except UnicodeDecodeError as error:
        if error.start < len(head) - 4:  # more than a surrogate pair cut in two
            return None
        text = head[: error.start].decode(encoding)
    return text if text and _mostly_printable(text) and re.search(r"[ \n\r\t]|[!-~]{3}", text) else None


def _mostly_printable(text: str) -> bool:
    odd = sum(1 for c in text if unicodedata.category(c) in {"Cc", "Cn", "Co", "Cs"} and c not in "\t\n\r\f")
    return odd <= len(text) * _CONTROL_SHARE


def by_text(content: bytes, head: str, named: str | None) -> str | None:
    """Return a kind of text that its content identifies; None if the file name has to decide."""
    if named and is_source_code(named):
        return None
    head = head.lstrip("\ufeff")
    undecided = named in {None, kinds.PLAIN}
    if (undecided or named == kinds.SRT) and _VTT_START.match(head):
        return kinds.VTT
    if undecided and _SRT_START.match(head):
        return kinds.SRT
    root = _root(head)
    if _HTML_START.match(head, root):
        return kinds.HTML
    closed = content[-64:].rstrip(b"\x00\r\n\t ").endswith(b">")
    if _XML_START.match(head.lstrip()) and (named != kinds.PLAIN or (closed and head.count("<?xml") == 1)):
        return kinds.HTML if named == kinds.HTML else kinds.XML
    if undecided and _is_mailbox(head):
        return kinds.MBOX
    if named != kinds.EMAIL and _is_email(head):
        return kinds.EMAIL
    if undecided or named in {kinds.JSON, kinds.JSON_LINES}:
        found = _json_kind(content, head, named)
        if found:
            return found
    if undecided and head.startswith("#!"):
        interpreter = _interpreter(head)
        return kinds.BY_INTERPRETER.get(interpreter, kinds.SOURCE) if interpreter else None
    if named is None and closed and _XML_ROOT.match(head, root):
        return kinds.XML
    return None


def _root(head: str) -> int:
    """Return the offset at which a page or XML begins, after white space, processing instructions and comments."""
    at = 0
    while solid := _SOLID.search(head, at):
        at = solid.start()
        begin, end = next((each for each in _MISCELLANY if head.startswith(each[0], at)), ("", ""))
        closed = head.find(end, at + len(begin)) if begin else -1
        if closed < 0:
            break
        at = closed + len(end)
    return at


def _interpreter(head: str) -> str | None:
    """Return the program named in a script's first line, in lower case, without its version."""
    words = iter(head[2:].partition("\n")[0].split())
    name = next(words, "").rpartition("/")[2]
    if name == "env":
        name = next((word for word in words if not word.startswith("-") and "=" not in word), name).rpartition("/")[2]
    name = name.rstrip(".0123456789")
    return name.lower() if _INTERPRETER.fullmatch(name) else None


def _is_mailbox(head: str) -> bool:
    """Return True if a text opens with the line that begins a mail in a mailbox, and its headers."""
    first, _, rest = head.partition("\n")
    return bool(_FROM_LINE.match(first)) and _is_email(rest)


def _is_email(head: str) -> bool:
    """Return True if a text opens with an e-mail header: only header lines, and enough of the usual ones."""
    lines = head.replace("\r\n", "\n").split("\n")
    names: set[str] = set()
    for line in lines[:200]:
        if not line.strip():
            break
        if not _HEADER_LINE.match(line):
            return False
        if not line[0].isspace():
            names.add(line.partition(":")[0].lower())
    traced = len(names & _TRACE_HEADERS)
    addressed = len(names & _LETTER_HEADERS)
    return traced + addressed >= 3 and "from" in names and (traced > 0 or {"date", "subject"} <= names)


def _json_kind(content: bytes, head: str, named: str | None) -> str | None:
    start = head.lstrip()[:1]
    if start not in {"{", "["}:
        return None
    lines = head.strip().split("\n", 2)
    if len(lines) > 1 and _parses(lines[0]) and (len(lines) == 2 or _parses(lines[1])):
        return kinds.JSON_LINES
    if named == kinds.JSON or (named is None and len(content) > _JSON_BYTES):
        return kinds.NOTEBOOK if re.search(r'"nbformat"\s*:', head) and '"cells"' in head else kinds.JSON
    if named is None or named == kinds.PLAIN:
        try:
            json.loads(content[: _JSON_BYTES + 1])
        except (ValueError, RecursionError):
            return None
        return kinds.NOTEBOOK if b'"nbformat"' in content and b'"cells"' in content else kinds.JSON
    return None


def _parses(line: str) -> bool:
    line = line.strip()
    if not line.startswith(("{", "[")):
        return False
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True
