"""The record of batches at services: which requests are on their way, so that nothing is sent or paid for twice.

A batch has a number and up to four files, each written once, on condition that it does not exist:

    00000007-claim.json     its requests; they belong to this batch from now on, and no other run sends them
    00000007-decision.json  `send`, before it is submitted, or `drop`, by a run that found the claim abandoned
    00000007-sent.json      its id at the service
    00000007-end.json       what came of it; its requests are free again

So of two runs, or two processes of a run, that want to send the same requests, or to take over an abandoned batch, one
wins. There are no texts in these files.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal

from parquetry.errors import StorageError
from parquetry.llm.spending import Purpose
from parquetry.masking import masked
from parquetry.plural import counted
from parquetry.storage.files.durable import PRIVATE, make_folder
from parquetry.storage.files.filesystem import filesystem_at
from parquetry.storage.files.full_disk import disk_full
from parquetry.storage.files.layout import Layout
from parquetry.storage.lake.batch_ends import BatchEnd, end_from

_FILE = re.compile(r"(\d{8})-(claim|decision|sent|end)\.json")
_FORGOTTEN = re.compile(r"(\d{8})-forgotten-([0-9a-z]+)\.json")

Step = Literal["claim", "decision", "sent", "end"]


@dataclass(frozen=True, slots=True)
class BatchItem:
    """A request of a batch."""

    custom_id: str
    """id within the batch"""
    source: int
    """0-based index into the sources of the claim"""
    tokens: int = 0
    """tokens of a text, as the embedder counts them; 0 for a question"""
    place: str = ""
    """place of an answer of a language model: folder of the owner and key; empty for a text"""


@dataclass(frozen=True, slots=True)
class Claim:
    """The requests of a batch, before it is sent."""

    name: str
    """name of the batch at the service"""
    run_id: str
    at: datetime
    """UTC"""
    purpose: Purpose
    model: str
    """id of the embedder, or name of the language model"""
    url: str
    """address of the service, without credentials"""
    sources: tuple[tuple[str, str], ...]
    """namespace and name of the sources of the requests"""
    items: tuple[BatchItem, ...]
    """in the order of the lines of its file"""
    expected_usd: float | None
    """maximum cost in US dollars; None if a price is unknown"""


@dataclass(frozen=True, slots=True)
class OpenBatch:
    """A batch that has not ended."""

    number: int
    claim: Claim
    decided_at: datetime | None
    """time at which a run was about to submit it; None if none was"""
    batch_id: str | None
    """id at the service; None if that is not recorded"""
    forgotten: frozenset[str] = field(default_factory=frozenset)
    """folders of owners who were forgotten meanwhile"""

    @property
    def since(self) -> datetime:
        """UTC."""
        return self.decided_at or self.claim.at

    @property
    def step(self) -> Literal["sent", "being sent"]:
        """`being sent` while its id at the service is not recorded."""
        return "sent" if self.batch_id is not None else "being sent"

    def __str__(self) -> str:
        """Format as one line: `1: 31,204 texts for openai:m/1@256, sent 2026-11-26 03:10 UTC, at most $0.3120`."""
        claim = self.claim
        noun = counted(len(claim.items), "text" if claim.purpose == "embed" else "question")
        cost = "" if claim.expected_usd is None else f", at most ${claim.expected_usd:.4f}"
        return f"{self.number}: {noun} for {claim.model}, {self.step} {self.since:%Y-%m-%d %H:%M} UTC{cost}"

    def as_json(self) -> dict[str, Any]:
        """Return the object that `parquetry batches --json` prints for a batch."""
        claim = self.claim
        return {
            "number": self.number,
            "batch_id": self.batch_id,
            "purpose": claim.purpose,
            "model": claim.model,
            "url": claim.url,
            "requests": len(claim.items),
            "since": self.since.isoformat(),
            "expected_usd": None if claim.expected_usd is None else round(claim.expected_usd, 6),
            "sources": [{"namespace": namespace, "source": source} for namespace, source in claim.sources],
        }


@dataclass(frozen=True, slots=True)
class BatchesNow:
    """The batches of a corpus at a moment."""

    last: int
    """highest number in use; 0 if there is none"""
    open: tuple[OpenBatch, ...]
    """batches that have not ended, by number"""
    ended: frozenset[int]
    """numbers of those whose end is recorded"""


class BatchRecords:
    """The record of a corpus. Safe to use from several threads and programs.

    What was read of open batches is kept, because none of their files ever changes.

    Args:
        layout: layout of the corpus.
    """

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._files = filesystem_at(layout.root)
        self._claims: dict[int, Claim] = {}
        """number -> claim"""
        self._sent: dict[int, OpenBatch] = {}
        """number -> batch that is at its service"""

    def look(self) -> BatchesNow:
        """Return the batches as they are now.

        Raises:
            StorageError: the record cannot be read.
        """
        steps, forgotten = self._listed()
        ended = frozenset(number for number, found in steps.items() if "end" in found)
        there = (self._batch(number, steps[number], forgotten) for number in sorted(steps.keys() - ended))
        found = BatchesNow(max(steps, default=0), tuple(batch for batch in there if batch is not None), ended)
        for number in ended.intersection([*self._claims, *self._sent]):
            self._claims.pop(number, None)
            self._sent.pop(number, None)
        return found

    def open(self) -> list[OpenBatch]:
        """Return the batches that have not ended, by number.

        Raises:
            StorageError: the record cannot be read.
        """
        return list(self.look().open)

    def ended(self) -> frozenset[int]:
        """Return the numbers of the batches whose end is recorded."""
        return frozenset(number for number, found in self._listed()[0].items() if "end" in found)

    def batch(self, number: int) -> OpenBatch | None:
        """Return a batch; None if it has ended, or there is none."""
        steps, forgotten = self._listed()
        found = steps.get(number, {"end"})
        return None if "end" in found else self._batch(number, found, forgotten)

    def after(self, number: int) -> dict[int, Claim]:
        """Return the claims of all batches after a number, ended or not."""
        numbers = sorted(each for each in self._listed()[0] if each > number)
        found = {each: self.claim_of(each) for each in numbers}
        return {each: claim for each, claim in found.items() if claim is not None}

    def claim_of(self, number: int) -> Claim | None:
        """Return the claim of a batch, ended or not; None if there is none."""
        known = self._claims.get(number)
        if known is not None:
            return known
        told = self._read(number, "claim")
        if told is None:
            return None
        claim = self._claims[number] = _claim(told)
        return claim

    def end_of(self, number: int) -> BatchEnd | None:
        """Return the end of a batch; None if none is recorded."""
        told = self._read(number, "end")
        return None if told is None else end_from(told)

    def last(self) -> int:
        """Return the highest number in use; 0 if there is none."""
        return max(self._listed()[0], default=0)

    def claim(self, number: int, claim: Claim) -> bool:
        """Claim a number for a batch; False if another name has it."""
        items = [[each.custom_id, each.source, each.tokens, each.place] for each in claim.items]
        told = {
            "name": claim.name,
            "run_id": claim.run_id,
            "at": claim.at.isoformat(),
            "purpose": claim.purpose,
            "model": claim.model,
            "url": masked(claim.url),
            "sources": [list(source) for source in claim.sources],
            "expected_usd": claim.expected_usd,
            "items": items,
        }
        return bool(self._create(number, "claim", told).get("name") == claim.name)

    def decide(self, number: int, decision: Literal["send", "drop"], run_id: str, at: datetime) -> bool:
        """Decide that a batch is about to be submitted, or never will be; False if another decision stands."""
        told = {"decision": decision, "run_id": run_id, "at": at.isoformat()}
        stands = self._create(number, "decision", told)
        return (stands.get("decision"), stands.get("run_id")) == (decision, run_id)

    def sent(self, number: int, batch_id: str, at: datetime) -> None:
        """Record the id of a batch at its service."""
        self._create(number, "sent", {"batch_id": batch_id, "at": at.isoformat()})

    def end(self, number: int, end: BatchEnd, at: datetime, batch_id: str | None) -> bool:
        """Record what came of a batch; False if another run did.

        Args:
            number: its number.
            end: what came of it, with the run that records it.
            at: UTC.
            batch_id: its id at the service; None if that is not known.
        """
        told = {"run_id": end.run_id, "at": at.isoformat(), **end.as_record(batch_id)}
        return bool(self._create(number, "end", told).get("run_id") == end.run_id)

    def drop(self, batch: OpenBatch, run_id: str, at: datetime) -> None:
        """Give a batch up: its requests are free, and what it would bring is bought again."""
        if batch.decided_at is not None or not self.decide(batch.number, "drop", run_id, at):
            self.end(batch.number, BatchEnd(run_id, "dropped"), at, batch.batch_id)

    def forget(self, folder: str) -> None:
        """Have the answers of all batches so far about an owner dropped.

        Args:
            folder: folder of the owner, as in the places of requests.
        """
        steps, _ = self._listed()
        open_ones = [number for number, found in steps.items() if "end" not in found]
        if open_ones:
            path = posixpath.join(self._layout.batches, f"{max(open_ones):08d}-forgotten-{folder}.json")
            self._files.create(path, b"{}")

    def _listed(self) -> tuple[dict[int, set[str]], dict[str, int]]:
        """Return the steps of each batch, and the number up to which each forgotten owner is dropped."""
        steps: dict[int, set[str]] = defaultdict(set)
        forgotten: dict[str, int] = {}
        for entry in self._files.entries(self._layout.batches):
            if found := _FILE.fullmatch(entry.name):
                steps[int(found[1])].add(found[2])
            elif found := _FORGOTTEN.fullmatch(entry.name):
                forgotten[found[2]] = max(int(found[1]), forgotten.get(found[2], 0))
        return {number: found for number, found in steps.items() if "claim" in found}, forgotten

    def _batch(self, number: int, steps: set[str], forgotten: Mapping[str, int]) -> OpenBatch | None:
        gone = frozenset(folder for folder, last in forgotten.items() if number <= last)
        known = self._sent.get(number)
        if known is not None and known.forgotten == gone:
            return known
        decision = self._read(number, "decision") if "decision" in steps else None
        claim = None if decision is not None and decision["decision"] == "drop" else self.claim_of(number)
        if claim is None:
            self._claims.pop(number, None)
            return None
        sent = self._read(number, "sent") if "sent" in steps else None
        decided_at = None if decision is None else _time(decision["at"])
        batch = OpenBatch(number, claim, decided_at, None if sent is None else sent["batch_id"], gone)
        if sent is not None:
            self._sent[number] = batch
        return batch

    def _create(self, number: int, step: Step, told: Mapping[str, object]) -> dict[str, Any]:
        """Write a file of a batch on condition that it does not exist, and return what stands in it."""
        path = self._path(number, step)
        content = json.dumps(told, separators=(",", ":")).encode()
        try:
            if self._layout.is_local:
                make_folder(self._layout.root)
                make_folder(self._layout.batches, PRIVATE)
            while True:
                # A store that answers "there" may have meant this very write, whose first reply was lost.
                made = self._files.create(path, content)
                if made == "made":
                    return dict(told)
                if made == "unsupported":
                    raise StorageError(f"{path} cannot be written: the store has no conditional writes")
                stands = self._read(number, step)
                if stands is not None:
                    return stands
        except OSError as error:
            what = f"{path} cannot be written"
            raise disk_full(error, path, what) or StorageError(f"{what}: {error}") from error

    def _read(self, number: int, step: Step) -> dict[str, Any] | None:
        path = self._path(number, step)
        try:
            with self._files.open(path) as stream:
                found = json.loads(stream.read())
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise StorageError(f"{path} cannot be read: {error}") from error
        if not isinstance(found, dict):
            raise StorageError(f"{path} is no record of a batch")
        return found

    def _path(self, number: int, step: Step) -> str:
        return posixpath.join(self._layout.batches, f"{number:08d}-{step}.json")


def _claim(told: Mapping[str, Any]) -> Claim:
    return Claim(
        told["name"],
        told["run_id"],
        _time(told["at"]),
        told["purpose"],
        told["model"],
        told["url"],
        tuple((namespace, name) for namespace, name in told["sources"]),
        tuple(BatchItem(*item) for item in told["items"]),
        told["expected_usd"],
    )


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)
