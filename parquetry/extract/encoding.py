"""Decodes bytes in any encoding to text."""

from __future__ import annotations

import codecs
import re
from collections.abc import Sequence

from parquetry.errors import BrokenDocument
from parquetry.plural import counted

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

_CANDIDATES = (
    "cp932", "gb18030", "euc_jp", "cp949", "big5", "koi8_r", "koi8_u", "cp1251", "cp1250", "cp1252", "cp1253", "cp1254",
    "cp1255", "cp1256", "cp1257", "cp874", "cp437", "cp850", "cp852", "cp866", "mac_roman", "mac_cyrillic",
    "iso8859_2", "iso8859_5", "iso8859_7", "iso8859_15",
)  # fmt: skip
_MULTI_BYTE = ("cp932", "euc_jp", "gb18030", "cp949", "big5")
_ESCAPED = re.compile(rb"\x1b(\$[@B]|\(J|\$\(D)")
_CONTROL_BYTES = bytes({*range(9), *range(14, 27), *range(28, 32), 127})
_MAX_CONTROL_SHARE = 0.03
"""share of control characters above which content is not text; random bytes have 0.1, text next to none"""

_WESTERN_ALPHABETS = tuple(
    frozenset(letters + letters.upper())
    for letters in (
        "éèêëàâçîïôùûüœæÿ", "äöüßéàëïèêóí", "áéíóúñüçàèòïâãêôõªº", "àèéìíòóùú", "åäöæøéüõšž", "áéíóúýþðæö"
    )
)  # fmt: skip
"""accented letters of French; German and Dutch; Spanish, Catalan and Portuguese; Italian; Nordic and Baltic Finnic;
Icelandic"""
_WESTERN_SIGNS = frozenset("‘’“”–—…•€™©®°§«»¿¡·£´±µ²³½¼¾ºª×\u00a0\u00ad†‰‹›„‚¢¥¶¹")
_IN_WORD_SIGN = re.compile(r"(?<=[A-Za-z])[^\w\s'’´·\u00ad\x00-\x7f](?=[a-z])")
_ODD_CASE = re.compile(r"(?<=[a-zà-öø-ÿ])[À-ÖØ-Þ]")


def decode(content: bytes, hint: str | None = None) -> tuple[str, str]:
    """Decode text of unknown encoding.

    In this order: byte order mark, strict UTF-8, UTF-16 and UTF-32 by their zero bytes, the hint, detection. Bytes
    invalid in the chosen encoding become U+FFFD; `replaced` reports them.

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
    if _ESCAPED.search(content, 0, SAMPLE_BYTES) and (text := _strict(content, "iso2022_jp_2")) is not None:
        return text, "iso2022_jp"
    wide = _wide(content)
    if wide is not None:
        return content.decode(wide, "replace"), wide
    if (text := _strict(content, "utf-8")) is not None:
        if b"\x00" in content:
            _refuse_binary(content)
        return text, "utf-8"
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
    control = len(sample) - len(sample.translate(None, _CONTROL_BYTES))
    if control > max(2, len(sample) * _MAX_CONTROL_SHARE):
        raise BrokenDocument("damaged", f"not text: {control} of {len(sample)} bytes are control characters")


def _mostly_utf8(sample: bytes) -> bool:
    """Return True for UTF-8 with only a few bad bytes: cut off, or with a passage pasted in another encoding."""
    text = sample.decode("utf-8", "replace")
    bad = text.count("\ufffd")
    good = sum(1 for character in text if character > "\x7f") - bad
    return good >= 4 * bad


def _detect(sample: bytes, declared: str | None) -> str:
    for western in ("cp1252", "mac_roman", "cp850"):
        if _reads_as_western(sample, western):
            return western
    if (known := _multi_byte(sample) or _by_alphabet(sample)) is not None:
        return known
    from charset_normalizer import from_bytes

    match = from_bytes(sample[:SAMPLE_BYTES], cp_isolation=list(_CANDIDATES), preemptive_behaviour=False).best()
    if match is not None:
        return "cp949" if match.encoding == "euc_kr" else match.encoding
    return declared if declared not in (None, "utf-8", "ascii") else "cp1252"


def _reads_as_western(sample: bytes, encoding: str) -> bool:
    """Return True if the bytes read as Western European: one language's accented letters, signs in plausible places."""
    text = _strict(sample, encoding)
    if text is None:
        return False
    high = [character for character in text if character > "\x7f"]
    accented = [character for character in high if character.isalpha()]
    if any(not character.isalpha() and character not in _WESTERN_SIGNS for character in high):
        return False
    known = max(sum(1 for letter in accented if letter in alphabet) for alphabet in _WESTERN_ALPHABETS)
    odd = len(_IN_WORD_SIGN.findall(text)) + len(_ODD_CASE.findall(text))
    letters = sum(1 for character in text if character.isalpha())
    return known >= 0.75 * len(accented) and len(accented) <= max(1, 0.4 * letters) and odd <= 0.02 * len(high)


def _by_alphabet(sample: bytes) -> str | None:
    """Detect Hebrew and Turkish, which the detector takes for Russian and Icelandic."""
    high = [byte for byte in sample if byte > 127]
    if len(high) >= 8 and all(0xE0 <= byte <= 0xFA for byte in high):
        return "cp1255"
    turkish = _strict(sample, "cp1254")
    if turkish is not None:
        letters = [character for character in turkish if character > "\x7f" and character.isalpha()]
        if letters and all(letter in "çğıöşüÇĞİÖŞÜâîûÂÎÛ" for letter in letters):
            return "cp1254"
    return None


def _multi_byte(sample: bytes) -> str | None:
    """Return the East Asian encoding in which nearly all characters are common ones; None if none fits."""
    scores: list[tuple[float, str]] = []
    for encoding in _MULTI_BYTE:
        text = sample.decode(encoding, "replace")
        wide = [character for character in text if character > "\x7f"]
        if wide and text.count("\ufffd") <= 0.005 * len(wide):
            scores.append((_common_share(wide, encoding), encoding))
    best = max(scores, default=(0.0, ""))
    return best[1] if best[0] >= 0.7 else None


def _common_share(wide: Sequence[str], encoding: str) -> float:
    """Return the share of characters typical of texts in this encoding; kana and Hangul weigh most."""
    points = 0.0
    for character in wide:
        if encoding in ("cp932", "euc_jp"):
            points += 1.0 if "\u3040" <= character <= "\u30ff" else 0.75 if _frequent(character, "shift_jis") else 0
        elif encoding == "cp949":
            points += 1.0 if "\uac00" <= character <= "\ud7a3" and _frequent(character, "euc_kr") else 0
        elif encoding == "gb18030":
            points += 0.85 if _frequent(character, "gb2312") else 0
        else:
            points += 0.85 if _frequent(character, "big5") else 0
        if "\u3000" <= character <= "\u3020" or "\uff01" <= character <= "\uff5e":
            points += 0.5
    return points / len(wide)


_FREQUENT_LEAD = {"gb2312": (0xB0, 0xD7), "big5": (0xA4, 0xC6), "shift_jis": (0x88, 0x97), "euc_kr": (0xB0, 0xC8)}
"""range of lead bytes for each encoding's level of commonly used characters"""


def _frequent(character: str, encoding: str) -> bool:
    try:
        encoded = character.encode(encoding)
    except UnicodeEncodeError:
        return False
    low, high = _FREQUENT_LEAD[encoding]
    return len(encoded) == 2 and low <= encoded[0] <= high
