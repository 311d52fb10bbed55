"""Decodes bytes in any encoding to text."""

from __future__ import annotations

import codecs
import re
from typing import TYPE_CHECKING

from parquetry.errors import BrokenDocument
from parquetry.extract.sign_places import is_only_signs, misplaced
from parquetry.extract.terminal import without_codes
from parquetry.plural import counted

if TYPE_CHECKING:
    from chardet import EncodingEra

SAMPLE_BYTES = 96 * 1024
"""bytes from the start, and again from the middle, from which an encoding is guessed; everything is then decoded with
it"""

_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
    (b"\x84\x31\x95\x33", "gb18030"),
)
_LABELS = {
    "ascii": "cp1252", "us-ascii": "cp1252", "iso-8859-1": "cp1252", "iso8859-1": "cp1252", "latin1": "cp1252",
    "latin-1": "cp1252", "shift_jis": "cp932", "shift-jis": "cp932", "sjis": "cp932", "x-sjis": "cp932",
    "windows-31j": "cp932", "gb2312": "gb18030", "gbk": "gb18030", "x-gbk": "gb18030", "euc-kr": "cp949",
    "ks_c_5601-1987": "cp949", "ks_c_5601": "cp949", "big5": "big5hkscs", "big5-hkscs": "big5hkscs",
    "iso-8859-9": "cp1254", "tis-620": "cp874", "iso-8859-11": "cp874", "unicode": "utf-16", "x-mac-roman": "mac_roman",
    "iso-8859-8-i": "iso-8859-8", "utf8": "utf-8",
}  # fmt: skip
"""label -> the encoding that it means in practice, as browsers read it (WHATWG Encoding Standard)"""

_WIDER = {
    "shift_jis_2004": "cp932", "shift_jisx0213": "cp932", "euc_jis_2004": "euc_jp", "euc_jisx0213": "euc_jp",
    "cp858": "cp850", "iso8859-1": "cp1252",
}  # fmt: skip
"""encoding that is found -> one that contains nearly all of it, and that far more texts are written in; taken if every
byte of the sample is valid in it"""
KOREAN_ESCAPE = b"\x1b$)C"
"""beginning of a text in ISO-2022-KR, whose words stand between control characters"""
_ESCAPED = (
    (re.compile(rb"\x1b(?:\$[@B]|\(J|\$\(D)"), "iso2022_jp_2"),
    (re.compile(re.escape(KOREAN_ESCAPE)), "iso2022_kr"),
)
"""escape sequences that switch between character sets, and the encoding that has them"""
_NOT_ASCII = re.compile(rb"[\x80-\xff]")
_ESCAPED_GB = re.compile(rb"~\{[!-w][!-~]")
_COMMON_LEADS = frozenset({0xA1, 0xA3, *range(0xB0, 0xD8)})
"""lead bytes of signs and of the level of commonly used characters in GB 2312"""
_EBCDIC_SAMPLE = 4096
_EBCDIC_LEAST = 16
"""bytes below which content is too short to be told from binary"""
_EBCDIC_TEXT = bytes({
    0x05, 0x0C, 0x0D, 0x15, 0x25, 0x40, 0x4B, 0x4C, 0x4D, 0x4E, 0x50, 0x5B, 0x5C, 0x5D, 0x5E, 0x60, 0x61,
    *range(0x6B, 0x70), *range(0x7A, 0x80), *range(0x81, 0x8A), *range(0x91, 0x9A), *range(0xA2, 0xAA),
    *range(0xC1, 0xCA), *range(0xD1, 0xDA), *range(0xE2, 0xEA), *range(0xF0, 0xFA),
})  # fmt: skip
"""letters, digits, spaces and signs that all EBCDIC encodings share, and their line ends"""
_MAINFRAME = ("cp037", "cp273", "cp424", "cp500", "cp875", "cp1026", "cp1140")
"""the EBCDIC encodings that Python knows; they differ in signs and accented letters"""
_LITTLE = 0.06
"""confidence of chardet below which its answer is one of the encodings of the web; right answers for a line of text in
others have 0.08 and more"""
_LEAST = 0.02
"""confidence below which an answer says nothing"""
_MUCH = 0.25
"""confidence above which the places of letters are not looked at; wrong answers for short texts have up to 0.18"""
_SHOWN = 4096
"""characters whose places are looked at"""
_RARE = ("iso8859-3", "iso8859-4", "iso8859-10", "iso8859-13", "iso8859-14", "iso8859-16", "cp1258")
"""encodings of the web that hardly any text uses"""
_CONTROL_BYTES = bytes({*range(9), *range(14, 27), *range(28, 32), 127})
_MAX_CONTROL_SHARE = 0.03
"""share of control characters above which content is not text; random bytes have 0.1, text next to none"""


