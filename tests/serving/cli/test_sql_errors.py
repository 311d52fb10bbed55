"""`parquetry sql` reports all of DuckDB's message about a wrong statement, on one line."""

import pytest


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        pytest.param(
            "SELECT * FROM documnts",
            'SQL: Catalog Error: Table with name documnts does not exist! Did you mean "documents"?',
            id="table",
        ),
        pytest.param("SELECT lenght('a')", 'does not exist! Did you mean "length"?', id="function"),
        pytest.param("FROM search_txt('oak')", 'does not exist! Did you mean "search_text"?', id="macro"),
        pytest.param(
            "SELECT titel FROM documents", 'not found in FROM clause! Candidate bindings: "title"', id="column"
        ),
        pytest.param(
            "SELECT path, count(*) FROM documents", "Either add it to the GROUP BY list, or use ANY_VALUE", id="advice"
        ),
        pytest.param("SELECT path\nFROM documents\nGROUP", 'syntax error at or near "GROUP" (line 3)', id="line"),
        pytest.param("SELEC 1", 'syntax error at or near "SELEC"', id="syntax"),
    ],
)
@pytest.mark.parametrize("caller", [(), ("--user", "ada")], ids=["operator", "caller"])
def test_wrong_statement_gets_what_duckdb_suggests(desk, caller, statement, said):
    told = desk("sql", *caller, statement)
    assert (told.code, told.stdout) == (2, "")
    assert said in told.complaint
    assert ("line" in told.complaint.casefold()) == ("line" in said)
