"""Text is the same for every encoding of the file."""

from __future__ import annotations

import codecs
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parquetry.errors import BrokenDocument
from parquetry.extract.encoding import SAMPLE_BYTES, decode, replaced

TEXTS = {
    "french": "Les élèves étaient déjà arrivés à l'école où l'été s'achève; le cœur léger, ça coûte cher.\n",
    "german": "Grüße aus München: die Straße führt über die Brücke, äußerst schön.\n",
    "polish": "Zażółć gęślą jaźń. Wszyscy ludzie rodzą się wolni i równi pod względem swej godności i praw.\n",
    "czech": "Všichni lidé rodí se svobodní a sobě rovní co do důstojnosti a práv. Jsou nadáni rozumem.\n",
    "russian": "Все люди рождаются свободными и равными в своем достоинстве и правах. Они наделены разумом.\n",
    "greek": "Όλοι οι άνθρωποι γεννιούνται ελεύθεροι και ίσοι στην αξιοπρέπεια και τα δικαιώματα.\n",
    "hebrew": "כל בני האדם נולדו בני חורין ושווים בערכם ובזכויותיהם.\n",
    "arabic": "يولد جميع الناس أحرارا متساوين في الكرامة والحقوق. وقد وهبوا عقلا وضميرا\n",
    "turkish": "Bütün insanlar hür, haysiyet ve haklar bakımından eşit doğarlar. Akıl ve vicdana sahiptirler.\n",
    "thai": "มนุษย์ทั้งหลายเกิดมามีอิสระและเสมอภาคกันในเกียรติศักดิ์และสิทธิ\n",
    "japanese": "すべての人間は、生まれながらにして自由であり、かつ、尊厳と権利とについて平等である。\n",
    "simplified": "人人生而自由，在尊严和权利上一律平等。他们赋有理性和良心，并应以兄弟关系的精神相对待。\n",
    "traditional": "人人生而自由，在尊嚴和權利上一律平等。他們賦有理性和良心，並應以兄弟關係的精神相對待。\n",
    "hungarian": "Az őszi esőzések miatt a folyó szintje tíz év óta először közelítette meg az árvízi küszöböt.\n",
    "romanian": "Şedinţa de mâine începe la ora nouă; vă rugăm să aduceţi rapoartele şi facturile semnate.\n",
    "slovak": "Ďalšia správa o štvrťročných výsledkoch vyjde až začiatkom mája, keď ju schváli predstavenstvo.\n",
    "slovene": "Če želite podaljšati naročnino, izpolnite obrazec in ga pošljite na naš naslov še ta teden.\n",
    "croatian": "Zračna luka bit će zatvorena zbog održavanja; putnici će o promjenama biti obaviješteni porukom.\n",
    "lithuanian": "Šiais metais įmonė pasiekė geriausių rezultatų ir įdarbino dar keturiasdešimt žmonių.\n",
    "latvian": "Lūdzu, pārbaudiet, vai ierīce ir izslēgta, pirms noņemat vāciņu un nomaināt bojāto detaļu.\n",
    "ukrainian": "Щойно міст відремонтують, автобуси знову їздитимуть через річку щопівгодини, а не щогодини.\n",
    "bulgarian": "Договорът влиза в сила от първия ден на следващия месец, след като бъде подписан от двете страни.\n",
    "serbian": "Библиотека је отворена сваког дана осим недеље, а књиге се могу вратити и преко шалтера.\n",
    "danish": "Mødet er udsat til på tirsdag, fordi så mange af deltagerne først når frem med færgen om aftenen.\n",
    "portuguese": "A reunião começará às nove; não se esqueça de trazer as autorizações e três cópias do orçamento.\n",
    "korean": "모든 인간은 태어날 때부터 자유로우며 그 존엄과 권리에 있어 동등하다.\n",
}
LEGACY = [
    ("french", "cp1252"), ("french", "cp850"), ("german", "cp1252"), ("german", "mac_roman"), ("polish", "cp1250"),
    ("polish", "iso8859_2"), ("czech", "cp1250"), ("russian", "koi8_r"), ("russian", "cp1251"), ("russian", "cp866"),
    ("greek", "cp1253"), ("hebrew", "cp1255"), ("arabic", "cp1256"), ("turkish", "cp1254"), ("thai", "cp874"),
    ("japanese", "cp932"), ("japanese", "euc_jp"), ("japanese", "iso2022_jp"), ("simplified", "gb18030"),
    ("simplified", "gb2312"), ("simplified", "hz"), ("traditional", "big5"), ("korean", "cp949"),
    ("korean", "iso2022_kr"), ("korean", "johab"),
    ("hungarian", "cp1250"), ("hungarian", "iso8859_2"), ("hungarian", "cp852"), ("hungarian", "mac_latin2"),
    ("romanian", "cp1250"), ("romanian", "iso8859_2"), ("slovak", "cp1250"), ("slovak", "iso8859_2"),
    ("slovene", "cp1250"), ("slovene", "cp852"), ("croatian", "cp1250"), ("croatian", "iso8859_2"),
    ("czech", "iso8859_2"), ("czech", "cp852"), ("polish", "cp852"), ("polish", "mac_latin2"),
    ("lithuanian", "cp1257"), ("latvian", "cp1257"), ("latvian", "iso8859_13"), ("latvian", "cp775"),
    ("ukrainian", "cp1251"), ("ukrainian", "koi8_u"), ("bulgarian", "cp1251"), ("serbian", "cp1251"),
    ("russian", "iso8859_5"), ("russian", "mac_cyrillic"), ("greek", "iso8859_7"), ("greek", "cp737"),
    ("turkish", "cp857"), ("turkish", "iso8859_9"), ("hebrew", "cp862"), ("arabic", "iso8859_6"), ("arabic", "cp720"),
    ("danish", "cp1252"), ("danish", "cp850"), ("danish", "cp500"), ("portuguese", "cp850"), ("portuguese", "cp500"),
    ("german", "cp437"), ("german", "cp273"),
]  # fmt: skip


