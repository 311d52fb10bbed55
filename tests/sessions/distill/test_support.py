"""Exact details of a statement must occur in its evidence, and its subject must occur near it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parquetry.sessions.distill.learn import Distilled
from parquetry.sessions.distill.passages import passage
from parquetry.sessions.distill.support import unsupported
from tests.servers.chat_server import ChatServer, said_json
from tests.sessions.asking import KILN, DirectAsker, learned, message, proposal

DAY = datetime(2026, 3, 4, tzinfo=UTC)


def objection(statement: str, *evidence: str, said: tuple[str, ...] = ()) -> str | None:
    return unsupported(statement, evidence, said, DAY)


# --- exact details


@pytest.mark.parametrize(
    ("statement", "evidence", "missing"),
    [
        ("Walnut is dried in kiln 4.", "Kiln 3 dries walnut, always.", "number 4"),
        ("Walnut dries for twelve days.", "Walnut dries for 10 days.", "number 12 d"),
        ("The timeout is 30 seconds.", "Set the timeout to 30 minutes.", "number 30 s"),
        ("At most 5 boards fit in.", "At least 5 boards fit in.", "number <= 5"),
        ("The saw was bought in 2019.", "The saw was bought in 2021.", "number 2019"),
        ("The release is on 6 March 2026.", "The release is on March 5th.", "date 2026-03-06"),
        ("The release is on 2026-03-06.", "The release is on 2026-03-05.", "date 2026-03-06"),
        ("The kiln is cleaned on Tuesdays.", "The kiln is cleaned every Monday.", "date tuesday"),
        ("The kiln is lit at 3 pm.", "The kiln is lit at 2 pm.", "date 15:00"),
        ("The kiln is looked after by Grace.", "The kiln is looked after by Ada.", "name grace"),
        ("Grace looks after the kiln.", "Ada looks after the kiln.", "name grace"),
        ("Reports are written with LaTeX.", "Reports are written with Typst.", "name latex"),
        ("Deploys call `make ship`.", "Deploys call make release.", '"make ship"'),
        ('The label says "fragile".', "The label says heavy.", '"fragile"'),
        ("The test calls load_test at the end.", "The test calls load_tests_all at the end.", "identifier load_test"),
        ("Logs are in /var/log/kiln.", "Logs are in /var/log/saw.", "identifier /var/log/kiln"),
        ("The page is https://a.example/x.", "The page is https://a.example/y.", "identifier https://a.example/x"),
        ("The order is SR-2023-053.", "The order is SR-2023-052.", "identifier SR-2023-053"),
    ],
)
def test_what_stands_not_in_the_evidence_is_named(statement: str, evidence: str, missing: str):
    found = objection(statement, evidence)
    assert found is not None
    assert missing in found


@pytest.mark.parametrize(
    ("statement", "evidence"),
    [
        ("Two kilns are used.", "we have 2 kilns in use"),
        ("2 kilns are used.", "we have two kilns in use"),
        ("The archive has 1,200 boards.", "there are 1200 boards in the archive"),
        ("The timeout is 30 seconds.", "set the timeout to 30s"),
        ("The timeout is 30 seconds.", "set the timeout to 30"),
        ("At least five boards fit in.", "a minimum of 5 boards fits in"),
        ("Python 3.12 is used.", "we use python3.12 everywhere, python 3.12"),
        ("Postgres 16 is used in production.", "production uses PostgreSQL 16"),
        ("U.S. orders are shipped by sea.", "orders to the US are shipped by sea"),
        ("Deployment runs on Friday.", "we deploy on Friday, it runs then"),
        ("APIs are described in OpenAPI.", "every API is described in openapi"),
        ("The release is on 5 March 2026.", "the release is on March 5th"),
        ("The release is on 2026-03-05.", "the release is on 5 March"),
        ("The release is on 2026-03-05.", "the release is tomorrow"),
        ("The kiln was bought in 2025.", "the kiln was bought last year"),
        ("The kiln is lit at 14:00.", "the kiln is lit at 2 pm"),
        ("The kiln is cleaned weekly.", "the kiln is cleaned every week"),
        ("Deploys call `make ship`.", "just run make ship, deploys call it"),
        ("Deploys call “make ship”.", 'deploys call "make  ship"'),
        ("Builds call load_test().", "the builds call `load_test` first"),
        ("CI/CD runs on Friday.", "our CI and our CD run on Friday"),
        ("The User likes walnut.", "I like walnut"),
        ("User 1 likes walnut.", "I like walnut"),
        ("Load tests of the billing service are run with k6.", "we run load tests for billing with k6 these days"),
        ("The importer fails on empty lines.", "ah, the importer failed because there were empty lines"),
        ("Die Glasur wird bei 1240 °C gebrannt.", "Wir brennen die Glasur immer bei 1240°C."),
        ("窯は月曜日に掃除します", "はい、窯は月曜日に掃除しますね"),
    ],
)
def test_other_spellings_of_the_same_are_the_same(statement: str, evidence: str):
    assert objection(statement, evidence) is None


def test_a_name_may_stand_anywhere_in_the_session_because_a_statement_has_names_instead_of_pronouns():
    statement, evidence = "Grace fires the kiln on Mondays.", "She fires the kiln on Mondays."
    assert objection(statement, evidence) is not None
    assert objection(statement, evidence, said=("Ask Grace about it.",)) is None


# --- subject


@pytest.mark.parametrize(
    "statement",
    [
        "You might use the method to test a feature that is running.",
        "Eating less meat is better for the climate.",
        "The user has a sister who teaches music.",
    ],
)
def test_a_content_that_is_about_something_else_is_refused_with_its_figures(statement: str):
    found = objection(statement, "Kiln 3 dries walnut, always. We settled on that after the spring.")
    assert found is not None
    assert "something else" in found
    assert "%" in found


def test_words_between_other_sentences_are_found():
    long = "We spoke of the weather. " * 200
    assert objection("Walnut is dried in kiln 3.", f"{long} Kiln 3 dries walnut, always. {long}") is None


def test_a_message_without_a_sentence_supports_nothing():
    assert objection("Walnut is dried.", "...") is not None
    assert objection("Walnut is dried.", "") is not None


@given(st.text(max_size=80), st.text(max_size=200))
def test_any_text_is_decided_about(statement: str, evidence: str):
    found = objection(statement, evidence)
    assert found is None or found


@pytest.mark.parametrize("piece", ["not. ", "a ", "7 ", "`", '"', "/a", "?", "one two three ", "2026-03-05 ", "窯"])
def test_long_evidence_is_read_in_time_that_grows_with_its_length(piece: str):
    """Comparing each word with all later ones took minutes for a long message of numbers."""
    long = piece * (50_000 // len(piece))
    assert passage(long).folded
    objection("Walnut is dried in kiln 3 of `hall_2`.", long)


# --- in a reply


def refused(*proposals: dict[str, Any], **options: Any) -> list[tuple[str, str]]:
    found = distilled(*proposals, **options)
    assert found.drafts == ()
    return [(refusal.reason, refusal.text) for refusal in found.refusals]


def distilled(*proposals: dict[str, Any], **options: Any) -> Distilled:
    with ChatServer([said_json({"entries": list(proposals)})]) as server:
        return learned(DirectAsker(server), **options)


def test_what_nobody_said_is_refused_as_unsupported_and_small_talk_as_no_knowledge():
    invented = "You might use the `load_test` method to test a feature that is running"
    assert refused(proposal(invented, evidence=["m1"]), proposal("Sure, I can help", evidence=["m1"])) == [
        ("unsupported", invented),
        ("not-knowledge", "Sure, I can help"),
    ]


def test_the_question_that_the_evidence_answers_is_evidence_too():
    talk = (message("a-1", "Do you dry walnut in kiln 3?", "assistant"), message("a-2", "Yes, always."))
    found = distilled(proposal("Walnut is dried in kiln 3."), messages=talk)
    assert [draft.evidence for draft in found.drafts] == [("a-2",)]


def test_what_stands_before_and_is_no_question_is_not():
    talk = (message("a-1", "You could dry walnut in kiln 3.", "assistant"), message("a-2", "Hm, I see."))
    assert [reason for reason, _ in refused(proposal("Walnut is dried in kiln 3."), messages=talk)] == ["unsupported"]


def test_personal_data_of_a_made_up_statement_is_not_shown():
    """Other users can see the refusal."""
    invented = proposal("Grace can be reached at grace@example.com.", level="public")
    assert refused(invented, personal_data="refuse", messages=KILN) == [("personal-data", "[personal data]")]
