"""Rich texts and further documents that cost a reader more than their size: name -> function of a size in bytes."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable

from tests.extract.hostile_data import Hostile, times
from tests.files.compound_writer import write_compound
from tests.files.doc_writer import write_doc, write_ppt
from tests.files.msg_writer import BODY, CONTENT, FILENAME, HEADERS, KIND, NAME, RTF, SUBJECT, message, msg


def _rtf(body: Callable[[int], str]) -> Hostile:
    return lambda size: (f"{{\\rtf1\\ansi {body(size)}}}".encode("latin-1"), "text.rtf")


def _halves(opened: str, closed: str) -> Callable[[int], str]:
    return lambda size: opened * (size // (len(opened) + len(closed))) + closed * (size // (len(opened) + len(closed)))


RICH_TEXTS: dict[str, Hostile] = {
    "rtf-groups": _rtf(_halves("{", "}")),
    "rtf-open-groups": _rtf(lambda size: "{" * size),
    "rtf-closed-groups": _rtf(lambda size: times("{}", size)),
    "rtf-boxes": _rtf(_halves("{\\shptxt x", "}")),
    "rtf-notes": _rtf(lambda size: times("{\\footnote x}", size)),
    "rtf-nested-notes": _rtf(_halves("{\\footnote x", "}")),
    "rtf-heads": _rtf(lambda size: times("{\\header x{n}}", size)),
    "rtf-cells": _rtf(lambda size: times("\\cell", size)),
    "rtf-wide-row": _rtf(
        lambda size: times("\\cell ", size // 2) + "\\row" + times("a\\cell b\\cell\\row ", size // 2)
    ),
    "rtf-paragraphs": _rtf(lambda size: times("\\par", size)),
    "rtf-lines-of-a-cell": _rtf(lambda size: "\\intbl" + times("x\\par", size) + "\\cell\\row"),
    "rtf-items": _rtf(lambda size: times("{\\listtext 1.}x\\ilvl8\\par", size)),
    "rtf-fonts": _rtf(lambda size: "{\\fonttbl" + times("{\\f{n}\\fcharset128 x;}", size) + "}"),
    "rtf-styles": _rtf(lambda size: "{\\stylesheet" + times("{\\s{n} heading 1;}", size) + "}"),
    "rtf-headings": _rtf(lambda size: "{\\stylesheet{\\s1 heading 1;}}\\s1" + times("x\\par", size)),
    "rtf-bytes": _rtf(lambda size: times("\\'93", size)),
    "rtf-unicode": _rtf(lambda size: "\\uc9999" + times("\\u-1?", size)),
    "rtf-fields": _rtf(lambda size: times("{\\field{\\*\\fldinst{ HYPERLINK ", size)),
    "rtf-binary": _rtf(lambda size: times("\\bin1 ", size)),
    "rtf-binary-beyond-the-end": _rtf(lambda size: "\\bin9999999999" + "x" * size),
    "rtf-long-word": _rtf(lambda size: "\\" + "a" * size),
    "rtf-long-number": _rtf(lambda size: "\\u" + "1" * size),
    "rtf-backslashes": _rtf(lambda size: "\\" * size),
    "rtf-text": _rtf(lambda size: "x" * size),
}


def _text(name: str, body: Callable[[int], str]) -> Hostile:
    return lambda size: (body(size).encode(), name)


_CUE = "0:00:01,0 --> 0:00:02,0\n"
SUBTITLES: dict[str, Hostile] = {
    "srt-cues": _text("a.srt", lambda size: times(_CUE, size)),
    "srt-minutes": _text("a.srt", lambda size: times("{n}:00:00 --> 0:00:00\nx\n", size)),
    "srt-lines": _text("a.srt", lambda size: _CUE + times("x{n}\n", size)),
    "srt-numbers": _text("a.srt", lambda size: _CUE + times("1\n", size) + _CUE),
    "srt-spaces": _text("a.srt", lambda size: " " * size + _CUE),
    "srt-arrow": _text("a.srt", lambda size: _CUE + times("0:00:00" + " " * 1000 + "\n", size)),
    "srt-tags": _text("a.srt", lambda size: _CUE + times("<a", size)),
    "srt-places": _text("a.srt", lambda size: _CUE + times("{\\", size)),
    "vtt-voices": _text("a.vtt", lambda size: "WEBVTT\n\n" + _CUE + times("<v", size)),
    "vtt-speakers": _text("a.vtt", lambda size: "WEBVTT\n\n" + _CUE + times("<v a{n}>x\n", size)),
    "vtt-long-voice": _text("a.vtt", lambda size: "WEBVTT\n\n" + _CUE + "<v" + " " * size),
    "vtt-head": _text("a.vtt", lambda size: "WEBVTT " + times("Language: \n", size)),
    "vtt-entities": _text("a.vtt", lambda size: "WEBVTT\n\n" + _CUE + times("&#x", size)),
}


def _levels(size: int) -> bytes:
    """Messages within each other."""
    tree = message({BODY: "x"}, head=24)
    for _ in range(min(200, size // 1000)):
        tree = message({SUBJECT: "s"}, (), [({}, tree)], head=24)
    return write_compound(message({SUBJECT: "s"}, (), [({}, tree)]))


def _over_each_other(size: int) -> bytes:
    """Attachments whose contents have the same sectors."""
    content = b"x" * (size // 2)
    count = size // 2 // 512
    whole = msg({SUBJECT: "s"}, (), [{CONTENT: content}, *[{CONTENT: b""}] * count])
    place = next(found.start() for found in re.finditer(re.escape(struct.pack("<I", len(content))), whole))
    told = whole[place - 4 : place + 4]
    return whole.replace(struct.pack("<II", 0xFFFFFFFE, 0), told)


def _circle(size: int) -> bytes:
    """A directory whose entries follow each other in a circle."""
    whole = bytearray(msg({SUBJECT: "s"}, (), [{FILENAME: f"a{n}"} for n in range(size // 700)]))
    for found in re.finditer(re.escape("__attach".encode("utf-16-le")), bytes(whole)):
        struct.pack_into("<II", whole, found.start() + 68, 0, 1)
    return bytes(whole)


def _shared(size: int) -> bytes:
    """Attachments that have the entries of the whole message."""
    whole = bytearray(msg({SUBJECT: "s"}, (), [{FILENAME: f"a{n}"} for n in range(size // 700)]))
    for found in re.finditer(re.escape("__attach".encode("utf-16-le")), bytes(whole)):
        struct.pack_into("<I", whole, found.start() + 76, 1)
    return bytes(whole)


def _packed_rtf(size: int) -> bytes:
    text = struct.pack("<II4sI", size, 0xFFFFFFF0, b"LZFu", 0) + b"\xff" + b"\x00\x0f" * (size // 2)
    return msg({SUBJECT: "s", RTF: text})


def _file(name: str, made: Callable[[int], bytes]) -> Hostile:
    return lambda size: (made(size), name)


_BRANCHES = "".join(f"Content-Type: multipart/mixed; boundary=b{n}\n\n--b{n}\n" for n in range(90))
MESSAGES: dict[str, Hostile] = {
    "msg-levels": _file("a.msg", _levels),
    "msg-over-each-other": _file("a.msg", _over_each_other),
    "msg-shared": _file("a.msg", _shared),
    "msg-circle": _file("a.msg", _circle),
    "msg-packed-rtf": _file("a.msg", _packed_rtf),
    "msg-recipients": _file("a.msg", lambda size: msg({SUBJECT: "s"}, [{NAME: "n", KIND: 1}] * (size // 500))),
    "msg-attachments": _file("a.msg", lambda size: msg({SUBJECT: "s"}, (), [{CONTENT: b"word " * 30}] * (size // 700))),
    "msg-headers": _file("a.msg", lambda size: msg({HEADERS: times("To: a@b.c\r\n", size // 2)})),
    "msg-long-header": _file("a.msg", lambda size: msg({HEADERS: "To: " + times("=?utf-8?q?x?= ", size // 2)})),
    "mbox-mails": _text("a.mbox", lambda size: times("From a 8:15 2024\nA: b\n\n", size)),
    "mbox-lines": _text("a.mbox", lambda size: "From a 8:15 2024\nA: b\n" + times("\n\nFrom ", size)),
    "mbox-long-lines": _text(
        "a.mbox", lambda size: "From a 8:15 2024\nA: b\n" + times("\n\nFrom " + "1:0" * 200, size)
    ),
    "mbox-quoted": _text("a.mbox", lambda size: "From a 8:15 2024\nA: b\n\n" + times(">", size) + "From "),
    "mbox-quotations": _text("a.mbox", lambda size: "From a 8:15 2024\nA: b\n\n" + times(">>>\n", size)),
    "mbox-deep": _text("a.mbox", lambda size: times(f"From a 8:15 2024\nA: b\n{_BRANCHES}\n\n", size)),
}

_ITEMS = "\\begin{itemize}\\item x"
LATEX: dict[str, Hostile] = {
    "tex-braces": _text("a.tex", _halves("{", "}")),
    "tex-open-braces": _text("a.tex", lambda size: times("{", size)),
    "tex-nested-headings": _text("a.tex", _halves("\\section{x", "}")),
    "tex-open-headings": _text("a.tex", lambda size: times("\\section{", size)),
    "tex-notes": _text("a.tex", _halves("\\footnote{x", "}")),
    "tex-formulas": _text("a.tex", lambda size: times("\\[ x \\begin{align} ", size)),
    "tex-dollars": _text("a.tex", lambda size: times("$x\n\n", size)),
    "tex-long-formula": _text("a.tex", lambda size: "$" + times("x ", size)),
    "tex-verbatim": _text("a.tex", lambda size: times("\\begin{verbatim}x\\end{comment}", size)),
    "tex-tables": _text("a.tex", lambda size: times("\\begin{tabular}{l}x&", size)),
    "tex-cells": _text("a.tex", lambda size: "\\begin{tabular}{l}" + times("&", size)),
    "tex-spans": _text("a.tex", lambda size: "\\begin{tabular}{l}" + times("\\multicolumn{999}{l}{}\\\\", size)),
    "tex-lists": _text("a.tex", lambda size: times(_ITEMS, size)),
    "tex-comments": _text("a.tex", lambda size: times("%\n \t", size)),
    "tex-spaces": _text("a.tex", lambda size: "x\\a" + times(" \t", size) + "{x"),
    "tex-empty-lines": _text("a.tex", lambda size: "x" + times("\n \n", size)),
    "tex-options": _text("a.tex", lambda size: times("\\label[", size)),
    "tex-verbs": _text("a.tex", lambda size: times("\\verb|", size)),
    "tex-accents": _text("a.tex", lambda size: "x" + times("\\'", size)),
    "tex-begins": _text("a.tex", lambda size: times("\\begin {document", size)),
    "tex-parts": _text("a.tex", lambda size: times("\\part ", size)),
    "tex-files": _text("a.tex", lambda size: "x" + times("\\input{a}", size)),
}


LIGHT_MARKUP: dict[str, Hostile] = {
    "org-headings": _text("a.org", lambda size: times("* x\n", size)),
    "org-blocks": _text("a.org", lambda size: times("#+begin_a{n}\n", size)),
    "org-drawers": _text("a.org", lambda size: times(":PROPERTIES:\n", size)),
    "org-rows": _text("a.org", lambda size: times("|", size // 2) + "\n" + times("| x\n", size // 2)),
    "org-links": _text("a.org", lambda size: times("[[a][", size)),
    "org-tags": _text("a.org", lambda size: "* x " + times(" :a", size)),
    "org-settings": _text("a.org", lambda size: "x\n" + times("#+author:\n", size)),
    "adoc-headings": _text("a.adoc", lambda size: times("= x\n\n", size)),
    "adoc-fences": _text("a.adoc", lambda size: "".join("-" * n + "\n" for n in range(4, int((2 * size) ** 0.5)))),
    "adoc-underlines": _text("a.adoc", lambda size: times("x\n~\n", size)),
    "adoc-cells": _text("a.adoc", lambda size: "|===\n" + times("|", size) + "\n|==="),
    "adoc-rows": _text("a.adoc", lambda size: "|===\n" + times("|a\nx\n", size) + "\n|==="),
    "adoc-lines-of-a-cell": _text("a.adoc", lambda size: "|===\n|a\n" + times("x\n", size) + "\n|==="),
    "adoc-spans": _text("a.adoc", lambda size: "|===\n" + times("999+|a\n", size) + "\n|==="),
    "adoc-columns": _text("a.adoc", lambda size: times('[cols="999*"]\n|===\n|a\n|===\n', size)),
    "adoc-links": _text("a.adoc", lambda size: times("https://a[", size)),
    "adoc-attributes": _text("a.adoc", lambda size: "x\n" + times(":author:\n", size)),
}
OLD_OFFICE: dict[str, Hostile] = {
    "doc-paragraphs": _file("a.doc", lambda size: write_doc("x\r" * (size // 4))),
    "doc-cells": _file("a.doc", lambda size: write_doc("\7" * (size // 2))),
    "doc-fields": _file("a.doc", lambda size: write_doc("\x13 HYPERLINK \x14" * (size // 30))),
    "ppt-slides": _file("a.ppt", lambda size: write_ppt([["word " * 20]] * (size // 300))),
    "ppt-texts": _file("a.ppt", lambda size: write_ppt([["x"] * (size // 30)])),
}

CLASSES = RICH_TEXTS | SUBTITLES | MESSAGES | LATEX | LIGHT_MARKUP | OLD_OFFICE
