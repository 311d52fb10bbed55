"""Sentences of many languages in the encodings that they were written in."""

from __future__ import annotations

from dataclasses import dataclass

SENTENCES = {
    "cs": (
        "Příliš žluťoučký kůň úpěl ďábelské ódy. Vážení zákazníci, oznamujeme vám změnu otevírací doby "
        "naší pobočky v Brně."
    ),
    "pl": (
        "Zażółć gęślą jaźń. Szanowni Państwo, informujemy, że siedziba spółki została przeniesiona do "
        "Łodzi przy ulicy Piotrkowskiej."
    ),
    "hu": (
        "Árvíztűrő tükörfúrógép. Tisztelt Ügyfelünk, értesítjük, hogy a szerződés felmondási ideje három "
        "hónap, kivéve az őszi időszakot."
    ),
    "sk": (
        "Kŕdeľ šťastných ďatľov učí pri ústí Váhu mĺkveho koňa obhrýzať kôru. Vážený zákazník, faktúra "
        "je splatná do štrnástich dní."
    ),
    "hr": (
        "Gojazni đačić s biciklom drži hmelj i finu vatu u džepu nošnje. Poštovani, račun dospijeva u "
        "roku od četrnaest dana."
    ),
    "sl": ("V kožuščku hudobnega fanta stopiclja mizar. Spoštovani, račun zapade v štirinajstih dneh od prejema."),
    "ro": ("Stimaţi clienţi, vă informăm că factura este scadentă în paisprezece zile de la primirea ei în Bucureşti."),
    "de": (
        "Sehr geehrte Damen und Herren, die Gebühr für das Gerät beträgt fünf Mark. Größere Mengen "
        "müssen früher bestellt werden."
    ),
    "fr": (
        "Cher client, nous vous informons que la facture doit être payée dans un délai de quatorze jours "
        "après réception à l'école."
    ),
    "es": ("Señores, la reunión del año próximo será en España. El niño comió piñas mañana también según el menú."),
    "da": ("Kære kunde, åbningstiderne ændres i næste måned. Vi er lukket på grund af færdiggørelse af gården."),
    "ru": "Уважаемые господа, сообщаем вам, что счёт должен быть оплачен в течение четырнадцати дней.",
    "el": ("Αγαπητοί πελάτες, σας ενημερώνουμε ότι το τιμολόγιο πρέπει να εξοφληθεί εντός δεκατεσσάρων ημερών."),
    "tr": (
        "Sayın müşterimiz, faturanın on dört gün içinde ödenmesi gerektiğini bildiririz. Şubemiz İzmir'de açılmıştır."
    ),
    "ko": "안녕하십니까. 계약 해지 통지 기간은 삼 개월이며 서면으로 통보하여야 합니다.",
    "ja": "契約の解約通知期間は三か月です。書面で通知してください。",
    "he": "לקוחות יקרים, אנו מודיעים כי יש לשלם את החשבונית בתוך ארבעה עשר ימים.",
    "ar": "عملاءنا الكرام، نحيطكم علما بأنه يجب دفع الفاتورة خلال أربعة عشر يوما.",
    "en": (
        "Dear customer, the notice period is three months. Invoices are payable within fourteen days of "
        "receipt, as per the contract (2019)."
    ),
    "lt": "Gerbiami klientai, pranešame, kad sąskaita turi būti apmokėta per keturiolika dienų nuo gavimo.",
    "nl": (
        "Geachte klant, wij delen u mede dat de coördinatie van financiële zaken via België verloopt, één per maand."
    ),
}
"""language -> two sentences of a letter to customers"""
_ENCODINGS = {
    "cs": "cp1250 iso8859_2 cp852 mac_latin2",
    "pl": "cp1250 iso8859_2 cp852 mac_latin2",
    "hu": "cp1250 iso8859_2 cp852 mac_latin2",
    "sk": "cp1250 iso8859_2 cp852 mac_latin2",
    "hr": "cp1250 iso8859_2 cp852 mac_latin2",
    "sl": "cp1250 iso8859_2 cp852 mac_latin2",
    "ro": "cp1250 iso8859_2 cp852 mac_latin2",
    "de": "cp1252 iso8859_15 cp850 cp437 mac_roman cp500 cp273",
    "fr": "cp1252 iso8859_15 cp850 cp437 mac_roman cp500 cp037",
    "es": "cp1252 iso8859_15 cp850 cp437 mac_roman cp500 cp037",
    "da": "cp1252 iso8859_15 cp850 cp865 mac_roman cp500",
    "nl": "cp1252 iso8859_15 cp850 mac_roman cp500",
    "ru": "cp1251 koi8_r iso8859_5 cp866 cp855 mac_cyrillic",
    "el": "cp1253 iso8859_7 cp737 cp869 cp875",
    "tr": "cp1254 iso8859_9 cp857 cp1026",
    "ko": "iso2022_kr cp949 euc_kr johab",
    "ja": "iso2022_jp cp932 euc_jp",
    "he": "cp1255 iso8859_8 cp862",
    "ar": "cp1256 iso8859_6 cp720",
    "lt": "cp1257 iso8859_13 cp775",
    "en": "cp037 cp500",
}
"""language -> encodings"""
_TIMES = (1, 4)
"""repetitions of the sentences, each with a number of its own"""


@dataclass(frozen=True, slots=True)
class EncodedText:
    """A text in one encoding."""

    language: str
    encoding: str
    text: str
    content: bytes


def encoded_texts() -> list[EncodedText]:
    """Return short and longer texts in all encodings, without signs that an encoding lacks."""
    texts = []
    for language, encodings in _ENCODINGS.items():
        for encoding in encodings.split():
            sentence = SENTENCES[language].encode(encoding, "ignore").decode(encoding)
            for times in _TIMES:
                text = "".join(f"{number}. {sentence}\n" for number in range(1, times + 1))
                texts.append(EncodedText(language, encoding, text, text.encode(encoding)))
    return texts
