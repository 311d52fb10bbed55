"""`import parquetry`: its public names, loaded only when they are used."""

import subprocess
import sys

import pytest

import parquetry
from parquetry import Caller, Corpus, Filters, RefusedError, Settings, SettingsError, connect, plan, refresh, split
from parquetry.model import Access
from tests.documentation import ROOT
from tests.storage.shelf import Shelf


def test_every_name_is_there_and_has_a_docstring():
    assert {name: getattr(parquetry, name).__name__ for name in parquetry.__all__} == {
        name: name for name in parquetry.__all__
    }
    assert [name for name in parquetry.__all__ if not getattr(parquetry, name).__doc__] == []
    assert set(parquetry.__all__) <= set(dir(parquetry))
    with pytest.raises(AttributeError, match="no attribute 'search'"):
        _ = parquetry.search


def test_page_names_what_there_is():
    page = "".join(
        (ROOT / "docs" / name).read_text("utf-8") for name in ("python.md", "agents.md", "sources-custom.md")
    )
    assert [name for name in parquetry.__all__ if name not in page] == ["Hit", "Piece"]


def test_nothing_is_loaded_until_it_is_used():
    code = "import sys, parquetry, parquetry.ids; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    rooms = {name for name in loaded if name.startswith("parquetry.")}
    assert rooms == {"parquetry.ids"}
    assert not {"duckdb", "prefect", "pyarrow", "pydantic"} & set(loaded)


def test_text_is_split_into_pieces_that_stand_where_they_say():
    text = "# A\n\n" + "One sentence. " * 30 + "\n\n# B\n\n" + "Another one. " * 30
    pieces = split(text, size=100, overlap=0)
    assert all(text[piece.start : piece.end] == piece.text for piece in pieces)
    assert max(len(piece.text) for piece in pieces) <= 100
    assert "".join("".join(piece.text for piece in pieces).split()) == "".join(text.split())
    assert not any("# B" in piece.text[3:] for piece in pieces)
    assert split(" \n") == ()
    # Adjacent chunks share some text.
    first, second = split("One sentence. " * 10, size=100, overlap=40)[:2]
    assert second.start < first.end


@pytest.mark.parametrize(("size", "overlap"), [(15, 0), (100, 100), (100, -1), (100_001, 0)])
def test_sizes_that_do_not_fit_are_refused(size, overlap):
    with pytest.raises(SettingsError, match=r"^split: chunking"):
        split("text", size, overlap)


def test_corpus_searches_and_tells_what_it_holds(tmp_path):
    shelf = Shelf(
        tmp_path / "corpus",
    )
    shelf.publish({"a.md": ["oak trees", "two"]})
    shelf.publish({"b.md": ["oak, too"]}, access=Access("individual", user_id="bob"))
    with Corpus(tmp_path / "corpus") as corpus:
        assert {hit.row["text"] for hit in corpus.search("oak", mode="text")} == {"oak trees", "oak, too"}
        assert corpus.version == 2
        assert {row["path"] for row in corpus.documents()} == {"a.md", "b.md"}
        assert corpus.text("a.md") == "oak trees\ntwo"
        assert corpus.sql("SELECT count(*) FROM chunks").fetchall() == [(3,)]
        assert corpus.entries() == []
        assert corpus.search("oak", mode="text", filters=Filters(namespaces=("other",))) == ()
        (seen,) = corpus.search("oak", mode="text", filters=Filters(caller=Caller("ada")))
        assert seen.row["text"] == "oak trees"
    with Corpus(Settings.model_validate({"corpus": {"root": str(tmp_path / "corpus")}}), version=1) as corpus:
        assert len(corpus.documents()) == 1
    (tmp_path / "kb.toml").write_text('[corpus]\nroot = "corpus"\n')
    with Corpus(tmp_path / "kb.toml") as corpus:
        assert corpus.version == 2
    assert connect(str(tmp_path / "corpus"), version=1).sql("SELECT count(*) FROM chunks").fetchall() == [(2,)]


def test_no_corpus_is_told(tmp_path):
    with pytest.raises(SettingsError, match="no corpus"):
        Corpus(tmp_path / "nothing")


@pytest.mark.slow
def test_refresh_publishes_and_raises_what_the_command_line_exits_with(workshop):
    for name in "abcdefghijkl":
        workshop.write(f"{name}.md", f"# {name}\n\nThe oak {name}.")
    assert plan(workshop.settings).estimate.likely.chunks == 12
    assert not (workshop.root / "corpus").exists()
    report = refresh(workshop.settings)
    assert (report.version, report.as_json()["documents"]["added"], report.error) == (1, 12, None)
    for name in "abcdefghijk":
        (workshop.folder / f"{name}.md").unlink()
    with pytest.raises(RefusedError, match="--allow-removals") as refused:
        refresh(workshop.settings)
    assert refused.value.exit_code == 3
    assert refresh(workshop.settings, allow_removals=True).version == 2
    with Corpus(workshop.settings) as corpus:
        assert [row["path"] for row in corpus.documents()] == ["l.md"]
