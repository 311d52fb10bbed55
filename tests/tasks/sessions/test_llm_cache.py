"""Each request to the language model is paid for once, regardless of its caller and number of repetitions."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from parquetry.errors import TransientError
from parquetry.llm.spending import Ledger
from parquetry.sessions.distill.replies import Question, Reply
from parquetry.sessions.model import Owner
from parquetry.settings.llm import LlmSettings
from parquetry.storage.files.layout import layout_of
from parquetry.storage.lake.answers import Answers
from parquetry.tasks.sessions.asking import Asking
from parquetry.tasks.sessions.llm_cache import CachedLlm, CacheMiss, CacheOnlyLlm
from tests.servers.chat_server import ChatServer, error, said

ADA = Owner("default", None, "ada", "individual")
BOB = Owner("default", None, "bob", "individual")


class Weather(Reply):
    """Reply schema of the request."""

    rained: bool


QUESTION = Question("distill", ADA, ({"role": "user", "content": "What was said?"},), Weather, "distill 1")


def llm(root, url, check_cancelled=lambda: None, **options) -> CachedLlm:
    settings = LlmSettings(model="m", base_url=url, attempts=1)
    return CachedLlm(settings, Answers(layout_of(str(root))), Ledger(), check_cancelled, Asking(), **options)


def test_answer_that_is_kept_is_not_asked_for_again(tmp_path):
    with ChatServer([said("It rained.")]) as server:
        first, second = llm(tmp_path, server.url), llm(tmp_path, server.url)
        answers = [each.ask(QUESTION) for each in (first, first, second)]
    assert {answer.text for answer in answers} == {"It rained."}
    assert {answer.input_tokens for answer in answers} == {120}
    assert (first.looked_up, second.looked_up) == (1, 1)


def test_other_user_other_form_and_other_words_are_other_questions(tmp_path):
    with ChatServer([said("one"), said("two"), said("three"), said("four")]) as server:
        model = llm(tmp_path, server.url)
        told = [
            model.ask(QUESTION).text,
            model.ask(replace(QUESTION, owner=BOB)).text,
            model.ask(replace(QUESTION, form="distill 2")).text,
            model.ask(replace(QUESTION, messages=QUESTION.messages * 2)).text,
        ]
    assert told == ["one", "two", "three", "four"]


def test_equal_questions_at_the_same_time_are_asked_once(tmp_path):
    entered, release = threading.Event(), threading.Event()

    def slow(_):
        entered.set()
        assert release.wait(30)
        return said("It rained.")

    with ChatServer(slow) as server, ThreadPoolExecutor(4) as threads:
        model = llm(tmp_path, server.url)
        first = threads.submit(model.ask, QUESTION)
        assert entered.wait(30)
        others = [threads.submit(model.ask, QUESTION) for _ in range(3)]
        release.set()
        assert {each.result(30).text for each in (first, *others)} == {"It rained."}
        assert len(server.bodies) == 1


def test_failed_question_keeps_nothing_and_may_be_asked_again(tmp_path):
    with ChatServer([error(500, "down"), said("It rained.")]) as server:
        model = llm(tmp_path, server.url)
        with pytest.raises(TransientError):
            model.ask(QUESTION)
        assert model.ask(QUESTION).text == "It rained."
    assert model.looked_up == 0


def test_cancelled_run_pays_for_nothing_more(tmp_path):
    class Stopped(Exception):
        pass

    def stop():
        raise Stopped

    with ChatServer([]) as server, pytest.raises(Stopped):
        llm(tmp_path, server.url, stop).ask(QUESTION)


def test_plan_knows_an_answer_and_asks_for_none(tmp_path):
    with ChatServer([said("It rained.")]) as server:
        planned = CacheOnlyLlm("m", Answers(layout_of(str(tmp_path))))
        with pytest.raises(CacheMiss):
            planned.ask(QUESTION)
        llm(tmp_path, server.url).ask(QUESTION)
        assert planned.ask(QUESTION).text == "It rained."


def test_kept_answer_that_is_not_what_was_asked_for_is_asked_for_again_if_it_is_to_be(tmp_path):
    with ChatServer([said("It rained."), said('{"rained": true}')]) as server:
        assert llm(tmp_path, server.url).ask(QUESTION).text == "It rained."
        assert llm(tmp_path, server.url).ask(QUESTION).text == "It rained."
        again = llm(tmp_path, server.url, retry_quarantined=True)
        assert [again.ask(QUESTION).text, again.ask(QUESTION).text] == ['{"rained": true}'] * 2
        assert again.looked_up == 1


def test_plan_knows_which_answers_will_be_asked_for_again(tmp_path):
    with ChatServer([said("It rained.")]) as server:
        llm(tmp_path, server.url).ask(QUESTION)
    with pytest.raises(CacheMiss):
        CacheOnlyLlm("m", Answers(layout_of(str(tmp_path))), retry_quarantined=True).ask(QUESTION)
