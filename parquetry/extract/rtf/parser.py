"""Parses rich text in one pass: groups, control words, and bytes in the encodings of fonts."""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass, replace

from parquetry.errors import BrokenDocument
from parquetry.extract.rtf.stories import TABLE_OF_CONTENTS, RichText, Story
from parquetry.extract.rtf.words import (
    BOXES,
    CHARACTERS,
    CHARSETS,
    INFORMATION,
    LEFT_OUT,
    RUNNING,
    SHOWN,
    SYMBOLS,
    TIME,
)

MAX_NESTING = 2000
"""levels of nested groups; word processors write a few dozen"""

_TOKEN = re.compile(
    r"\\(?P<word>[a-zA-Z]{1,32})(?P<number>-?\d{1,10})? ?|\\'(?P<byte>[0-9a-fA-F]{2})|\\(?P<sign>[^a-zA-Z])"
    r"|(?P<brace>[{}])|[\r\n\x00]+|(?P<text>[^\\{}\r\n\x00]+)"
)
_HEADING = re.compile(r"heading ([1-9])", re.IGNORECASE)
_CONTENTS = re.compile(r"toc [1-9]", re.IGNORECASE)
_UTF_8 = 65001
"""number of its code page"""
_LOWEST = 9
"""outline level of body text"""
_BULLET = "\u2022"
_HIGH, _LOW = range(0xD800, 0xDC00), range(0xDC00, 0xE000)
"""halves of a character beyond the first 65,536"""
_SIGNS = range(0xF020, 0xF100)
"""characters of fonts of signs, in the private area"""
_MAX_DEPTH = 8
"""depth of a list"""


@dataclass(slots=True)
class _State:
    """Properties that the end of a group restores."""

    place: str = "body"
    """body, skip, fonts, styles, info, marker, or a property's name"""
    font: int | None = None
    unicode_skip: int = 1
    """characters after a Unicode character that stand in for it"""
    hidden: bool = False
    level: int | None = None
    """level of the paragraph as a heading"""
    depth: int = 0
    """depth of the paragraph in a list, 0 for the outermost"""
    in_table: bool = False
    story: Story | None = None
    """story that begins with this group; None if an outer one goes on"""
    collects: str = ""
    """note, comment, running or box: where the group's story belongs"""


def parse_rtf(content: bytes) -> RichText:
    """Parse rich text.

    Raises:
        BrokenDocument: `damaged`, it is none; or `too-deep`.
    """
    if not content.startswith(b"{\\rtf"):
        raise BrokenDocument("damaged", "it does not begin as a rich text does, with {\\rtf")
    parser = _Parser()
    parser.parse(content.decode("latin-1"))
    return parser.found


