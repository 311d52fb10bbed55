"""Reads LaTeX from left to right: its blocks of text, without running its commands."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable

from parquetry.extract.builder import TextBuilder, fenced
from parquetry.extract.latex import commands
from parquetry.extract.latex.pieces import ArgumentLine, OpenTable, closing_braces
from parquetry.model import Scalar

_TOKEN = re.compile(
    r"(?P<comment>%[^\n]*(?:\n[ \t]*+(?!\n))?)|\\(?P<word>[A-Za-z@]{1,100}\*?)[ \t]*+(?:\n(?![ \t]*\n))?[ \t]*+"
    r"|\\(?P<symbol>.)|(?P<paragraph>\n[ \t]*\n\s*)|(?P<dollars>\$\$?)|(?P<special>[{}&~])"
    r"|(?P<text>[^\\%\n$&~{}]+|\n|\\)",
    re.DOTALL,
)
_OPTION = re.compile(r"\s{0,100}\[([^\[\]]{0,500})\]")
_GAP = re.compile(r"[ \t]*(?:\n(?![ \t]*\n)[ \t]*)?")
_INLINE = re.compile(r"(?:[^$\\\n]|\\.|\n(?![ \t]*\n)){1,5000}+\$", re.DOTALL)
_MAX_ARGUMENT = 5000
"""characters of an argument; a longer one is read as text"""
_MAX_DEPTH = 4
"""commands within arguments of others whose own arguments are read"""
_MAX_TABLES = 8
"""tables within each other; the cells of deeper ones are cells of the innermost that is open"""


class LatexReader:
    """Reads LaTeX from left to right, each character a bounded number of times.

    Args:
        text: the text.
        builder: receives blocks of text.
        outermost: index in `commands.SECTIONS` of the headings of level 1.
        depth: number of commands in whose arguments the text is.
    """

    def __init__(self, text: str, builder: TextBuilder | ArgumentLine, outermost: int = 0, depth: int = 0) -> None:
        self._text, self._builder, self._outermost, self._depth = text, builder, outermost, depth
        self._at = 0
        self._closing = closing_braces(text)
        self._out: list[str] = []
        self._accent = ""
        self._tables: list[OpenTable] = []
        self._deeper = 0
        """tables within the innermost that are open as well"""
        self._lists: list[tuple[bool, int]] = []
        """lists that are open: True for numbers, and the number of items so far"""
        self._items: list[str] = []
        self._mark = ""
        """mark of the item whose text is read"""
        self._missing: set[str] = set()
        """closing marks that do not follow any more"""
        self.title: str | None = None
        self.metadata: dict[str, Scalar] = {}
        self.first: str | None = None
        """first heading of level 1"""
        self.files: list[str] = []

    def read_preamble(self, end: int) -> None:
        """Read title, author and date in the text up to the body, and go there."""
        for found in re.finditer(r"\\(title|author|date)\b", self._text[:end]):
            self._at = found.end()
            self._about(found[1])
        self._at = end

    def read(self) -> None:
        """Read to the end."""
        while self._at < len(self._text):
            token = _TOKEN.match(self._text, self._at)
            if token is None:
                self._at += 1
                continue
            self._at = token.end()
            kind = token.lastgroup or "comment"
            if kind == "word":
                self._command(token["word"])
            elif kind == "symbol":
                self._control(token["symbol"])
            elif kind == "dollars":
                self._dollars(token["dollars"])
            elif kind == "paragraph":
                self._end_paragraph()
            elif kind == "special":
                self._special(token["special"])
            elif kind == "text":
                self._write(token["text"])
        while self._tables:
            self._end_table()
        self._end_paragraph()
        self._lists.clear()
        self._end_list()

    # --- characters

    def _special(self, character: str) -> None:
        if character == "~":
            self._write(" ")
        elif character == "&" and self._tables:
            self._tables[-1].row.append(self._taken())
        elif character == "&":
            self._write(" ")

    def _control(self, character: str) -> None:
        if character == "\\":
            option = _OPTION.match(self._text, self._at)
            self._at = option.end() if option else self._at
            if self._tables:
                self._tables[-1].end_row(self._taken())
            else:
                self._write(" ")
        elif character in "[(":
            self._formula("\\]" if character == "[" else "\\)", block=character == "[")
        elif character in commands.ACCENTS:
            self._accent = commands.ACCENTS[character]
        else:
            self._write(commands.SYMBOLS.get(character, character))

    def _dollars(self, mark: str) -> None:
        if mark == "$$":
            self._formula("$$", block=True)
            return
        found = _INLINE.match(self._text, self._at)
        if found is None:
            self._write("$")
            return
        self._write(f"${' '.join(found[0][:-1].split())}$", raw=True)
        self._at = found.end()

    def _write(self, text: str, *, raw: bool = False) -> None:
        if self._accent and text.strip():
            place = len(text) - len(text.lstrip())
            text = unicodedata.normalize("NFC", text[: place + 1] + self._accent) + text[place + 1 :]
            self._accent = ""
        if not raw:
            for typed, meant in commands.QUOTES:
                text = text.replace(typed, meant)
        self._out.append(text)

    def _taken(self) -> str:
        text = " ".join("".join(self._out).split())
        self._out.clear()
        return text

    # --- commands

    def _command(self, name: str) -> None:
        plain = name.rstrip("*")
        act = _ACTS.get(plain)
        if act is not None:
            act(self, plain)
        elif plain in commands.ACCENTS:
            self._accent = commands.ACCENTS[plain]
        elif plain in commands.LETTERS:
            self._write(commands.LETTERS[plain])
        elif plain in commands.RULES and self._tables:
            self._tables[-1].note_rule()
            self._skip(commands.DROPPED.get(plain, 0))
        elif plain in commands.DROPPED:
            self._skip(commands.DROPPED[plain])
        else:
            self._options()

    def _options(self) -> None:
        option = _OPTION.match(self._text, self._at)
        if option and not self._tables:
            self._at = option.end()

    def _skip(self, count: int) -> None:
        """Skip options and arguments that are no text."""
        for _ in range(count):
            while option := _OPTION.match(self._text, self._at):
                self._at = option.end()
            if self._argument() is None:
                return
        while count and (option := _OPTION.match(self._text, self._at)):
            self._at = option.end()

    def _argument(self) -> str | None:
        """Return the argument that follows, without its braces; None, and stay, if there is none or it is too long."""
        gap = _GAP.match(self._text, self._at)
        start = gap.end() if gap else self._at
        end = self._closing.get(start)
        if end is None or end - start > _MAX_ARGUMENT:
            return None
        self._at = end + 1
        return self._text[start + 1 : end]

    def _line(self) -> str | None:
        """Return the argument that follows as one line of text; None if there is none."""
        while option := _OPTION.match(self._text, self._at):
            self._at = option.end()
        argument = self._argument()
        if argument is None or self._depth >= _MAX_DEPTH:
            return argument
        line = ArgumentLine()
        reader = LatexReader(argument, line, self._outermost, self._depth + 1)
        reader.read()
        self.files += reader.files
        return " ".join(" ".join(line.pieces).split())

    def _about(self, name: str) -> None:
        value = (self._line() or "").replace(" , ", ", ")
        if value and name == "title":
            self.title = self.title or value
        elif value:
            self.metadata.setdefault(name, value)

    def _heading(self, name: str) -> None:
        title = self._line()
        if not title:
            return
        self._end_paragraph()
        level = max(1, commands.SECTIONS.index(name) - self._outermost + 1)
        self._builder.heading(level, title)
        if level == 1 and self.first is None:
            self.first = title

    def _beside(self, name: str) -> None:
        """Add a note in parentheses, a caption or the heading of an abstract as text of its own."""
        text = self._line()
        if text and name == "caption":
            kept, self._out = self._out, [text]
            self._end_paragraph()
            self._out = kept
        elif text:
            self._write(f" ({text})")

    def _reference(self, _: str) -> None:
        while option := _OPTION.match(self._text, self._at):
            self._at = option.end()
        key = self._argument()
        if key:
            self._write(f"[{' '.join(key.split())}]", raw=True)

    def _link(self, name: str) -> None:
        address = self._argument()
        text = self._line() if name == "href" else None
        if address:
            self._write(f"{text} ({address})" if text else address, raw=True)

    def _file(self, _: str) -> None:
        file = self._argument()
        if file and file.strip():
            self.files.append(" ".join(file.split())[:100])

    def _verb(self, _: str) -> None:
        mark = self._text[self._at : self._at + 1]
        end = self._text.find(mark, self._at + 1, self._at + _MAX_ARGUMENT) if mark.strip() else -1
        if end >= 0:
            self._write(f"`{self._text[self._at + 1 : end]}`", raw=True)
            self._at = end + 1

    def _spanning(self, _: str) -> None:
        """Read a cell over several columns: its text, and an empty cell for each further column."""
        count = self._argument()
        self._argument()
        text = self._line()
        self._write(text or "")
        if self._tables and count and count.strip().isdigit():
            further = min(int(count.strip()[:3]), 100) - 1
            if further > 0:
                self._tables[-1].row += [self._taken(), *[""] * (further - 1)]

    # --- environments

    def _begin(self, _: str) -> None:
        name = (self._argument() or "").strip()
        plain = name.rstrip("*")
        if name in commands.RAW or name in commands.DROPPED_BLOCKS:
            content = self._until(f"\\end{{{name}}}")
            if content is not None and name in commands.RAW:
                self._end_paragraph()
                option = _OPTION.match(content)
                code = content[option.end() if option else 0 :].strip("\n")
                self._builder.text(fenced(code, ""), keep_layout=True)
        elif name in commands.FORMULAS:
            self._formula(f"\\end{{{name}}}", block=name != "math")
        elif name in commands.TABLES:
            self._options()
            self._skip(commands.TABLES[name] + 1)
            self._begin_table()
        elif plain in commands.LISTS:
            self._end_paragraph()
            self._options()
            self._lists.append((plain.endswith(("enumerate", "enum")), 0))
        else:
            self._options()
            if name in {"minipage", "multicols", "wrapfigure", "thebibliography", "adjustbox"}:
                self._skip(2 if name == "wrapfigure" else 1)
            self._end_paragraph()

    def _end(self, _: str) -> None:
        name = (self._argument() or "").strip()
        if name == "document":
            self._at = len(self._text)
        elif name in commands.TABLES and self._deeper:
            self._deeper -= 1
        elif name in commands.TABLES and self._tables:
            self._end_table()
        elif name.rstrip("*") in commands.LISTS and self._lists:
            self._end_paragraph()
            self._lists.pop()
            self._end_list()
        else:
            self._end_paragraph()

    def _item(self, _: str) -> None:
        if not self._lists:
            return
        self._end_paragraph()
        option = _OPTION.match(self._text, self._at)
        self._at = option.end() if option else self._at
        numbered, count = self._lists[-1]
        self._lists[-1] = (numbered, count + 1)
        label = f"{option[1]} " if option and option[1].strip() else ""
        self._mark = (f"{count + 1}. " if numbered else "- ") + label

    def _formula(self, end: str, *, block: bool) -> None:
        content = self._until(end)
        if content is None:
            return
        formula = " ".join(re.sub(r"\\label\{[^{}]{0,200}\}", "", content).split())
        if formula and block and not self._tables:
            self._end_paragraph()
            self._builder.text(f"$$\n{formula}\n$$")
        elif formula:
            self._write(f"${formula}$", raw=True)

    def _until(self, end: str) -> str | None:
        """Return the text up to a mark, which is used up; None, and stay, if it does not follow."""
        place = -1 if end in self._missing else self._text.find(end, self._at)
        if place < 0:
            self._missing.add(end)
            return None
        content = self._text[self._at : place]
        self._at = place + len(end)
        return content

    # --- blocks

    def _begin_table(self) -> None:
        if len(self._tables) == _MAX_TABLES:
            self._deeper += 1
            return
        if not self._tables:
            self._end_paragraph()
        self._tables.append(OpenTable(self._out))
        self._out = []

    def _end_table(self) -> None:
        table = self._tables.pop()
        table.end_row(self._taken())
        self._out = table.outside
        if self._tables:
            self._write(", ".join(" ".join(filter(None, row)) for row in table.rows))
        elif table.rows:
            self._builder.table(table.rows, header=table.has_names)

    def _end_paragraph(self) -> None:
        if self._tables:
            self._write(" ")
            return
        text = self._taken()
        if not text:
            return
        if self._lists:
            depth = len(self._lists) - 1
            self._items.append("  " * min(depth, 9) + (self._mark or "  ") + text)
            self._mark = ""
        else:
            self._builder.text(text)

    def _end_list(self) -> None:
        if not self._lists and self._items:
            self._builder.text("\n".join(self._items))
            self._items.clear()


_ACTS: dict[str, Callable[[LatexReader, str], None]] = {
    **dict.fromkeys(commands.SECTIONS, LatexReader._heading),
    **dict.fromkeys(("title", "author", "date"), LatexReader._about),
    **dict.fromkeys(("footnote", "thanks", "caption", "footnotetext"), LatexReader._beside),
    **dict.fromkeys(commands.NAMED, LatexReader._reference),
    **dict.fromkeys(("href", "url", "nolinkurl", "path"), LatexReader._link),
    **dict.fromkeys(commands.FILES, LatexReader._file),
    **dict.fromkeys(("verb", "lstinline"), LatexReader._verb),
    **dict.fromkeys(("multicolumn", "multirow"), LatexReader._spanning),
    "begin": LatexReader._begin,
    "end": LatexReader._end,
    "item": LatexReader._item,
}  # fmt: skip
