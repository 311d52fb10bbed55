"""Stems and stop words: grouping by language, and the message about a wrong name."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from parquetry.errors import SettingsError
from parquetry.language.stems import fold, languages, stemmer, stop_words
from parquetry.language.stop_words import STOP_WORDS


@pytest.mark.parametrize(
    ("language", "words"),
    [
        ("english", "refresh refreshed refreshing refreshes"),
        ("german", "haus hauses häuser häusern"),
        ("french", "installer installation installé installée installées"),
        ("spanish", "documento documentos"),
        ("italian", "lavoro lavorare lavorava"),
        ("portuguese", "configurar configuração configurações"),
        ("portuguese", "resistente resistência"),
        ("portuguese", "configurar configurável"),
        ("portuguese", "discutir discutível"),
        ("dutch", "werken werk"),
        ("russian", "новый новая новое новой новые"),
        ("russian", "история истории историю историй"),
        ("swedish", "flicka flickor"),
        ("danish", "bestemmelse bestemmelser bestemmelserne"),
        ("norwegian", "forsikring forsikringen forsikringer"),
        ("finnish", "talossa talosta talolla"),
    ],
)
def test_forms_of_a_word_have_one_stem_although_their_accents_are_folded(language: str, words: str) -> None:
    forms = fold(words).split()
    assert len(set(stemmer(language)(forms))) == 1


def test_stems_come_in_the_order_of_the_words_and_repetitions_stay() -> None:
    assert stemmer("english")(["running", "dogs", "running", "", "sr-2023-052"]) == [
        "run",
        "dog",
        "run",
        "",
        "sr-2023-052",
    ]


def test_no_language_leaves_words_alone() -> None:
    assert stemmer("none")(("running", "dogs")) == ["running", "dogs"]
    assert stop_words("none") == frozenset()


@pytest.mark.parametrize("name", ["klingon", "", "ENGLISH"])
@pytest.mark.parametrize("ask", [stemmer, stop_words])
def test_unknown_language_is_an_error_that_names_the_setting(ask, name: str) -> None:
    with pytest.raises(SettingsError, match=r"search\.language is"):
        ask(name)


def test_misspelled_language_gets_the_nearest_name_and_another_one_all_names() -> None:
    with pytest.raises(SettingsError, match="did you mean 'german'"):
        stemmer("germna")
    with pytest.raises(SettingsError, match=r"choose one of: .*english.*none"):
        stemmer("xx")


def test_every_language_that_is_offered_has_a_stemmer() -> None:
    assert len(languages()) > 20
    for language in languages():
        assert stemmer(language)(["a"]) == ["a"]


def test_many_threads_get_the_stems_that_one_gets() -> None:
    words = [f"{start}{end}" for start in ("refresh", "index", "publish") for end in ("", "ed", "ing", "es")] * 50
    alone = stemmer("english")(words)
    with ThreadPoolExecutor(8) as pool:
        assert all(stems == alone for stems in pool.map(stemmer("english"), [words] * 64))


@pytest.mark.parametrize("language", STOP_WORDS)
def test_stop_words_are_a_list_of_a_known_language_folded_as_tokens_are(language: str) -> None:
    words = stop_words(language)
    assert language in languages()
    assert len(words) > 80
    assert all(word == fold(word) and word.isalpha() for word in words)


@pytest.mark.parametrize(
    ("language", "question", "subject"),
    [
        ("english", "how do I reset my password and what doesn t work", {"reset", "password", "work"}),
        ("german", "Wie kann ich mein Passwort zurücksetzen und welche Frist gilt für mich", 4),
        ("french", "Comment puis je changer le mot de passe de l utilisateur", 5),
        ("spanish", "¿Cómo puedo cambiar la contraseña de mi usuario?", 4),
        ("italian", "Come posso cambiare la password dell utente", 4),
        ("portuguese", "Como é que eu posso mudar a senha do usuário", 4),
        ("dutch", "Hoe kan ik het wachtwoord van mijn gebruiker wijzigen", 3),
        ("russian", "Как мне изменить пароль и где он хранится", 3),
        ("swedish", "Hur kan jag byta mitt lösenord och vilka regler finns", 4),
        ("danish", "Hvordan kan jeg skifte min adgangskode", 2),
        ("norwegian", "Hvordan kan jeg bytte mitt passord", 2),
        ("finnish", "Miten voin vaihtaa salasanan ja missä se on", 3),
    ],
)
def test_of_a_question_only_its_subject_is_left(language: str, question: str, subject: object) -> None:
    words = set(fold(question).replace("¿", "").replace("?", "").split())
    left = words - stop_words(language)
    assert left == subject if isinstance(subject, set) else len(left) <= subject


def test_words_that_name_things_are_no_stop_words() -> None:
    named = {"first", "name", "state", "system", "time", "year", "use", "get", "one", "two", "need"}
    assert not named & stop_words("english")