@pytest.mark.parametrize(("language", "encoding"), LEGACY, ids=[f"{one}-{other}" for one, other in LEGACY])
@pytest.mark.parametrize("lines", [1, 30])
def test_legacy_text_without_any_hint_is_read_in_its_encoding(language: str, encoding: str, lines: int) -> None:
    text = TEXTS[language].replace("œ", "oe") * lines
    assert decode(text.encode(encoding))[0] == text


@pytest.mark.parametrize(
    "text",
    [
        "name;price\nTable;12 €\nChair;9 €\n",
        "Price: £12.50\nVAT: £2.50\n",
        "It’s five o’clock, and we don’t know.\n",
        "“Hello,” she said – and went.\n",
        "The plan—if there is one—isn’t known.\n",
        "Prix : 12\xa0000 €\n",
        "21 °C, 40 % ± 2\n",
        "© 2020 Acme\n• 25 µm, 12 m²\n",
        "10 € pro Stück, 20 € im Set\n",
        "Straße 12\n",
        "El Niño\n",
        "Århus\n",
        "…and then\n",
    ],
)
@pytest.mark.parametrize("lines", [1, 300])
def test_few_signs_of_western_texts_do_not_become_letters_of_others(text: str, lines: int) -> None:
    """Lists of prices, and English with its apostrophes, have next to nothing that statistics of letters can use."""
    assert decode((text * lines).encode("cp1252"))[0] == text * lines


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("Było ładnie", "cp1250"), ("żona i mąż", "iso8859_2"), ("schön", "cp850"), ("corazón", "mac_roman"),
        ("Jiří Dvořák", "cp1250"), ("да", "cp1251"), ("Банк", "cp866"),
    ],
)  # fmt: skip
def test_few_letters_of_other_texts_do_not_become_signs(text: str, encoding: str) -> None:
    western = text.encode(encoding).decode("cp1252", "replace")
    assert decode(text.encode(encoding))[0] != western or western == text


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
@pytest.mark.parametrize("mark", [True, False], ids=["with mark", "without mark"])
@pytest.mark.parametrize("language", TEXTS)
def test_unicode_text_is_read_with_and_without_its_mark(language: str, mark: bool, encoding: str) -> None:
    text = TEXTS[language] * 3
    assert decode((("\ufeff" if mark else "") + text).encode(encoding)) == (text, encoding)


