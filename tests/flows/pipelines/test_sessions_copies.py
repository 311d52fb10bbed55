"""A conversation in two files of a source, such as an export and its archive, is learned once."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tests.servers import session_model
from tests.servers.chat_server import ChatServer, error, said
from tests.sessions_shelf import Shelf

pytestmark = pytest.mark.slow

DRY = "Glue bench: it needs 12 hours to dry."
SAW = "Saw: the saw of hall 3 runs at 4200 rpm."
NAMES = {"zip first": ("a.zip", "b.json"), "zip last": ("z.zip", "b.json")}
FIRST = 1_767_225_600


def conversation(name: str, said: list[str]) -> dict[str, Any]:
    """A conversation in the format of a ChatGPT export."""
    mapping: dict[str, Any] = {"root": {"id": "root", "message": None, "parent": None, "children": []}}
    last = "root"
    for number, text in enumerate(said):
        for role, content in (("user", text), ("assistant", "I see.")):
            node = f"{name}-{number}-{role}"
            message = {
                "id": node,
                "author": {"role": role},
                "create_time": FIRST + 60 * number,
                "content": {"content_type": "text", "parts": [content]},
            }
            mapping[node] = {"id": node, "message": message, "parent": last, "children": []}
            mapping[last]["children"] = [node]
            last = node
    return {"id": name, "conversation_id": name, "title": name, "mapping": mapping, "current_node": last}


def write(folder: Path, names: tuple[str, str], said: list[str]) -> tuple[Path, Path]:
    """Write the same export as an archive and as a plain file."""
    content = json.dumps([conversation("c-1", said), conversation("c-2", ["Good morning."])])
    archive, plain = (folder / name for name in names)
    with zipfile.ZipFile(archive, "w") as opened:
        opened.writestr("conversations.json", content)
        opened.writestr("user.json", "{}")
    plain.write_text(content, "utf-8")
    return archive, plain


def learned(server: ChatServer) -> int:
    return sum(map(session_model.is_distilling, server.bodies))


@pytest.mark.parametrize("names", NAMES.values(), ids=NAMES)
def test_conversation_in_an_archive_and_beside_it_is_learned_once(tmp_path, server, names):
    shelf = Shelf(tmp_path, server.url)
    write(shelf.folder, names, [f"public/fact: {DRY}"])
    plan = shelf.plan()
    assert (plan.counts["scanned"], plan.counts["new"], plan.counts["unchanged"]) == (4, 2, 2)
    report = shelf.learn()
    assert (report.sessions["scanned"], report.sessions["new"], report.sessions["unchanged"]) == (4, 2, 2)
    assert (shelf.live(), learned(server), len(report.decisions)) == ([DRY], 2, 1)
    again = shelf.learn()
    assert (again.version, again.calls, again.cached) == (report.version, 0, 0)
    assert (again.sessions["scanned"], again.sessions["unchanged"]) == (4, 4)


@pytest.mark.parametrize("gone", [0, 1], ids=["archive", "file"])
def test_removing_one_of_two_copies_loses_nothing(tmp_path, server, gone):
    """The other copy is known up to the point that was read, and continues from there."""
    shelf = Shelf(tmp_path, server.url)
    files = write(shelf.folder, ("a.zip", "b.json"), [f"public/fact: {DRY}"])
    shelf.learn()
    files[gone].unlink()
    report = shelf.learn()
    assert (report.calls, report.sessions["unchanged"], shelf.live()) == (0, 2, [DRY])
    write(shelf.folder, ("a.zip", "b.json"), [f"public/fact: {DRY}", f"public/fact: {SAW}"])
    files[gone].unlink()
    report = shelf.learn()
    assert (report.sessions["grown"], report.sessions["new"], shelf.live()) == (1, 0, [DRY, SAW])


def test_copies_that_grow_are_learned_once_again(tmp_path, server):
    shelf = Shelf(tmp_path, server.url)
    write(shelf.folder, ("a.zip", "b.json"), [f"public/fact: {DRY}"])
    shelf.learn()
    before = learned(server)
    write(shelf.folder, ("a.zip", "b.json"), [f"public/fact: {DRY}", f"public/fact: {SAW}"])
    report = shelf.learn()
    assert (report.sessions["grown"], report.sessions["unchanged"], learned(server) - before) == (1, 3, 1)
    assert shelf.live() == [DRY, SAW]


def test_copy_that_comes_later_asks_nothing(tmp_path, server):
    shelf = Shelf(tmp_path, server.url)
    archive, plain = write(shelf.folder, ("a.zip", "b.json"), [f"public/fact: {DRY}"])
    content = archive.read_bytes()
    archive.unlink()
    shelf.learn()
    archive.write_bytes(content)
    assert shelf.plan().estimate.windows == 0
    report = shelf.learn()
    assert (report.calls, report.cached, report.sessions["new"], report.sessions["unchanged"]) == (0, 0, 0, 4)
    plain.unlink()
    assert shelf.learn().sessions["unchanged"] == 2


def test_copy_of_what_could_not_be_learned_is_not_taken_for_learned(tmp_path):
    down = True

    def rule(body: Any) -> Any:
        return error(500, "down") if down and "Glue" in str(body) else session_model.answer(body)

    with ChatServer(rule) as server:
        shelf = Shelf(tmp_path, server.url)
        archive, plain = write(shelf.folder, ("a.zip", "b.json"), [f"public/fact: {DRY}"])
        assert shelf.learn().sessions["failed"] == 2
        down = False
        archive.unlink()
        report = shelf.learn()
        assert (report.sessions["new"], report.sessions["failed"], shelf.live()) == (1, 0, [DRY])
        assert plain.exists()


def test_copy_of_what_was_quarantined_can_be_asked_about_alone(tmp_path):
    useless = True

    def rule(body: Any) -> Any:
        return said("I would rather not.") if useless else session_model.answer(body)

    with ChatServer(rule) as server:
        shelf = Shelf(tmp_path, server.url)
        archive, _ = write(shelf.folder, ("a.zip", "b.json"), [f"public/fact: {DRY}"])
        assert shelf.learn().entries["quarantined"] == 2
        useless = False
        archive.unlink()
        report = shelf.learn(retry_quarantined=True)
        assert (report.sessions["retried"], shelf.live()) == (2, [DRY])


def test_same_words_at_another_time_are_another_conversation(tmp_path, server):
    shelf = Shelf(tmp_path, server.url)
    shelf.write("a.json", [f"public/fact: {DRY}"], first=FIRST)
    shelf.write("b.json", [f"public/fact: {DRY}"], first=FIRST + 86_400)
    report = shelf.learn()
    assert (report.sessions["new"], report.entries["new"], report.entries["existing"]) == (2, 1, 1)


def test_same_words_at_another_time_are_asked_about_though_an_earlier_run_has_read_them(tmp_path, server):
    shelf = Shelf(tmp_path, server.url)
    shelf.write("a.json", [f"public/fact: {DRY}"], first=FIRST)
    shelf.learn()
    shelf.write("b.json", [f"public/fact: {DRY}"], first=FIRST + 86_400)
    report = shelf.learn()
    assert (report.sessions["new"], report.entries["existing"]) == (1, 1)
