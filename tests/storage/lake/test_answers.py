"""Answers of a language model, kept beside the tables."""

from __future__ import annotations

from pathlib import Path

from parquetry.storage.files.layout import layout_of
from parquetry.storage.lake.answers import Answers

ANSWER = {"text": "It is said: ja \ud83d.", "cost_usd": 0.25}


def answers(root: Path) -> Answers:
    return Answers(layout_of(str(root)))


def test_answer_is_found_as_it_was_put(tmp_path):
    answers(tmp_path).put("ada", "k1", ANSWER)
    assert answers(tmp_path).get("ada", "k1") == ANSWER
    assert answers(tmp_path).get("ada", "k2") is None


def test_answers_of_each_user_and_of_nobody_lie_apart(tmp_path):
    """Answers for one user can then be erased separately."""
    kept = answers(tmp_path)
    for user in ("ada", "bob", None):
        kept.put(user, "k1", {"of": str(user)})
    assert [kept.get(user, "k1") for user in ("ada", "bob", None)] == [{"of": "ada"}, {"of": "bob"}, {"of": "None"}]
    assert len({kept.folder(user) for user in ("ada", "bob", None)}) == 3
    assert "ada" not in kept.folder("ada").removeprefix(str(tmp_path))
    assert kept.folder("../../etc").startswith(str(tmp_path / "answers") + "/")


def test_damaged_answer_is_as_good_as_none(tmp_path):
    kept = answers(tmp_path)
    kept.put("ada", "k1", ANSWER)
    (file,) = Path(kept.folder("ada")).iterdir()
    for damage in (b"", b'{"text": "cut', b"\xff\xfe", b"[1]"):
        file.write_bytes(damage)
        assert kept.get("ada", "k1") is None


def test_nothing_but_whole_answers_is_left_behind(tmp_path):
    kept = answers(tmp_path)
    for number in range(5):
        kept.put("ada", f"k{number}", ANSWER)
        kept.put("ada", f"k{number}", ANSWER)
    assert sorted(path.name for path in Path(kept.folder("ada")).iterdir()) == [
        f"k{number}.json" for number in range(5)
    ]