def test_letters_far_into_a_file_decide_its_encoding() -> None:
    text = "key=value of plain letters\n" * (SAMPLE_BYTES // 8) + TEXTS["polish"]
    assert decode(text.encode("cp1250"))[0] == text


@pytest.mark.parametrize("name", ["cp037", "cp500", "cp1140"])
def test_text_of_a_mainframe_is_read_and_its_encoding_named(name: str) -> None:
    text = "Customer 4711, Smith and Sons: invoice of 12 March is open, 1,234.56 due.\x85" * 5
    decoded, encoding = decode(text.encode(name))
    assert decoded == text
    assert encoding in ("cp037", "cp500", "cp1140")


@pytest.mark.parametrize("text", ["~{code~} in braces", "a ~{b} c", "path ~{ab~}/x"])
def test_braces_of_programs_are_not_chinese(text: str) -> None:
    assert decode(text.encode()) == (text, "utf-8")


def test_a_csv_of_few_kanji_is_shift_jis() -> None:
    text = "名前,年齢,住所\n佐藤太郎,30,東京\n三木英子,25,大阪\n"
    assert decode(text.encode("cp932")) == (text, "cp932")


def test_a_fitting_hint_decides_between_encodings_that_look_alike() -> None:
    text = "Îáîé"
    assert decode(text.encode("cp1251", "ignore") or text.encode("cp1252"), "windows-1252")[1] == "cp1252"
    assert decode("Обои".encode("cp1251"), "windows-1251") == ("Обои", "cp1251")


@pytest.mark.parametrize("hint", ["iso-8859-1", "nonsense", "hex", "", "utf-8", "shift_jis"])
def test_a_hint_that_does_not_fit_is_not_believed(hint: str) -> None:
    assert decode(TEXTS["japanese"].encode(), hint)[0] == TEXTS["japanese"]


def test_latin_1_means_windows_1252_as_in_browsers() -> None:
    assert decode(b"\x93quoted\x94 \x80 5", "iso-8859-1")[0] == "“quoted” € 5"


def test_utf_8_with_one_bad_byte_stays_utf_8_and_the_loss_is_reported() -> None:
    content = TEXTS["german"].encode() * 5 + b"\xff"
    text, encoding = decode(content)
    assert encoding == "utf-8"
    assert text == TEXTS["german"] * 5 + "\ufffd"
    assert replaced(content, text, encoding) == ("1 character could not be decoded as utf-8, and replaced",)


def test_a_replacement_sign_in_the_content_itself_is_no_loss() -> None:
    content = "the sign \ufffd itself".encode()
    assert replaced(content, *decode(content)) == ()


def test_a_big_file_is_told_by_samples_and_decoded_whole() -> None:
    text = "plain line\n" * (SAMPLE_BYTES // 4) + TEXTS["french"].replace("œ", "oe")
    text = TEXTS["french"].replace("œ", "oe") + text
    assert decode(text.encode("cp1252")) == (text, "cp1252")


@pytest.mark.parametrize("size", [200, 1000, 50_000])
def test_binary_content_is_damaged(size: int) -> None:
    with pytest.raises(BrokenDocument) as caught:
        decode(random.Random(size).randbytes(size))
    assert caught.value.reason == "damaged"


def test_ascii_with_a_stray_zero_byte_is_not_utf_16() -> None:
    assert decode(b"name=value\x00; other=thing more!")[0].startswith("name=value")


def test_nothing_is_nothing() -> None:
    assert decode(b"") == ("", "utf-8")
    assert decode(codecs.BOM_UTF8) == ("", "utf-8")


@given(st.text(alphabet=st.characters(exclude_categories=["Cs", "Cc"]), max_size=300))
def test_any_utf_8_text_round_trips(text: str) -> None:
    assert decode(text.encode())[0] == text.removeprefix("\ufeff")
