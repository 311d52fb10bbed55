"""Mails and data files that cost a reader more than their size: name -> function of a size in bytes."""

from __future__ import annotations

from collections.abc import Callable

File = tuple[bytes, str]
"""content, file name"""
Hostile = Callable[[int], File]
"""approximate size of the file in bytes -> the file"""


def times(piece: str, size: int) -> str:
    """Repeat a piece up to a size; `{n}` in the piece becomes its number."""
    if "{n}" not in piece:
        return piece * max(1, size // len(piece))
    pieces = []
    left = size
    while left > 0:
        pieces.append(piece.replace("{n}", str(len(pieces))))
        left -= len(pieces[-1])
    return "".join(pieces)


def _mail(headers: str, body: str = "hello\n") -> File:
    start = "From: a@example.org\nTo: b@example.org\nSubject: hello\nDate: Mon, 1 Jan 2024 10:00:00 +0000\n"
    return (f"{start}{headers}\n{body}".encode(), "mail.eml")


def _header(name: str, piece: str, *, before: str = "", after: str = "") -> Hostile:
    return lambda size: _mail(f"{name}: {before}{times(piece, size)}{after}\n")


def _body(piece: str, headers: str = "Content-Type: text/plain\n", *, before: str = "", after: str = "") -> Hostile:
    return lambda size: _mail(headers, f"{before}{times(piece, size)}{after}\n")


def nested_multiparts(depth: int, kind: str = "mixed") -> File:
    opened = "".join(
        f'--b{n}\nContent-Type: multipart/{kind}; boundary="b{n + 1}"\n\n' for n in range(depth)
    )  # fmt: skip
    closed = "".join(f"--b{n}--\n" for n in range(depth, -1, -1))
    body = f"{opened}--b{depth}\nContent-Type: text/plain\n\nthe innermost words\n{closed}"
    return _mail(f'Content-Type: multipart/{kind}; boundary="b0"\n', body)


def nested_mails(depth: int) -> File:
    return _mail("Content-Type: message/rfc822\n", "Subject: inner\nContent-Type: message/rfc822\n\n" * depth + "\nx\n")


def _many_parts(size: int) -> File:
    return _mail('Content-Type: multipart/mixed; boundary="b"\n', times("--b\n\nx\n", size) + "--b--\n")


def _attachments(piece: str) -> Hostile:
    return lambda size: _mail('Content-Type: multipart/mixed; boundary="b"\n', times(piece, size) + "--b--\n")


def _lines_like_boundaries(size: int) -> File:
    opened = "".join(f'--b{n}\nContent-Type: multipart/mixed; boundary="b{n + 1}"\n\n' for n in range(90))
    return _mail('Content-Type: multipart/mixed; boundary="b0"\n', opened + times("--c\n", size))


def _front_matter(text: str, fence: str = "---") -> File:
    return (f"{fence}\n{text}\n{fence}\n\nThe text.\n".encode(), "page.md")


def _bounded_front(make: Callable[[int], str], fence: str = "---") -> Hostile:
    """Put the costly content in just under 64 KiB of front matter; anything longer is read as text."""
    return lambda size: _front_matter(make(min(size, 60_000)), fence)


def aliases(levels: int, *, merged: bool) -> File:
    """Make levels of aliases, each referring nine times to the previous one."""
    if merged:
        lines = ["a0: &a0 {k: v}"]
        lines += [f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 9)}], k{n}: v}}" for n in range(1, levels)]
    else:
        lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
        lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, levels)]
    return _front_matter("\n".join(lines))


def _json(make: Callable[[int], str], name: str = "data.json") -> Hostile:
    return lambda size: (make(size).encode(), name)


