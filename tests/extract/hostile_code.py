"""Source code and plain text built to exhaust its reader."""

# ruff: noqa: E501 (one class on one line)

from __future__ import annotations

from tests.extract.hostile_shapes import Hostile, halves, nested, repeated


def _code(extension: str, pieces: dict[str, tuple[str, str, str]]) -> dict[str, Hostile]:
    return {
        f"{extension}: {label}": repeated(f"a.{extension}", piece, before, after)
        for label, (piece, before, after) in pieces.items()
    }


_ANY = {
    "(": ("(", "x = ", "\n"),
    "{": ("{", "", "\n"),
    "[": ("[", "x = ", "\n"),
    "one word": ("a", "", ""),
    "one line": ("a ", "", ""),
    "quotes": ('"', "", ""),
    "comments": ("// x\n", "", ""),
    "comment marks": ("/*", "", ""),
    "line breaks": ("\n", "x", "y"),
    "spaces": (" ", "x", "y"),
    "errors": ("@#$ ", "", ""),
    "minified": ("function a(b){return b+1};", "", ""),
}
CODE: dict[str, Hostile] = {
    **_code("js", _ANY),
    **_code("js", {
        "nested functions": ("function a(){", "", ""), "nested exports": ("export default ", "", "x"),
        "nested classes": ("class A{a(){", "", ""), "arrows": ("a=>", "x = ", "b"), "templates": ("`${", "", ""),
        "strings": ("'a'+", "x = ", "'b'\n"), "minified vars": ("var a=function(){return 1},b=2;", "", ""),
        "regexes": ("/a/ ", "", ""), "jsx": ("<a>", "x = ", ""), "ternaries": ("a?b:", "x = ", "c"),
    }),
    "js: nested blocks": nested("a.js", "{", "}", "x"),
    "c: nested conditions": nested("a.c", "#if a\n", "#endif\n", "int b;\n"),
    "cpp: nested namespaces": nested("a.cpp", "namespace a {", "}", "int b;"),
    **_code("py", _ANY),
    **_code("py", {
        "functions": ("def a():\n    pass\n", "", ""), "decorators": ("@a\n", "", "def b(): pass\n"),
        "comments, hash": ("# x\n", "", ""), "nested ifs": ("if a:", "", "b"), "lambdas": ("lambda:", "x = ", "1"),
        "operators": ("-", "x = ", "1"), "strings": ('"""', "", ""), "long name": ("a", "def ", "(): pass\n"),
    }),
    **_code("ts", {"types": ("Array<", "type A = ", "x"), "namespaces": ("namespace a{", "", ""), "declares": ("declare ", "", "x")}),
    **_code("rs", {**_ANY, "modules": ("mod a{", "", ""), "attributes": ("#[a]\n", "", "fn b(){}"), "comments, nested": ("/*", "", "*/"), "macros": ("a!{", "", ""), "quotes, raw": ('r#"', "", "")}),
    **_code("go", {**_ANY, "types": ("[]", "type A ", "int"), "imports": ('import "a"\n', "package a\n", "")}),
    **_code("java", {**_ANY, "classes": ("class A{", "", ""), "generics": ("A<", "class B extends ", "")}),
    **_code("c", {
        **_ANY, "pointers": ("*", "int ", "a;"), "declarators": ("(*", "int ", "a"), "conditions": ("#if a\n", "", ""),
        "conditions, whole": ("#ifdef a\nint b;\n", "", "#endif\n"), "structs": ("struct a{", "", ""),
    }),
    **_code("cpp", {**_ANY, "templates": ("template<class A>", "", "int b;"), "namespaces": ("namespace a{", "", ""), "angles": ("a<", "", "")}),
    **_code("sh", {**_ANY, "heredocs": ("<<a ", "cat ", ""), "heredocs, lines": ("<<a\n", "", ""), "substitutions": ("$(", "echo ", ""), "pipes": ("a|", "", "b"), "ifs": ("if a;then ", "", "")}),
    "go: stars in comments": halves("a.go", "/*", "*/"),
    **_code("sql", {"one line": ("select 1;", "", ""), "brackets": ("(", "select ", "")}),
    **_code("toml", {"tables": ("[a]\n", "", "")}),
    **_code("yaml", {"lists": ("- ", "", "a\n"), "lines": ("a: b\n", "", "")}),
    **_code("ini", {"lines": ("a=b\n", "", "")}),
}  # fmt: skip