def decode(content: bytes, hint: str | None = None) -> tuple[str, str]:
    """Decode text of unknown encoding.

    In this order: byte order mark, escape sequences, UTF-16 and UTF-32 by their zero bytes, strict UTF-8, EBCDIC by its
    spaces, the hint, detection by chardet. Bytes invalid in the chosen encoding become U+FFFD; `replaced` reports them.

    Args:
        content: the bytes of a text.
        hint: charset label from the format or the transport; used only if the bytes fit.

    Returns:
        The text, without byte order mark, and the Python name of the encoding.

    Raises:
        BrokenDocument: `damaged`, the bytes are not text in any encoding.
    """
    for mark, name in _BOMS:
        if content.startswith(mark):
            return content[len(mark) :].decode(name, "replace"), name
    declared = _codec(hint)
    if (escaped := _escaped(content)) is not None:
        return escaped
    wide = _wide(content)
    if wide is not None:
        return content.decode(wide, "replace"), wide
    if (text := _strict(content, "utf-8")) is not None:
        if b"\x00" in content:
            _refuse_binary(content)
        return text, "utf-8"
    if is_ebcdic(content):
        encoding = _ebcdic(content)
        return content.decode(encoding, "replace"), encoding
    _refuse_binary(content)
    if declared is not None and declared != "utf-8" and (text := _strict(content, declared)) is not None:
        return text, declared
    sample = _sample(content)
    encoding = "utf-8" if _mostly_utf8(sample) else _detect(sample, declared)
    return content.decode(encoding, "replace"), encoding


def replaced(content: bytes, text: str, encoding: str) -> tuple[str, ...]:
    """Return a warning for an extraction if decoding had to replace bytes.

    Args:
        content: the bytes.
        text: the decoded text.
        encoding: the encoding returned by `decode`.
    """
    count = text.count("\ufffd")
    if count and (encoding == "gb18030" or encoding.startswith("utf")):
        # The content itself may contain the replacement character.
        count -= content.count("\ufffd".encode(encoding))
    return (f"{counted(count, 'character')} could not be decoded as {encoding}, and replaced",) if count > 0 else ()


def _codec(label: str | None) -> str | None:
    if not label:
        return None
    label = label.strip().strip("\"'").lower()
    try:
        return codecs.lookup(_LABELS.get(label, label)).name
    except (LookupError, ValueError):
        return None


def _strict(content: bytes, encoding: str) -> str | None:
    try:
        return content.decode(encoding)
    except (UnicodeDecodeError, LookupError):
        # LookupError: a label may name a codec that is not a text encoding (`hex`).
        return None


