"""Judgements of results and answers: changed, taken back, and what they say of documents."""

import pytest

from parquetry.serving.service.feedback import FeedbackStore, Judge, JudgedResult
from parquetry.serving.service.relevance_judgements import relevance_judgements
from parquetry.serving.state.database import StateDatabase

ADA, BOB, OPERATOR = Judge("ada", "t1"), Judge("bob", "t2"), Judge()
OAK, ELM = JudgedResult("default", "oak", "oak-1"), JudgedResult("default", "elm", "elm-1")


@pytest.fixture
def store(tmp_path):
    opened = FeedbackStore(tmp_path)
    yield opened
    opened.close()


def qrels(store):
    found = relevance_judgements(list(store.list(None))[::-1], {"oak", "elm"})
    return {query: documents for (_, query), documents in found.items()}


def test_judgement_is_changed_and_taken_back_by_its_judge_alone(store):
    for judge in (ADA, BOB, OPERATOR):
        store.judge(judge, "wood", OAK, relevant=True)
    store.judge(ADA, "wood", OAK, relevant=False)
    # Another token of the same user is the same judge.
    assert store.judged(Judge("ada", "t9"), "wood") == {("oak", "oak-1"): False}
    assert store.judged(BOB, "wood") == store.judged(OPERATOR, "wood") == {("oak", "oak-1"): True}
    store.take_back(Judge("ada", "t9"), "wood", OAK)
    assert store.judged(ADA, "wood") == {}
    assert [each.user_id for each in store.list(None)] == [None, "bob"]
    # A token without a user is no operator, and no other such token.
    assert store.judged(Judge(None, "t3"), "wood") == {}


def test_passages_of_a_good_answer_are_relevant_and_those_of_a_bad_one_are_not_judged(store):
    store.judge_answer(ADA, "a1", "wood", good=True, model="m", cited=[OAK])
    assert qrels(store) == {"wood": {"oak": 1}}
    store.judge_answer(ADA, "a1", "wood", good=False, model="m", cited=[OAK])
    assert qrels(store) == {}
    assert [(each.good, each.cited) for each in store.answers()] == [(False, 1)]
    store.judge_answer(ADA, "a1", "wood", good=None)
    assert list(store.answers()) == []


def test_answer_to_a_question_that_needs_earlier_turns_judges_no_passage(store):
    store.judge_answer(ADA, "a1", "and the other one?", good=True, model="m", follows=True, cited=[OAK])
    assert qrels(store) == {}
    assert [each.follows for each in store.answers()] == [True]


def test_judgement_of_a_passage_outranks_an_answer_that_cites_it(store):
    store.judge(BOB, "wood", OAK, relevant=False)
    store.judge_answer(ADA, "a1", "wood", good=True, model="m", cited=[OAK, ELM])
    assert qrels(store) == {"wood": {"oak": 0, "elm": 1}}


def test_document_is_relevant_if_one_of_its_passages_is(store):
    other = JudgedResult("default", "oak", "oak-2")
    store.judge(ADA, "wood", OAK, relevant=True)
    store.judge(ADA, "wood", other, relevant=False)
    assert qrels(store) == {"wood": {"oak": 1}}
    # A judgement of the whole document replaces those before it, and a later one of a passage counts again.
    store.judge(ADA, "wood", JudgedResult("default", "oak"), relevant=False)
    assert qrels(store) == {"wood": {"oak": 0}}
    store.judge(ADA, "wood", other, relevant=True)
    assert qrels(store) == {"wood": {"oak": 1}}


def test_file_of_an_older_version_is_read_on(tmp_path):
    before = """CREATE TABLE feedback (id INTEGER PRIMARY KEY, at REAL NOT NULL, namespace TEXT NOT NULL,
    query TEXT NOT NULL, document_id TEXT NOT NULL, chunk_id TEXT, relevant INTEGER NOT NULL, comment TEXT,
    version INTEGER, user_id TEXT, token_id TEXT) STRICT"""
    old = StateDatabase(tmp_path, "feedback.db", before, "feedback")
    old.write("INSERT INTO feedback VALUES (1, 1.0, 'default', 'wood', 'oak', NULL, 1, NULL, NULL, 'ada', 't1')")
    old.close()
    store = FeedbackStore(tmp_path)
    assert qrels(store) == {"wood": {"oak": 1}}
    store.close()
