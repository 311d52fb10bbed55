"""`documents --notes` lists the workarounds applied to documents."""

from tests.serving.program import settle


def test_notes_are_listed_with_their_documents(desk):
    assert desk("documents", "--notes").stdout == "No notes on documents.\n"
    desk.write("open.csv", 'name,note\n"oak,dried\n' + "elm,wet\n" * 250)
    told = desk("refresh", "--direct").stdout
    assert "  1 note on documents; -v shows them, and `parquetry documents --notes` later\n" in told
    settle(desk)
    (document,) = desk("documents", "--notes", "--json").json["documents"]
    (note,) = document["notes"]
    assert document["path"] == "open.csv"
    assert (note["stage"], note["run_id"]) == ("extract", document["run_id"])
    assert note["note"] == "a quotation mark is never closed: quotation marks were read as text"
    lines = desk("documents", "--notes").stdout.splitlines()
    assert lines[0].split() == ["path", "note"]
    assert lines[2:] == [f"open.csv  {note['note']}"]
    assert desk("documents", "--notes", "--status", "failed").stdout == "No notes on documents.\n"
