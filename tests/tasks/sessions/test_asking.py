"""A run reports what it is waiting for while it waits."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

from parquetry.flows.pipelines.sessions import SessionsRequest, run_sessions
from parquetry.serving.cli.progress import Lines, Observer
from parquetry.tasks.engine.base import DirectEngine
from parquetry.tasks.sessions.asking import Asking, InFlight
from tests.servers import session_model
from tests.servers.chat_server import ChatServer, Reply
from tests.sessions_shelf import Shelf


def test_what_is_waited_for_longest_is_told_with_the_number_of_others_and_of_answers():
    seconds = [0.0]
    asking = Asking(lambda: seconds[0])
    assert asking.state == InFlight(0, 0, None, 0.0)
    with asking.about("a.json, window 1 of 2"), asking.question("what to distill"):
        seconds[0] = 41.4
        with asking.question("what to compare"):
            assert str(asking.state) == "asking about a.json, window 1 of 2 and 1 more, for 41 s; 0 answers so far"
        assert str(asking.state) == "asking about a.json, window 1 of 2, for 41 s; 1 answer so far"
    with asking.question("what to compare"):
        assert str(asking.state) == "asking about what to compare, for 0 s; 2 answers so far"
    assert str(asking.state) == "3 answers so far"


def test_a_question_that_fails_is_not_waited_for_any_more_and_is_no_answer():
    asking = Asking()
    with pytest.raises(TimeoutError), asking.question("what to distill"):
        raise TimeoutError
    assert asking.state == InFlight(0, 0, None, 0.0)


def test_threads_ask_about_subjects_of_their_own():
    asking, ready, done = Asking(), threading.Event(), threading.Event()

    def other() -> None:
        with asking.about("b.json"), asking.question("what to distill"):
            ready.set()
            done.wait()

    thread = threading.Thread(target=other)
    with asking.about("a.json"):
        thread.start()
        ready.wait()
        assert asking.state.longest == "b.json"
        done.set()
        thread.join()
        with asking.question("what to distill"):
            assert asking.state.longest == "a.json"


class Watcher(Observer):
    """Record everything that is reported."""

    asking: Asking

    def sessions_asked(self, asking: Asking) -> None:
        self.asking = asking


def test_a_run_tells_which_part_of_which_session_it_asks_about(tmp_path):
    watcher, seen = Watcher(), []

    def answer(body: Any) -> Reply:
        seen.append(watcher.asking.state)
        return session_model.answer(body)

    with ChatServer(answer) as server:
        shelf = Shelf(tmp_path, server.url)
        shelf.sections["sessions"] = {"window_characters": 2000, "workers": 1}
        file = shelf.write("a.json", ["We spoke of nothing. " * 85] * 2)
        run_sessions(SessionsRequest(shelf.settings), DirectEngine(), watcher)
    windows = [state.longest for state in seen]
    assert windows == [f"{file.as_uri()}, window {number} of {len(windows)}" for number in range(1, len(windows) + 1)]
    assert len(windows) > 1
    assert [state.answered for state in seen] == list(range(len(seen)))
    assert watcher.asking.state == InFlight(len(seen), 0, None, 0.0)


def test_without_a_terminal_a_line_is_told_now_and_then_and_none_once_nothing_is_waited_for(capsys):
    asking = Asking()
    with Lines(seconds=0.01) as lines:
        lines.sessions_asked(asking)
        with asking.about("a.json, window 1 of 1"), asking.question("what to distill"):
            told = ""
            while told.count("\n") < 2:
                time.sleep(0.01)
                told += capsys.readouterr().err
    assert {line.partition(", for")[0] for line in told.splitlines()} == {"  asking about a.json, window 1 of 1"}
    capsys.readouterr()
    time.sleep(0.05)
    assert capsys.readouterr().err == ""
