"""After a power cut at any moment, uploads and chats that were acknowledged are there, whole."""

import json
from pathlib import Path

import pytest

from parquetry.serving.service.session_inbox import FOLDER, keep_session
from parquetry.settings.sections import parse_settings
from parquetry.sources.uploads.store import UploadStore
from tests.power_loss import recorded, survived

pytestmark = pytest.mark.slow
NAMES = ("oak.md", "elm.md", "ash.md")


def store_at(root):
    return UploadStore(parse_settings({"uploads": {"uri": str(root / "up")}}, "test"))


def uploads(root):
    """Return the bytes of all uploads by name; a damaged one is an error."""
    store = store_at(root)
    found = {name: store.get("default", name) for name in NAMES}
    return {name: store.read(upload) for name, upload in found.items() if upload is not None}


def chats(root):
    """Return the messages of all chats by id, as the sessions flow reads them."""
    files = [json.loads(file.read_text()) for file in (root / FOLDER).rglob("*.json")] if root.exists() else []
    return {each["id"]: [message["content"] for message in each["messages"]] for each in files}


@pytest.fixture
def left(tmp_path):
    return tmp_path / "left"


@pytest.fixture
def place(tmp_path):
    folder = tmp_path / "place"
    folder.mkdir()
    return folder


def test_upload_is_on_disk_once_it_is_acknowledged(place, left):
    truths, store = [{}], store_at(place)
    steps = [("oak.md", b"Oak."), ("elm.md", b"Elm." * 40_000), ("oak.md", b"Other oak."), ("elm.md", None)]
    with recorded(place) as disk:
        for name, content in steps:
            if content is None:
                assert store.delete("default", name)
            else:
                store.put("default", name, content, filename=name)
            disk.tell()
            truths.append(uploads(place))
    assert truths[-1] == {"oak.md": b"Other oak."}
    assert survived(disk, truths, left, lambda _: uploads(left)) > 10


def test_file_that_arrived_on_disk_is_kept_as_safely(place, tmp_path, left):
    arrived = tmp_path / "arrived"
    arrived.write_bytes(b"Ash." * 40_000)
    with recorded(place) as disk:
        store_at(place).put("default", "ash.md", arrived, filename="ash.md")
        disk.tell()
    truths = [{}, {"ash.md": arrived.read_bytes()}]
    assert survived(disk, truths, left, lambda _: uploads(left)) > 3


def test_chat_is_on_disk_once_it_is_accepted(place, left):
    truths = [{}]
    with recorded(place) as disk:
        for name, text in (("one", "I live in Bern."), ("two", "I like oak."), ("one", "I live in Basel.")):
            messages = [{"role": "user", "content": text}]
            keep_session(Path(place), "default", ("ada", None), name, messages, {})
            disk.tell()
            truths.append({**truths[-1], name: [text]})
    assert truths[-1] == chats(place)
    assert survived(disk, truths, left, lambda _: chats(left)) > 5
