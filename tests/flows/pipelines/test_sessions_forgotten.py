"""A user with learned chats is forgotten: shared knowledge stays, and nothing shows that it came from the user."""

import pytest

from parquetry.planning.rows import new_stamp
from parquetry.storage.maintenance.doctor import examine
from parquetry.storage.maintenance.erasure import forget_user
from tests.servers import session_model
from tests.servers.chat_server import ChatServer
from tests.sessions_shelf import Shelf
from tests.storage.telling import telling

pytestmark = pytest.mark.slow

SAW = "Saw: the saw of hall 3 runs at 4200 rpm."
TEA = "Tea: I drink xylophonquartz tea in the morning."


@pytest.fixture
def shelf(tmp_path):
    with ChatServer(session_model.answer) as server:
        made = Shelf(tmp_path, server.url)
        made.write("xylophonquartz.json", [f"public/fact: {SAW}", f"individual/preference: {TEA}", "Good morning."])
        made.learn()
        yield made


def forget(shelf):
    return forget_user(shelf.lake, "ada", new_stamp(), shelf.settings.search)


def test_what_was_learned_from_a_forgotten_user_tells_nothing_of_the_user(shelf):
    assert telling(shelf.root / "corpus", "xylophonquartz")
    done = forget(shelf)
    assert (done.files_left, done.answers_deleted) == (0, 1)
    assert telling(shelf.root / "corpus", "xylophonquartz") == set()
    assert telling(shelf.root / "corpus", '"ada"') == set()
    assert shelf.live() == [SAW]
    assert shelf.rows("SELECT kind, session_uri, session_user, evidence, text FROM decisions") == [
        ("new", None, None, [], "")
    ]
    assert shelf.rows("SELECT * FROM sessions") == []
    checkup = examine(shelf.lake, shelf.settings.search)
    assert checkup.healthy, checkup.findings


def test_sessions_that_are_still_in_their_source_are_learned_from_again(shelf):
    forget(shelf)
    report = shelf.learn()
    assert (report.sessions["new"], report.entries["new"], report.entries["existing"]) == (1, 1, 1)
    assert shelf.live() == [SAW, TEA]
    (shelf.folder / "xylophonquartz.json").unlink()
    forget(shelf)
    assert telling(shelf.root / "corpus", "xylophonquartz") == set()
    assert shelf.live() == [SAW]
