"""Conformance of `/v1/files` and `/v1/vector_stores` with OpenAI's published schema.

    python -m benchmarks.conformance

Starts the service, sends requests with each property and each violation that `benchmarks/openai_properties.json` lists,
checks each property of the answers, and writes the table of `docs/openai-conformance.md`.
"""

from __future__ import annotations

import argparse
import json
import sqlite3
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx

from benchmarks.conditions import RESULTS, ROOT, conditions, write_result
from benchmarks.conformance_client import Call, Recorder
from benchmarks.conformance_list import LIST
from benchmarks.conformance_rules import Case, answer_cases, operation_cases, request_cases
from benchmarks.conformance_scene import DAY, REWRITTEN, Scene
from benchmarks.conformance_words import cases_in_words, cases_of_expiry
from parquetry.serving.access.tokens import TokenStore
from parquetry.serving.files.table import FILE
from parquetry.serving.state.folder import state_folder
from parquetry.settings.sections import Settings, override
from tests.servers.chat_server import ChatServer, said
from tests.servers.knowledge_service import KnowledgeService

PAGE = ROOT / "docs" / "openai-conformance.md"
_BEGIN = "<!-- made by python -m benchmarks.conformance -->\n"
_US = 1_000_000


def checked(client: Recorder, limited: Recorder, expire: Callable[[str], None]) -> list[Case]:
    """Return all cases of a service.

    Args:
        client: client of it that may search, read and write.
        limited: client of a service that takes no more of its requests for now.
        expire: lets the time of a store pass.
    """
    listed = json.loads(LIST.read_text("utf-8"))
    try:
        scene = Scene(client)
        found: list[Case] = []
        for operation, properties in listed.items():
            found += request_cases(scene, operation, properties)
            found += operation_cases(scene, limited, operation, properties)
        found += cases_in_words(scene)
        found += cases_of_expiry(scene, expire)
        for operation, properties in listed.items():
            found += answer_cases(client.answers[operation], operation, properties)
        return found
    finally:
        client.close()
        limited.close()


@contextmanager
def running_services(folder: Path) -> Iterator[tuple[Recorder, Recorder, Callable[[str], None]]]:
    """Run what `checked` takes for the block: a service, and one that takes no more requests."""
    with ExitStack() as stack:
        model = stack.enter_context(ChatServer(lambda _: said(REWRITTEN)))
        clients, states = [], []
        for name, most in (("open", 1_000_000), ("limited", 1)):
            place = folder / name
            (place / "docs").mkdir(parents=True)
            llm = f'[llm]\nmodel = "scripted"\nbase_url = "{model.url}"\napi_key = "none"\n'
            tables = f'[corpus]\nroot = "corpus"\n[serve]\nrequests_per_minute = {most}\n{llm}'
            (place / "parquetry.toml").write_text(tables, "utf-8")
            service = stack.enter_context(KnowledgeService(place))
            states.append(state_folder(override(Settings(), {"corpus": {"root": str(place / "corpus")}})))
            with TokenStore(states[-1]) as tokens:
                key = tokens.create("conformance", user_id="ada", rights=["search", "read", "write"])[1]
            clients.append(Recorder(service.url, key))
        while clients[1].send(Call("GET /files")).status_code != httpx.codes.TOO_MANY_REQUESTS:
            time.sleep(0.01)
        yield clients[0], clients[1], lambda store: let_pass(states[0], store)


def let_pass(state: Path, store: str, days: int = 2) -> None:
    """Set the time at which a store was last in use back."""
    connection = sqlite3.connect(state / FILE, timeout=60)
    with connection:
        connection.execute(
            "UPDATE stores SET last_active_at = last_active_at - ? WHERE id = ?", (days * DAY * _US, store)
        )
    connection.close()


def result_of(cases: list[Case]) -> dict[str, Any]:
    """Return the cases by operation, and how many conform."""
    found: dict[str, Any] = defaultdict(list)
    for case in cases:
        found[case.operation].append({"place": case.place, "case": case.kind, "fault": case.fault})
    conforming = sum(case.fault is None for case in cases)
    return {"cases": len(cases), "conforming": conforming, "operations": dict(found)}


def page_of(page: str, result: dict[str, Any]) -> str:
    """Return the page with the table of a result."""
    lines = [f"{result['conforming']} of {result['cases']} cases conform: {_percent(result)} %.", ""]
    for operation, cases in result["operations"].items():
        lines += [f"### {operation}", "", "| property | cases | conforms |", "|---|---|---|"]
        lines += [f"| {' | '.join(row)} |" for row in _rows(cases)]
        lines.append("")
    return page.partition(_BEGIN)[0] + _BEGIN + "\n" + "\n".join(lines)


def _percent(result: dict[str, Any]) -> str:
    return f"{100 * result['conforming'] / result['cases']:.1f}"


def _rows(cases: list[dict[str, Any]]) -> Iterator[tuple[str, str, str]]:
    """Yield the rows of an operation: a property of its requests each, and those of its answers together."""
    groups: dict[str, list[dict[str, Any]]] = defaultdict(list)
    answered = []
    for each in cases:
        if each["case"] != "answered":
            groups[each["place"]].append(each)
        elif each["fault"] is None:
            answered.append(f"`{each['place']}`")
    for place, some in groups.items():
        kinds = ", ".join(each["case"] for each in some)
        faults = [f"{each['case']}: {each['fault']}" for each in some if each["fault"] is not None]
        yield f"`{place}`" if place else "(whole)", kinds, "; ".join(faults) or "yes"
    if answered:
        yield ", ".join(answered), "answered", "yes"
    for each in cases:
        if each["case"] == "answered" and each["fault"] is not None:
            yield f"`{each['place']}`", "answered", each["fault"]


def main(argv: list[str] | None = None) -> dict[str, Any]:
    """Check a service, write the result, and renew the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--page", type=Path, default=PAGE)
    arguments = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as folder, running_services(Path(folder)) as services:
        result = result_of(checked(*services))
    for operation, cases in result["operations"].items():
        for each in cases:
            if each["fault"] is not None:
                print(f"{operation}, {each['place'] or 'whole'}, {each['case']}: {each['fault']}")
    print(f"{result['conforming']} of {result['cases']} cases conform: {_percent(result)} %")
    packages = ("parquetry", "fastapi", "starlette", "uvicorn", "pydantic")
    write_result("conformance", {"conditions": conditions(packages), **result}, arguments.results)
    arguments.page.write_text(page_of(arguments.page.read_text("utf-8"), result), "utf-8")
    return result


if __name__ == "__main__":
    main()