TEXT: dict[str, Hostile] = {
    f"text: {label}": repeated("a.txt", piece, before, after)
    for label, piece, before, after in (
        ("one word", "a", "", ""),
        ("spaces", " ", "x", "y"),
        ("line breaks", "\n", "x", "y"),
        ("lines of spaces", " \n", "x", "y"),
        ("#", "#", "", ""),
        ("|", "|", "", ""),
        ("| lines", "|\n", "", ""),
        (". ", ". ", "", ""),
        ("sentences", "A b. ", "", ""),
        ("quotes", '."', "", ""),
        ("form feeds", "\x0c", "x", "y"),
        ("pages of a line", "x\n\x0c", "", ""),
        ("pages of numbers", "1\n\x0c", "", ""),
        ("pages of lines", "Head\n\nx\n\n1\n\x0c", "", ""),
        ("page of words", "page 1 of ", "", "\n\x0cx\n\x0cx\n\x0c"),
        ("page of lines", "x 1\n", "a\n\x0c", "\n\x0c"),
        ("page of romans", "ivxlc", "a\n\x0c", "\n\x0c"),
        ("combining marks", "\u0301\u0327", "a", ""),
        ("combining marks, one line each", "a\u0301\u0327\n", "", ""),
        ("decomposing marks", "\u0f73", "a", ""),
        ("ligatures", "\ufb03", "", ""),
        ("expanding characters", "\u1d15e", "", ""),
        ("musical symbols", "\U0001d15e", "", ""),
        ("hangul", "\u1100\u1161\u11a8", "", ""),
        ("carriage returns", "\r", "x", "y"),
        ("zero width", "\u200b", "x", "y"),
        ("emoji joined", "\U0001f468\u200d", "", ""),
        ("regional", "\U0001f1e6", "", ""),
        ("right to left", "\u202e", "", ""),
        ("thai", "\u0e01", "", ""),
        ("chinese", "\u4e00", "", ""),
        ("soft hyphens", "\u00ad", "x", "y"),
        ("escapes", "\x1b", "", ""),
        ("escapes to japanese", "\x1b$B", "", ""),
        ("escapes between", "\x1b$B!!\x1b(B", "", ""),
        ("separators", "\u2028", "x", "y"),
    )
} | {
    f"text: {encoding}": lambda size, encoding=encoding, piece=piece: (  # type: ignore[misc]
        (piece * (size // len(piece.encode(encoding)))).encode(encoding), "a.txt"
    )
    for encoding, piece in (
        ("utf-16", "ab\n"), ("utf-16-le", "ab\n"), ("utf-32-be", "ab\n"), ("cp1252", "é "), ("cp1251", "же "),
        ("shift_jis", "日本"), ("gb18030", "中文"), ("iso2022_jp", "日本 a "), ("cp866", "же\n"), ("koi8_r", "же "), ("mac_roman", "é"),
    )
} | {
    "text: bytes of no encoding": lambda size: (bytes(range(128, 256)) * (size // 128), "a.txt"),
    "text: damaged utf-8": lambda size: (b"\xc3(" * (size // 2), "a.txt"),
    "text: almost utf-8": lambda size: ("é ".encode() * (size // 3) + b"\xff", "a.txt"),
    "text: 0x81": lambda size: (b"\x81" * size, "a.txt"),
}  # fmt: skip
