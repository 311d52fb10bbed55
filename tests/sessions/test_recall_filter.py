"""Knowledge base content shown in a session is not learned again; corrections of it are."""

from __future__ import annotations

import json

import pytest

from parquetry.sessions.distill.recall_filter import Recalled, recalled_texts
from tests.sessions.asking import KILN, message

SAYS = "Walnut boards are dried in kiln 3 at 55 degrees for three weeks."
ENTRY = "entry:6f1c3c1e-0f3a-5d1e-9a51-2f0d8f6f4a11"
HIT = {"chunk_id": "6f1c3c1e-0f3a-5d1e-9a51-2f0d8f6f4a11-chunk-0", "text": SAYS}


def shown(text: str, role: str = "tool", kind: str = "tool_result") -> Recalled:
    return recalled_texts([*KILN, message("r", text, role, kind), *KILN])


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(json.dumps({"results": [HIT]}), id="search as JSON"),
        pytest.param(json.dumps(json.dumps({"results": [HIT]})), id="JSON in JSON"),
        pytest.param(json.dumps([HIT])[:-4].replace("at 55", "at\\n55"), id="cut JSON"),
        pytest.param(f"1. {ENTRY}\n   {SAYS}", id="entries"),
        pytest.param(f"$ parquetry search 'walnut'\n{SAYS}", id="command line"),
    ],
)
def test_results_of_a_search_are_recalled(text):
    assert shown(text).copied(SAYS)


def test_what_a_system_message_brings_from_the_knowledge_base_is_recalled():
    assert shown(f"What is known:\n- {SAYS} ({ENTRY})", "system", "speech").copied(SAYS)


@pytest.mark.parametrize(
    ("called", "tool"),
    [("parquetry search walnut --json", "bash"), ('{"query": "walnut"}', "mcp__parquetry__search")],
)
def test_what_a_call_of_ours_returns_is_recalled_whatever_it_looks_like(called, tool):
    call = message("c", called, "assistant", "tool_call")
    call = type(call)(call.id, call.role, call.kind, call.text, call.at, tool)
    assert recalled_texts([call, message("r", SAYS, "tool", "tool_result")]).copied(SAYS)
    other = type(call)(call.id, call.role, call.kind, "ls", call.at, "bash")
    assert not recalled_texts([call, other, message("r", SAYS, "tool", "tool_result")]).copied(SAYS)


@pytest.mark.parametrize(
    ("role", "kind"), [("user", "speech"), ("assistant", "speech"), ("tool", "tool_result"), ("system", "speech")]
)
def test_what_is_said_without_a_sign_of_ours_is_not(role, kind):
    assert not shown(SAYS, role, kind).copied(SAYS)


def test_what_a_user_pastes_is_what_the_user_says():
    """Otherwise the surrounding words could not be learned."""
    assert not shown(json.dumps(HIT), "user", "speech").copied(SAYS)


@pytest.mark.parametrize(
    "said",
    [
        SAYS.upper(),
        SAYS.replace("for three weeks", ""),
        "The user said that walnut boards are dried in kiln 3 at 55 degrees for three weeks",
        "As noted, walnut boards are dried in the kiln 3 at 55 degrees.",
        "Walnut boards dried in kiln 3 at 55 degrees",
    ],
)
def test_a_copy_is_known_with_small_changes(said):
    assert shown(json.dumps(HIT)).copied(said)


@pytest.mark.parametrize(
    "said",
    [
        SAYS.replace("3", "4"),
        SAYS.replace("55", "60"),
        SAYS.replace("are dried", "are not dried"),
        SAYS.replace("are dried", "aren't dried"),
        SAYS.replace("three", "five"),
        SAYS.replace("Walnut", "Oak"),
        "In three weeks kiln 3 dried 55 boards.",
        "Ada runs the kiln.",
        "Walnut",
        "",
    ],
)
def test_a_correction_is_no_copy(said):
    assert not shown(json.dumps(HIT)).copied(said)


def test_scripts_without_spaces_are_compared_by_letters():
    text = json.dumps({"chunk_id": "x", "text": "胡桃木在三号窑中干燥三周"})
    assert shown(text).copied("胡桃木在三号窑中干燥三周。")
    assert not shown(text).copied("胡桃木不在三号窑中干燥三周。")


def test_a_statement_put_together_from_several_results_is_no_copy_of_one():
    one, other = json.dumps(HIT), json.dumps({"chunk_id": "y", "text": "Oak is dried in the yard behind the house."})
    known = recalled_texts([message(str(n), text, "tool", "tool_result") for n, text in enumerate((one, other))])
    assert not known.copied("Walnut boards are dried in the yard behind the house.")


def test_nothing_recalled_is_nothing_copied():
    assert not recalled_texts(KILN).copied(SAYS)