def _long_paths(size: int) -> str:
    """Objects nested as deep as allowed, with a value at each level: the length of a path grows with its depth."""
    depth = 400
    one = '{"k":1,"' + "p" * 20 + '":'
    deep = one * depth + "1" + "}" * depth
    return "[" + ",".join([deep] * max(1, size // len(deep))) + "]"


def _wide_header(size: int) -> str:
    """One long key over an array of objects."""
    key = "k" * (size // 2)
    inner = ",".join(f'{{"a{n}":{{"b":1}}}}' for n in range(size // 2 // 18))
    return f'{{"{key}":[{inner}]}}'


def _csv(make: Callable[[int], str], name: str = "data.csv") -> Hostile:
    return lambda size: (make(size).encode(), name)


def wide_row(size: int) -> str:
    """One wide row and many short rows, each half of the file."""
    return ",".join(["x"] * (size // 4)) + "\n" + times("a,b\n", size // 2)


def _diagonal(size: int) -> str:
    """Rows of one cell, each in a different column."""
    rows = max(2, int((2 * size) ** 0.5))
    return "".join("," * n + "x\n" for n in range(rows))


def _long_header(size: int) -> str:
    """Column names that fill half of the file, and rows of which few fit below them."""
    return "k" * (size // 2) + ",b\n" + times("{n},2\n", size // 2)


def _names_over_records(size: int) -> str:
    """Long column names, and rows so long that each is written out with the names."""
    names = ",".join(f"{'n' * 2000}{n}" for n in range(max(2, size // 4000)))
    count = names.count(",") + 1
    row = ",".join(["x"] * count)
    return names + "\n" + "\n".join([row] * max(2, size // 2 // len(row)))


MAILS: dict[str, Hostile] = {
    "mail-parameters": _header("Content-Type", "; a{n}=b", before="text/plain"),
    "mail-same-parameters": _header("Content-Type", "; a=b", before="text/plain"),
    "mail-continued-parameters": _header("Content-Type", "; name*{n}*=%41", before="text/plain"),
    "mail-quoted-semicolons": _header("Content-Type", ';";"', before="text/plain"),
    "mail-open-quotation": _header("Content-Type", ';a="', before="text/plain"),
    "mail-escaped-quotations": _header("Content-Disposition", '\\"', before='attachment; filename="', after='"'),
    "mail-folded-parameters": _header("Content-Type", ';\n a{n}="b"', before="text/plain"),
    "mail-encoded-words": _header("Subject", "=?utf-8?q?a?= "),
    "mail-encoded-words-base64": _header("Subject", "=?utf-8?b?YQ==?= "),
    "mail-encoded-words-mixed": _header("Subject", "=?x{n}?q?a?= b "),
    "mail-encoded-words-folded": _header("Subject", "=?utf-8?q?a?=\n "),
    "mail-open-encoded-words": _header("Subject", "=?"),
    "mail-half-encoded-words": _header("Subject", "=?a?q?"),
    "mail-spaced-encoded-words": _header("Subject", " ", before="=?utf-8?q?a?=", after="=?utf-8?q?a?="),
    "mail-encoded-file-name": _header("Content-Disposition", "=?utf-8?q?a?= ", before='attachment; filename="',
                                      after='"'),
    "mail-addresses": _header("To", "a{n}@example.org, "),
    "mail-encoded-addresses": _header("To", "=?utf-8?q?a?= <a@example.org>, "),
    "mail-comments": _header("Date", "("),
    "mail-long-date": _header("Date", "1 "),
    "mail-date-of-signs": _header("Date", ",:+-"),
    "mail-folds": _header("Subject", "a\n "),
    "mail-empty-folds": _header("Subject", " \n ", before="a", after="b"),
    "mail-spaces": _header("Subject", " ", before="a", after="b"),
    "mail-many-headers": lambda size: _mail(times("X-{n}: b\n", size)),
    "mail-same-headers": lambda size: _mail(times("To: b@example.org\n", size)),
    "mail-headers-without-names": lambda size: _mail(times(": b\n", size)),
    "mail-long-boundary": _header("Content-Type", "b", before='multipart/mixed; boundary="', after='"'),
    "mail-transfer-encoding": _header("Content-Transfer-Encoding", "; base64"),
    "mail-charset": _header("Content-Type", "%", before='text/plain; charset="', after='"'),
    "mail-nested-multiparts": lambda size: nested_multiparts(max(1, size // 66)),
    "mail-nested-alternatives": lambda size: nested_multiparts(max(1, size // 72), "alternative"),
    "mail-nested-mails": lambda size: nested_mails(max(1, size // 46)),
    "mail-many-parts": _many_parts,
    "mail-many-attachments": _attachments(
        "--b\nContent-Type: text/plain\nContent-Disposition: attachment; filename=a{n}.txt\n\nx\n"
    ),
    "mail-attached-mails": _attachments("--b\nContent-Type: message/rfc822\n\nSubject: a{n}\n\nx\n"),
    "mail-attached-tables": _attachments(
        "--b\nContent-Disposition: attachment; filename=a{n}.csv\n\na,b,c,d,e,f,g\n1\n2\n3\n"
    ),
    "mail-lines-like-boundaries": _lines_like_boundaries,
    "mail-empty-lines": _body("\n"),
    "mail-spaces-in-body": _body(" ", before="a"),
    "mail-flowed": _body("a \n", "Content-Type: text/plain; format=flowed\n"),
    "mail-quoted-printable": _body("=\n", "Content-Type: text/plain\nContent-Transfer-Encoding: quoted-printable\n"),
    "mail-base64": _body("=\n", "Content-Type: text/plain\nContent-Transfer-Encoding: base64\n"),
    "mail-uuencoded": _body("begin 644 a\n", "Content-Type: text/plain\nContent-Transfer-Encoding: x-uuencode\n"),
    "mail-open-brackets": _body("<", before="--b\n\n", headers='Content-Type: multipart/alternative; boundary="b"\n',
                                after="\n--b\nContent-Type: text/html\n\n<p>x</p>\n--b--\n"),
    "mail-open-scripts": _body("<script", headers='Content-Type: multipart/alternative; boundary="b"\n',
                               before="--b\nContent-Type: text/html\n\n<p>x</p>",
                               after="\n--b\nContent-Type: text/plain\n\nx\n--b--\n"),
    "mail-pictures": _body("cid:a{n} ", "Content-Type: text/html\n"),
}  # fmt: skip

FRONT_MATTER: dict[str, Hostile] = {
    "yaml-merged": lambda size: aliases(max(2, size // 60), merged=True),
    "yaml-aliases": lambda size: aliases(max(2, size // 60), merged=False),
    "yaml-long-alias": _bounded_front(
        lambda size: f"a: &a {'x' * (size // 2)}\n" + times("k{n}: *a\n", size // 2)
    ),
    "yaml-long-alias-in-a-list": _bounded_front(
        lambda size: f"a: &a {'x' * (size // 2)}\nb: [" + times("*a, ", size // 2) + "]"
    ),
    "yaml-merged-much": _bounded_front(
        lambda size: "a: &a {" + ", ".join(f"k{n}: v" for n in range(size // 16)) + "}\nb:\n"
        + times("- <<: *a\n", size // 2)
    ),
    "yaml-flow": _bounded_front(lambda size: "a: " + "[" * size),
    "yaml-closed-flow": _bounded_front(lambda size: "a: " + "[" * (size // 2) + "]" * (size // 2)),
    "yaml-block": _bounded_front(lambda size: "a: " + "- " * (size // 2) + "x"),
    "yaml-maps": _bounded_front(lambda size: "\n".join(" " * n + "a:" for n in range(int((2 * size) ** 0.5)))),
    "yaml-questions": _bounded_front(lambda size: "a: b\n" + "? " * (size // 2)),
    "yaml-base-60": _bounded_front(lambda size: "a: 1" + times(":1", size)),
    "yaml-base-60-float": _bounded_front(lambda size: "a: 1" + times(":1", size) + ".5"),
    "yaml-long-integer": _bounded_front(lambda size: "a: " + "9" * size),
    "yaml-long-hexadecimal": _bounded_front(lambda size: "a: 0x" + "f" * size),
    "yaml-underscores": _bounded_front(lambda size: "a: 1" + "_" * size),
    "yaml-anchors": _bounded_front(lambda size: times("a{n}: &b{n} c\n", size)),
    "yaml-plain-lines": _bounded_front(lambda size: "a: b\n" + times(" c\n", size)),
    "yaml-quoted-lines": _bounded_front(lambda size: 'a: "' + times("\n", size) + '"'),
    "yaml-spaces": _bounded_front(lambda size: "a: b" + " " * size + "c"),
    "yaml-tags": _bounded_front(lambda size: times("a{n}: !!str b\n", size)),
    "yaml-keys": _bounded_front(lambda size: "{" + times("a{n}, ", size) + "}"),
    "yaml-same-anchor": _bounded_front(lambda size: "a: &a [*a]\nb:\n" + times("- *a\n", size)),
    "yaml-unhashable": _bounded_front(lambda size: times("? [a]\n: b\n", size)),
    "toml-arrays": _bounded_front(lambda size: "a = " + "[" * (size // 2) + "]" * (size // 2), "+++"),
    "toml-tables": _bounded_front(lambda size: "a = " + "{a=" * (size // 4) + "1" + "}" * (size // 4), "+++"),
    "toml-dotted-key": _bounded_front(lambda size: "a" + ".a" * (size // 2) + " = 1", "+++"),
    "toml-dotted-keys": _bounded_front(
        lambda size: "\n".join(
            "a" + ".a" * (int(size**0.5) // 2) + f".b{n} = 1" for n in range(int(size**0.5))
        ), "+++"
    ),
    "toml-headers": _bounded_front(lambda size: times("[a.a{n}]\n", size), "+++"),
    "toml-dotted-header": _bounded_front(lambda size: "[a" + ".a" * (size // 2) + "]", "+++"),
    "toml-long-integer": _bounded_front(lambda size: "a = 1" + "0" * size, "+++"),
    "toml-long-hexadecimal": _bounded_front(lambda size: "a = 0x1" + "0" * size, "+++"),
    "toml-open-string": _bounded_front(lambda size: 'a = """' + '""' + times('\\"', size), "+++"),
    "toml-comments": _bounded_front(lambda size: times("#\n", size), "+++"),
    "front-matter-fences": lambda size: (b"---\na: b\n" + b"--- x\n" * (size // 6), "page.md"),
    "front-matter-spaces": lambda size: (b"---" + b" \t" * (size // 2) + b"x\n", "page.md"),
}  # fmt: skip

RECORDS: dict[str, Hostile] = {
    "json-arrays": _json(lambda size: "[" * (size // 2) + "]" * (size // 2)),
    "json-open-arrays": _json(lambda size: "[" * size),
    "json-objects": _json(lambda size: '{"a":' * (size // 6) + "1" + "}" * (size // 6)),
    "json-long-keys": _json(
        lambda size: ('{"' + "k" * 200 + '":') * min(900, size // 204) + "1" + "}" * min(900, size // 204)
    ),
    "json-paths": _json(_long_paths),
    "json-deep-in-lines": _json(
        lambda size: times('{"' + "p" * 100 + '":' + "[[" * 100 + "{}" + "]]" * 100 + ',"b":1}\n', size), "data.jsonl"
    ),
    "json-long-key": _json(_wide_header),
    "json-long-integer": _json(lambda size: "[1" + "0" * size + "]"),
    "json-long-float": _json(lambda size: "[1." + "0" * size + "e9]"),
    "json-exponent": _json(lambda size: "[1e" + "9" * size + "]"),
    "json-wide": _json(lambda size: "{" + times('"a{n}":1,', size) + '"z":1}'),
    "json-same-keys": _json(lambda size: "{" + times('"a":1,', size) + '"z":1}'),
    "json-array-of-arrays": _json(lambda size: "[" + times("[1],", size) + "[1]]"),
    "json-empty-arrays": _json(lambda size: "[" + times("[],", size) + "[]]"),
    "json-sparse-objects": _json(lambda size: "[" + times('{"a{n}":1},', size) + '{"z":1}]'),
    "json-table": _json(
        lambda size: "[{" + ",".join(f'"{"k" * 400}{n}":1' for n in range(40)) + "}"
        + times(',{"' + "k" * 400 + '0":1}', size) + "]"
    ),
    "json-objects-in-arrays": _json(
        lambda size: '{"' + "k" * (size // 2) + '":[' + times('{"a":[1]},', size // 2) + "1]}"
    ),
    "json-escaped-key": _json(lambda size: '{"' + times("\\u0020", size) + '":1}'),
    "json-strings": _json(lambda size: '["' + times("\\", size // 2 * 2) + '"]'),
    "json-spaces": _json(lambda size: "[1" + " " * size + "]"),
    "json-open-lines": _json(lambda size: times('{"a":\n', size), "data.jsonl"),
    "json-deep-lines": _json(lambda size: times("[" * 2000 + "]" * 2000 + "\n", size), "data.jsonl"),
    "json-lines-as-json": _json(lambda size: times('{"a":1}\n', size) + "x"),
    "json-as-text": _json(lambda size: "[" * size, "data.txt"),
}  # fmt: skip

TABLES: dict[str, Hostile] = {
    "csv-wide-row": _csv(wide_row),
    "csv-wide-row-last": _csv(lambda size: "\n".join(reversed(wide_row(size).splitlines()))),
    "csv-many-wide-rows": _csv(
        lambda size: times(",".join("x" * 1000) + "\n", size // 2) + times("a,b\n", size // 2)
    ),
    "csv-diagonal": _csv(_diagonal),
    "csv-long-header": _csv(_long_header),
    "csv-names-over-records": _csv(_names_over_records),
    "csv-columns": _csv(lambda size: times("a,", size)),
    "csv-commas": _csv(lambda size: "," * size + "\na,b\n"),
    "csv-rows": _csv(lambda size: times("a\n", size)),
    "csv-empty-rows": _csv(lambda size: "a,b\n" + "\n" * size),
    "csv-quotations": _csv(lambda size: '"' * size),
    "csv-open-quotation": _csv(lambda size: 'a,b\n"' + times("x\n", size)),
    "csv-open-quotations": _csv(lambda size: 'a,b\n' + times('"x,\n', size)),
    "csv-spaces": _csv(lambda size: "a," + " " * size + "b\n1,2\n"),
    "csv-backslashes": _csv(lambda size: 'a,"' + "\\" * size + '"\n1,2\n'),
    "csv-values": _csv(lambda size: "1" + ",1" * (size // 2) + "x\n"),
    "csv-value": _csv(lambda size: "a,b\n" + "1" * size + "x,2\n"),
    "csv-first-value": _csv(lambda size: "1" * size + "x,b\n1,2\n"),
    "csv-separators": _csv(lambda size: times(",;\t|", size)),
    "csv-pipes": _csv(lambda size: "a,b\n" + times("|,", size)),
    "csv-returns": _csv(lambda size: "a,b\n" + "\r" * size),
    "csv-preamble": _csv(lambda size: "title\n" * 5 + times(",a{n}", size) + "\n1,2\n"),
    "tsv-tabs": _csv(lambda size: "a\tb\n" + "\t" * size + "\n", "data.tsv"),
}  # fmt: skip

TEXTS: dict[str, Hostile] = {
    "text-form-feeds": lambda size: (b"a\f" * (size // 2), "a.txt"),
    "text-lines-of-pages": lambda size: (b"a\nb\nc\n\f" * (size // 7), "a.txt"),
    "text-page-numbers": lambda size: (times("head {n}\ntext\n{n}\f", size).encode(), "a.txt"),
    "text-tables": lambda size: (
        times("In millions\n\n2018 2017\nSales {n} 1,234 5,678\nCost 1,000 2,000\n", size).encode(), "a.txt"
    ),
    "text-captions": lambda size: (times("Caption\nFiscal year 2018 2017\n", size).encode(), "a.txt"),
    "text-combining": lambda size: (("a" + "\u0301\u0327" * (size // 4)).encode(), "a.txt"),
    "text-composed": lambda size: (("\ufb2c" * (size // 3)).encode(), "a.txt"),
    "text-arabic-ligature": lambda size: (("\ufdfa" * (size // 3)).encode(), "a.txt"),
    "text-ligatures": lambda size: (("\ufb03" * (size // 3)).encode(), "a.txt"),
    "text-latin": lambda size: (b"\xe9\xe8 " * (size // 3), "a.txt"),
    "text-line-breaks": lambda size: (("\u2029" * (size // 3)).encode() + b"a", "a.txt"),
}  # fmt: skip

CLASSES = MAILS | FRONT_MATTER | RECORDS | TABLES | TEXTS