class _Parser:
    def __init__(self) -> None:
        self.found = RichText()
        self._state = _State()
        self._stack: list[_State] = []
        self._stories = [self.found.body]
        self._encoding = "cp1252"
        self._default_font: int | None = None
        self._fonts: dict[int, str | None] = {}
        """number of a font -> encoding; None for a font of signs"""
        self._styles: dict[int, int] = {}
        """number of a style -> level of headings"""
        self._bytes = bytearray()
        self._skip = 0
        """characters to be skipped after a Unicode character"""
        self._high = 0
        """first half of a character whose second half has to follow; 0 for none"""
        self._starred = False
        self._style = 0
        self._style_level: int | None = None
        self._name: list[str] = []
        """text of the style, the marker or the property in work"""
        self._time: dict[str, int] = {}
        self._author = ""

    def parse(self, text: str) -> None:
        at = 0
        while (token := _TOKEN.match(text, at)) is not None:
            at = token.end()
            kind = token.lastgroup
            if kind in ("number", "word"):
                at = self._word(token["word"], token["number"], at)
            elif kind == "text":
                self._text(token["text"])
            elif kind == "byte":
                self._byte(int(token["byte"], 16))
            elif kind == "brace":
                self._skip = 0
                if token["brace"] == "{":
                    self._open()
                elif not self._close():
                    break
            elif kind == "sign":
                self._sign(token["sign"])
        while self._stack:
            self._end_group()
        self.found.body.finish()

    # --- groups

    def _open(self) -> None:
        self._flush()
        if len(self._stack) >= MAX_NESTING:
            raise BrokenDocument("too-deep", f"its groups are nested deeper than {MAX_NESTING} levels")
        self._stack.append(self._state)
        self._state = replace(self._state, story=None, collects="")
        self._starred = False

    def _close(self) -> bool:
        """Close a group; return False at the end of the document."""
        if not self._stack:
            return False
        self._end_group()
        self.found.whole = not self._stack
        return bool(self._stack)

    def _end_group(self) -> None:
        self._flush()
        state, self._state = self._state, self._stack.pop()
        place = state.place
        if place != self._state.place:
            self._end_place(place)
        elif place == "styles":
            self._end_style()
        if state.story is not None:
            self._stories.pop()
            self._place_story(state.story, state.collects)

    def _end_place(self, place: str) -> None:
        text = " ".join("".join(self._name).split())
        if place == "marker":
            self._stories[-1].marker = text if any(map(str.isalnum, text)) else "-"
        elif place in ("created", "modified"):
            text = self._moment()
        if place == "atnauthor":
            self._author = text
        elif text and place in INFORMATION.values():
            self.found.properties.setdefault(place, text)
        if place not in ("skip", "fonts", "info"):
            self._name.clear()

    def _moment(self) -> str:
        year, month, day, hour, minute = (self._time.get(each, 0) for each in TIME)
        self._time.clear()
        return f"{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}" if year and month and day else ""

    def _place_story(self, story: Story, collects: str) -> None:
        if collects == "box":
            story.finish()
            self._stories[-1].apart.extend(story.blocks)
            return
        line = story.as_line()
        if collects == "note":
            self.found.notes.append(f"[{len(self.found.notes) + 1}] {line}")
            self._stories[-1].pieces.append(f"[{len(self.found.notes)}]")
        elif collects == "comment" and line:
            self.found.comments.append(f"{self._author}: {line}" if self._author else line)
            self._author = ""
        elif collects == "running":
            self.found.running[line] = None

    def _begin_story(self, collects: str) -> None:
        story = Story()
        self._state = replace(
            self._state, place="body", story=story, collects=collects, level=None, in_table=False, hidden=False
        )
        self._stories.append(story)

    def _end_style(self) -> None:
        name = "".join(self._name).strip().rstrip(";").strip()
        self._name.clear()
        named = _HEADING.fullmatch(name)
        level = int(named[1]) if named else 1 if name == "Title" else self._style_level
        level = TABLE_OF_CONTENTS if _CONTENTS.fullmatch(name) else level
        if level is not None:
            self._styles[self._style] = level
        self._style, self._style_level = 0, None

    # --- control words

    def _word(self, word: str, digits: str | None, at: int) -> int:
        """Carry out a control word; return the offset at which the text goes on."""
        number = int(digits) if digits else None
        if word == "bin":
            self._flush()
            return at + max(0, number or 0)
        if self._skip:
            self._skip -= 1
            return at
        if word == "u":
            self._unicode(number or 0)
            return at
        self._flush()
        starred, self._starred = self._starred, False
        if not self._destination(word, starred) and self._state.place != "skip":
            self._property(word, number)
        return at

    def _destination(self, word: str, starred: bool) -> bool:
        """Begin the destination that a word names, if it names one."""
        state = self._state
        opened = bool(self._stack) and state.story is None
        if state.place == "info" and word in INFORMATION:
            state.place = INFORMATION[word]
        elif word == "mr" or (word in SHOWN and state.place != "skip"):
            self._show(word, state)
        elif state.place == "skip":
            return True
        elif word in ("fonttbl", "stylesheet", "info"):
            state.place = {"fonttbl": "fonts", "stylesheet": "styles"}.get(word, word)
        elif word in ("listtext", "pntext"):
            state.place = "marker"
        elif word in RUNNING and opened:
            self._begin_story("running")
        elif word == "annotation":
            self._begin_story("comment")
        elif word == "atnauthor":
            state.place = word
        elif word in LEFT_OUT or (starred and word not in ("cs", "ts", "ds", "pnseclvl")):
            state.place = "skip"
        else:
            return False
        return True

    def _show(self, word: str, state: _State) -> None:
        if word == "footnote":
            self._begin_story("note")
        elif word in BOXES:
            self._begin_story("box")
        elif word == "mr":
            state.place = "body"

    def _property(self, word: str, number: int | None) -> None:
        state = self._state
        if word == "f":
            state.font = number
        elif word == "uc":
            state.unicode_skip = max(0, number or 0)
        elif state.place == "fonts":
            if word == "fcharset" and state.font is not None:
                self._fonts[state.font] = None if number == SYMBOLS else CHARSETS.get(number or 0, "")
        elif state.place == "styles":
            if word == "s":
                self._style = number or 0
            elif word == "outlinelevel" and number is not None and number < _LOWEST:
                self._style_level = number + 1
        elif state.place in ("created", "modified"):
            if word in TIME:
                self._time[word] = abs(number or 0)
        elif state.place == "body":
            self._body_property(word, number)
        elif word in CHARACTERS:
            self._put(CHARACTERS[word])
        self._document_property(word, number)

    def _document_property(self, word: str, number: int | None) -> None:
        if word == "ansicpg":
            self._encoding = _known(f"cp{number}") if number != _UTF_8 else "utf-8"
        elif word in ("mac", "pc", "pca"):
            self._encoding = {"mac": "mac_roman", "pc": "cp437", "pca": "cp850"}[word]
        elif word == "deff":
            self._default_font = number

    def _body_property(self, word: str, number: int | None) -> None:
        state, story = self._state, self._stories[-1]
        if word in CHARACTERS:
            self._put(CHARACTERS[word])
        elif word in ("par", "sect", "page", "column"):
            story.end_paragraph(state.level, state.depth, in_table=state.in_table)
        elif word == "cell":
            story.end_cell()
        elif word == "row":
            story.end_row()
        elif word == "pard":
            state.level, state.in_table, state.depth = None, False, 0
        elif word == "plain":
            state.font, state.hidden = self._default_font, False
        elif word == "s":
            state.level = self._styles.get(number or 0)
        elif word == "outlinelevel" and number is not None:
            state.level = number + 1 if number < _LOWEST else None
        elif word == "intbl":
            state.in_table = number != 0
        elif word == "ilvl":
            state.depth = min(abs(number or 0), _MAX_DEPTH)
        elif word in ("v", "deleted"):
            state.hidden = number != 0

    # --- characters

    def _sign(self, sign: str) -> None:
        if sign == "*":
            self._starred = True
        elif self._skip:
            self._skip -= 1
        elif sign in "\r\n":
            self._word("par", None, 0)
        elif sign in CHARACTERS:
            self._flush()
            self._put(CHARACTERS[sign])

    def _text(self, text: str) -> None:
        text = text[self._skip :] if self._skip < len(text) else self._skipped(text)
        self._skip = 0 if text else self._skip
        if text and self._state.place != "skip":
            self._bytes += text.encode("latin-1")

    def _skipped(self, text: str) -> str:
        self._skip -= len(text)
        return ""

    def _byte(self, value: int) -> None:
        if self._skip:
            self._skip -= 1
        elif self._state.place != "skip":
            self._bytes.append(value)

    def _unicode(self, number: int) -> None:
        self._flush()
        number &= 0xFFFF
        high, self._high = self._high, 0
        if number in _HIGH:
            self._high = number
        elif number in _LOW and high:
            self._put(chr(0x10000 + (high - _HIGH.start) * len(_LOW) + number - _LOW.start))
        else:
            self._put(_BULLET if number in _SIGNS else chr(number))
        self._skip = self._state.unicode_skip

    def _flush(self) -> None:
        """Decode the bytes collected since the font changed."""
        if not self._bytes:
            return
        font = self._fonts.get(-1 if self._state.font is None else self._state.font, "")
        if font is None:
            text = "".join(_BULLET if byte > 0x7F else chr(byte) for byte in self._bytes)
        else:
            text = self._bytes.decode(font or self._encoding, "replace")
        self._bytes.clear()
        self._put(text)

    def _put(self, text: str) -> None:
        place = self._state.place
        if place == "body":
            if not self._state.hidden:
                self._stories[-1].pieces.append(text)
        elif place not in ("skip", "fonts", "info"):
            self._name.append(text)


def _known(encoding: str) -> str:
    try:
        return codecs.lookup(encoding).name
    except LookupError:
        return "cp1252"
