"""Source code: text unchanged, definitions found."""

from __future__ import annotations

import tracemalloc

import pytest

from parquetry.errors import SkippedDocument
from parquetry.extract.source_code import LANGUAGES, SourceCodeExtractor
from parquetry.model import Extraction, RawDocument
from parquetry.settings.sections import ExtractionSettings

SOURCES = {
    "text/x-python": (
        """
import os

# About f.
@cache
def f(x):
    return x


class A:
    y = 1

    async def g(self): ...
""",
        [(1, "f()", "# About f."), (1, "A", "class A:"), (2, "g()", "    async def g(self): ...")],
    ),
    "text/x-javascript": (
        """
import x from 'y'

export default function f() {}
const g = (a) => a
const n = 1
class A {
  m() {}
}
""",
        [
            (1, "f()", "export default function f() {}"),
            (1, "g()", "const g = (a) => a"),
            (1, "A", "class A {"),
            (2, "m()", "  m() {}"),
        ],
    ),
    "text/x-typescript": (
        """
export interface P {
  a: number
}
export type T = string
abstract class A<T> {
  m(): void {}
}
enum E { X }
""",
        [
            (1, "P", "export interface P {"),
            (1, "T", "export type T = string"),
            (1, "A", "abstract class A<T> {"),
            (2, "m()", "  m(): void {}"),
            (1, "E", "enum E { X }"),
        ],
    ),
    "text/x-rust": (
        """
/// About S.
#[derive(Debug)]
pub struct S { x: i32 }

impl Show for S {
    fn show(&self) {}
}
mod m {
    pub fn f() {}
}
""",
        [
            (1, "S", "/// About S."),
            (1, "impl Show for S", "impl Show for S {"),
            (2, "show()", "    fn show(&self) {}"),
            (1, "m", "mod m {"),
            (2, "f()", "    pub fn f() {}"),
        ],
    ),
    "text/x-go": (
        """
package p

// About T.
type T struct{ x int }

func (t *T) M() {}

func F() {}
""",
        [(1, "T", "// About T."), (1, "M()", "func (t *T) M() {}"), (1, "F()", "func F() {}")],
    ),
    "text/x-java": (
        """
package p;

/** About A. */
public class A {
    A() {}
    int m() { return 1; }
    enum E { X }
}
interface I {}
""",
        [
            (1, "A", "/** About A. */"),
            (2, "A()", "    A() {}"),
            (2, "m()", "    int m() { return 1; }"),
            (2, "E", "    enum E { X }"),
            (1, "I", "interface I {}"),
        ],
    ),
    "text/x-c": (
        """
#ifndef H
#define H
#include <a.h>
static int *f(int x) {
  return 0;
}
struct s { int x; };
#endif
""",
        [(1, "f()", "static int *f(int x) {"), (1, "s", "struct s { int x; };")],
    ),
    "text/x-c++": (
        """
namespace n {
template <class T>
class A {
 public:
  void m() {}
};
}
void n::A::f() {}
""",
        [
            (1, "n", "namespace n {"),
            (2, "A", "template <class T>"),
            (3, "m()", "  void m() {}"),
            (1, "n::A::f()", "void n::A::f() {}"),
        ],
    ),
    "text/x-sh": (
        """
#!/bin/sh
set -e

run() {
  echo hi
}
run
""",
        [(1, "run()", "run() {")],
    ),
    "text/x-sql": (
        """
CREATE TABLE t (x INT);
""",
        [],
    ),
    "text/x-toml": (
        """
[a]
b = 1
""",
        [],
    ),
    "text/x-yaml": (
        """
a:
  - b
""",
        [],
    ),
    "text/x-ini": (
        """
[a]
b=1
""",
        [],
    ),
    "text/x-source": (
        """
puts 'hi'
""",
        [],
    ),
}
"""media type -> code, and the levels, titles and first lines of the headings"""


def read(source: str | bytes, media_type: str, filename: str = "file.x") -> Extraction:
    content = source.encode() if isinstance(source, str) else source
    return SourceCodeExtractor().extract(RawDocument(content, filename), media_type, ExtractionSettings())


def test_every_language_has_an_example_here() -> None:
    assert SOURCES.keys() == LANGUAGES.keys()


@pytest.mark.parametrize("media_type", SOURCES)
def test_code_is_kept_and_its_definitions_are_headings(media_type: str) -> None:
    source, expected = SOURCES[media_type]
    extraction = read(source, media_type)
    assert extraction.text == source.strip("\n")
    found = [
        (heading.level, heading.title, extraction.text[heading.start :].split("\n")[0])
        for heading in extraction.headings
    ]
    assert found == expected
    assert [(part.format, part.language) for part in extraction.parts] == [("code", LANGUAGES[media_type])]


def test_layout_is_kept() -> None:
    source = "def f():\n\n\n\n\tif x:  \n\t\treturn 1"
    assert read(source, "text/x-python").text == source


def test_tsx_has_a_grammar_of_its_own() -> None:
    source = "export const App = () => <div className='x'>{1 < 2}</div>\nfunction g() {}\n"
    extraction = read(source, "text/x-typescript", "App.TSX")
    assert [heading.title for heading in extraction.headings] == ["App()", "g()"]
    assert extraction.parts[0].language == "tsx"


def test_offsets_count_characters_not_bytes() -> None:
    extraction = read("# äöü 漢字 😀\n\ndef f(): ...\n", "text/x-python")
    assert extraction.text[extraction.headings[0].start :] == "def f(): ..."


@pytest.mark.parametrize("source", ["def f(:\n  class (((", "}" * 1000, "(" * 5000, "class A:\n" * 3])
def test_broken_code_is_text_all_the_same(source: str) -> None:
    assert read(source, "text/x-python").text == source.strip("\n")


def test_one_line_has_one_heading() -> None:
    assert len(read("function a(){}function b(){}", "text/x-javascript").headings) == 1


def test_definitions_of_a_long_file_are_all_found() -> None:
    found = read(b"".join(b"def f%d(): pass\n" % number for number in range(5000)), "text/x-python")
    assert [heading.title for heading in found.headings] == [f"f{number}()" for number in range(5000)]


def test_lines_of_code_without_definitions_take_no_memory_each() -> None:
    content = b"x" + b"\n" * 1_000_000 + b"y"
    read(content[:100], "text/x-go")
    tracemalloc.start()
    read(content, "text/x-go")
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 10 * len(content)


def test_a_file_of_white_space_is_skipped() -> None:
    with pytest.raises(SkippedDocument):
        read("\n\n  \n", "text/x-python")
