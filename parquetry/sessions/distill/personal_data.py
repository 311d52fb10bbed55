"""Detection of personal data by its form: it must not be shown to others, whatever the model judged."""

from __future__ import annotations

import re
import unicodedata
from typing import Literal

PersonalKind = Literal["e-mail address", "phone number", "card number", "account number", "social security number"]

_EMAIL = re.compile(
    r"(?<![\w.+/-])[\w.+'-]{1,64}(?:@|\s?[(\[]at[)\]]\s?)"
    r"(?:[\w-]{1,63}(?:\.|\s?[(\[]dot[)\]]\s?)){1,5}(?P<top>[^\W\d_]{2,24})\b(?!\.\w)"
)
_NO_MAIL = {"service", "socket", "timer", "target", "mount", "slice", "scope", "path", "device", "swap"}
"""endings of systemd units: `getty@tty1.service`"""
_CARD = re.compile(r"(?<![\w.,-])(?:\d[ -]?){12,18}\d(?![\w-])")
_IBAN = re.compile(r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?\b")
_SSN = re.compile(r"(?<![\w-])(?!000|666|9\d\d)\d{3}-(?!00)\d{2}-(?!0000)\d{4}(?![\w-])")
_PHONE_WORD = re.compile(
    r"(?i)\b(?:tel|phones?|telephone|mobile|cell|fax|whatsapp|sms|hotline|landline|handy(?:nummer)?|telefon\w*|durchwahl|"
    r"rufnummer|téléphone|portable|móvil|teléfono|celular|cellulare|telefoon|номер|телефон\w*)\b|电话|手机|電話|携帯"
)
_CALL_WORD = re.compile(r"(?i)\b(?:call|text|ring|reach|signal|anrufen|appeler|llamar|llámame|chiamare)\b")
"""weak cue: the number after it has to be written as telephone numbers are"""
_NEAR = 40
"""maximum characters between a word for a phone and the number that it marks"""
_SHORTEST = 6
"""minimum digits of a number without country code; fewer are an extension or something else"""
_REGIONS = ("US", "GB", "DE", "FR", "ES", "IT", "NL", "IN", "CN", "JP", "BR", "AU")
"""regions with known formats of numbers without country code; most people with a phone live there"""


def personal_data(text: str) -> tuple[PersonalKind, ...]:
    """Return the kinds of personal data in a text, each once.

    Names and addresses have no recognisable form; for them, the prompt requires that statements about a person are
    individual. Credentials have their own module.
    """
    text = unicodedata.normalize("NFKC", text)
    found: list[PersonalKind] = []
    if any(match["top"].lower() not in _NO_MAIL and not _is_remote(text, match) for match in _EMAIL.finditer(text)):
        found.append("e-mail address")
    if any(_luhn(re.sub(r"\D", "", match[0])) for match in _CARD.finditer(text)):
        found.append("card number")
    if any(_iban(match[0].replace(" ", "")) for match in _IBAN.finditer(text)):
        found.append("account number")
    if _SSN.search(text):
        found.append("social security number")
    if "card number" not in found and _has_phone(text):
        found.append("phone number")
    return tuple(found)


def _is_remote(text: str, match: re.Match[str]) -> bool:
    """Return True for a remote path such as `git@host.org:path`."""
    return text[match.end() : match.end() + 1] == ":" and not text[match.end() + 1 : match.end() + 2].isspace()


def _luhn(digits: str) -> bool:
    """Return True for the digits of a payment card: a valid issuer and check digit.

    Source: ISO/IEC 7812-1, annex B.
    """
    if digits[0] not in "23456" or len(set(digits)) < 2:
        return False
    doubled = (int(digit) * (1 + place % 2) for place, digit in enumerate(reversed(digits)))
    return sum(value - 9 * (value > 9) for value in doubled) % 10 == 0


def _iban(account: str) -> bool:
    """Return True if the check digits of an account number are valid.

    Source: ISO 13616.
    """
    if not 15 <= len(account) <= 34:
        return False
    return int("".join(str(int(letter, 36)) for letter in account[4:] + account[:4])) % 97 == 1


def _has_phone(text: str) -> bool:
    import phonenumbers
    from phonenumbers import Leniency, PhoneNumberMatcher

    if any(True for _ in PhoneNumberMatcher(text, None, leniency=Leniency.VALID)):
        return True
    if not _PHONE_WORD.search(text) and not _CALL_WORD.search(text):
        return False
    for region in _REGIONS:
        for match in PhoneNumberMatcher(text, region, leniency=Leniency.POSSIBLE):
            before = text[max(0, match.start - _NEAR) : match.start]
            digits = len(phonenumbers.national_significant_number(match.number))
            grouped = match.raw_string.startswith("0") or not match.raw_string.isdigit()
            valid = phonenumbers.is_valid_number(match.number)
            if _PHONE_WORD.search(before) and digits >= _SHORTEST and (grouped or valid):
                return True
            if _CALL_WORD.search(before) and digits > _SHORTEST and grouped and valid:
                return True
    return False