def _sample(content: bytes) -> bytes:
    if len(content) <= 2 * SAMPLE_BYTES:
        return content
    middle = len(content) // 2
    # Cut at line ends, so that no multi-byte character is split.
    head = content[:SAMPLE_BYTES]
    tail = content[middle : middle + SAMPLE_BYTES]
    if head.isascii() and tail.isascii() and (first := _NOT_ASCII.search(content)) is not None:
        # ASCII is the same in nearly all encodings.
        tail = content[first.start() - SAMPLE_BYTES // 2 : first.start() + SAMPLE_BYTES // 2]
    return head[: head.rfind(b"\n") + 1 or None] + tail[tail.find(b"\n") + 1 :][: tail.rfind(b"\n") + 1 or None]


def _wide(content: bytes) -> str | None:
    """Detect UTF-16 or UTF-32 without a mark by the positions of zero bytes, confirmed by the decoded text."""
    sample = content[:4096]
    if len(sample) < 4 or 0 not in sample:
        return None
    if len(content) % 4 == 0:
        zeros = [sample[place::4].count(0) * 4 / len(sample) for place in range(4)]
        if zeros[2] > 0.9 and zeros[3] > 0.9:
            return _readable(sample, "utf-32-le")
        if zeros[0] > 0.9 and zeros[1] > 0.9:
            return _readable(sample, "utf-32-be")
    if len(content) % 2:
        return None
    even, odd = sample[0::2].count(0), sample[1::2].count(0)
    if max(even, odd) > len(sample) / 8 and max(even, odd) > 4 * min(even, odd):
        return _readable(sample, "utf-16-le" if odd > even else "utf-16-be")
    plain = sum(1 for byte in sample if 32 <= byte < 127 or byte in b"\t\n\r\x00")
    if plain > 0.95 * len(sample) or len(sample) < 16:
        # Pairs of ASCII letters are Chinese characters in UTF-16: this is ASCII with a stray zero byte.
        return None
    readable = [order for order in ("utf-16-le", "utf-16-be") if _readable(sample, order)]
    return max(readable, key=lambda order: len(_SEPARATORS.findall(sample.decode(order, "replace"))), default=None)


_OUT_OF_PLACE = re.compile(
    r"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f\x7f-\x9f\ufffd\ue000-\uf8ff\ua000-\uabff\u1200-\u1dff\u2c00-\u2fff]"
)
"""control characters, private use, and scripts that hardly any text uses"""


_SEPARATORS = re.compile(r"[ \n,.、。，\u3000]")
"""separators; of two byte orders that both give common characters, the right one gives these"""


def _readable(sample: bytes, encoding: str) -> str | None:
    """Return the encoding if the sample reads as text in it."""
    text = sample[: len(sample) // 4 * 4].decode(encoding, "replace").removesuffix("\ufffd")
    return encoding if len(_OUT_OF_PLACE.findall(text)) <= len(text) * 0.02 else None


def _refuse_binary(content: bytes) -> None:
    sample = _sample(content)
    shown = without_codes(sample)
    control = len(shown) - len(shown.translate(None, _CONTROL_BYTES))
    if control > max(2, len(sample) * _MAX_CONTROL_SHARE):
        raise BrokenDocument("damaged", f"not text: {control} of {len(sample)} bytes are control characters")


def _mostly_utf8(sample: bytes) -> bool:
    """Return True for UTF-8 with only a few bad bytes: cut off, or with a passage pasted in another encoding."""
    text = sample.decode("utf-8", "replace")
    bad = text.count("\ufffd")
    good = sum(1 for character in text if character > "\x7f") - bad
    return good >= 4 * bad


def _detect(sample: bytes, declared: str | None) -> str:
    # Lines of ASCII alone are the same in every candidate, and weigh towards English.
    telling = b"\n".join(line for line in sample.split(b"\n") if not line.isascii())
    found = _likeliest(telling)
    western = _strict(sample, "cp1252")
    if found is not None and western is not None and western == _strict(sample, found):
        return "cp1252"
    for candidate in (_WIDER.get(found or ""), _codec(found), found, declared):
        if candidate is not None and candidate not in ("ascii", "utf-8") and _strict(sample, candidate) is not None:
            return candidate
    return _codec(found) or "cp1252"


def _likeliest(telling: bytes) -> str | None:
    """Return what chardet finds, unless few bytes speak for it and they become letters where no letter stands."""
    from chardet import EncodingEra

    found, confidence = _candidates(telling)
    if confidence > _MUCH or not found:
        return found[0] if found else None
    western = _strict(telling, "cp1252")
    if western is not None and not misplaced(western[:_SHOWN]) and (is_only_signs(western) or confidence < _LEAST):
        return "cp1252"
    if confidence < _LITTLE:
        found = _candidates(telling, EncodingEra.MODERN_WEB | EncodingEra.LEGACY_ISO, _RARE)[0] + found
    likely = (name for place, name in enumerate(found) if place == 0 or name not in _RARE)
    return next((name for name in likely if _is_in_place(telling, name)), found[0])


def _candidates(
    telling: bytes, eras: EncodingEra | None = None, without: tuple[str, ...] = ()
) -> tuple[list[str], float]:
    """Return the encodings that chardet holds for possible, the likeliest first, and its confidence in that one."""
    from chardet import EncodingEra, detect_all

    found = detect_all(
        telling,
        compat_names=False,
        max_bytes=len(telling),
        encoding_era=EncodingEra.ALL if eras is None else eras,
        exclude_encodings=without or None,
    )
    return [each["encoding"] for each in found if each["encoding"] is not None], found[0]["confidence"]


def _is_in_place(telling: bytes, encoding: str) -> bool:
    text = _strict(telling, encoding)
    # In encodings of several bytes, hardly any other text is valid.
    return text is not None and (len(text) < len(telling) or not misplaced(text[:_SHOWN]))


def _escaped(content: bytes) -> tuple[str, str] | None:
    """Decode the encodings that consist of ASCII: ISO-2022 with its escape sequences, and HZ with its braces."""
    for mark, encoding in _ESCAPED:
        if mark.search(content, 0, SAMPLE_BYTES) and (text := _strict(content, encoding)) is not None:
            return text, encoding.removesuffix("_2")
    if _ESCAPED_GB.search(content, 0, SAMPLE_BYTES) and content.isascii():
        text = _strict(content, "hz")
        wide = [character for character in text or "" if character > "\x7f"]
        # `~{` occurs in programs too, but then pairs of other signs follow than those of common characters.
        if text is not None and wide and all(_is_common_chinese(character) for character in wide):
            return text, "hz"
    return None


def _is_common_chinese(character: str) -> bool:
    lead = character.encode("gb2312", "replace")[0]
    return lead in _COMMON_LEADS


def is_ebcdic(content: bytes) -> bool:
    """Return True for text of mainframes, in which the space is 0x40 and letters are above 0x80."""
    sample = content[:_EBCDIC_SAMPLE]
    if len(sample) < _EBCDIC_LEAST or sample.count(0x40) < len(sample) / 25 or sample.count(0x20) > len(sample) / 100:
        return False
    return len(sample) - len(sample.translate(None, _EBCDIC_TEXT)) > 0.85 * len(sample)


def _ebcdic(content: bytes) -> str:
    from chardet import detect

    found = detect(_sample(content), compat_names=False, include_encodings=_MAINFRAME)["encoding"]
    return found if found in _MAINFRAME else "cp037"
