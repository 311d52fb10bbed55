"""The shared state of one run over chat sessions."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field, replace

from parquetry.ids import settings_hash
from parquetry.llm.spending import Ledger, Purpose, Usage
from parquetry.sessions.model import Owner
from parquetry.sessions.prompts import Prompt, load_prompt
from parquetry.settings.sections import Settings
from parquetry.storage.files.layout import holds_entries
from parquetry.storage.lake.answers import Answers
from parquetry.storage.lake.current import Stored
from parquetry.storage.lake.lake import Snapshot
from parquetry.tasks.documents.models import Model
from parquetry.tasks.documents.run import Run, accounted
from parquetry.tasks.documents.vectors import RunVectors
from parquetry.tasks.engine.retries import BREAKER_THRESHOLD
from parquetry.tasks.sessions.asking import Asking
from parquetry.tasks.sessions.llm_cache import CachedLlm
from parquetry.tasks.sessions.spool import Spool


@dataclass(frozen=True, slots=True)
class Prompts:
    """The prompts of the language model."""

    distill: Prompt
    compare: Prompt


def prompts_of(settings: Settings) -> Prompts:
    """Return the prompts that the settings name.

    Raises:
        SettingsError: a prompt's file cannot be read.
    """
    chosen = settings.sessions
    return Prompts(load_prompt("distill", chosen.distill_prompt), load_prompt("compare", chosen.compare_prompt))


def session_fingerprint(settings: Settings, prompt: Prompt, owner: Owner) -> str:
    """Return the hash of everything except the content that decides what is learned from a session.

    Args:
        settings: model and rules.
        prompt: prompt for learning.
        owner: owner of the session.
    """
    chosen = settings.sessions
    return settings_hash(
        {
            "prompt": prompt.version,
            "model": settings.llm.model,
            "tools": chosen.include_tools,
            "confidence": chosen.min_confidence,
            "personal_data": chosen.personal_data,
            "owner": [owner.org_id, owner.user_id, owner.widest],
        }
    )


@dataclass
class SessionRun:
    """A run in progress, shared by the threads that work for it."""

    run: Run
    prompts: Prompts
    ledger: Ledger
    retry_quarantined: bool = False
    """True to ask again about quarantined messages"""
    spool: Spool = field(default_factory=Spool)
    asking: Asking = field(default_factory=Asking)
    llm: CachedLlm = field(init=False)
    embedding_tokens: int = 0
    """tokens paid for embedding"""
    _stored: Stored = field(init=False)
    _vectors: dict[str, RunVectors] = field(default_factory=dict)
    """vectors by id of the model"""
    _unpriced: bool = False
    """True if an embedder with an unknown price was paid"""
    _lost: int = 0
    """consecutive sessions for which the language model could not be asked"""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        answers = Answers(self.run.lake.layout)
        llm, check_cancelled = self.run.settings.llm, self.run.check_cancelled
        self.llm = CachedLlm(
            llm, answers, self.ledger, check_cancelled, self.asking, retry_quarantined=self.retry_quarantined
        )
        self._stored = Stored(*self._entry_files(self.run.base), lambda: self._entry_files(self.run.lake.snapshot()))

    def _entry_files(self, version: Snapshot) -> tuple[Snapshot, list[str]]:
        """Return a version with only the chunks of entries, and the entry shards that no commit names."""
        # Vectors of documents are not searched for every entry.
        chunks = tuple(file for file in version.files["chunks"] if holds_entries(file))
        orphans = [file for file in self.run.lake.orphans(version) if holds_entries(file)]
        return replace(version, files={**version.files, "chunks": chunks}), orphans

    def vectors_of(self, model: Model) -> RunVectors:
        """Return the vectors of entries that exist or are being computed."""
        with self._lock:
            if model.id not in self._vectors:
                self._vectors[model.id] = RunVectors(self._stored, accounted(model.open(), self.ledger))
            return self._vectors[model.id]

    def embedded(self, tokens: int, model: Model) -> None:
        """Record what the embedder was paid for."""
        if tokens:
            with self._lock:
                self.embedding_tokens += tokens
                self._unpriced |= model.open().price_per_million_tokens is None

    @property
    def tokens(self) -> int:
        """Number of tokens read and written by language models so far."""
        return sum(each.input_tokens + each.output_tokens for each in self.asked.values())

    @property
    def asked(self) -> dict[Purpose, Usage]:
        """Use of language models so far, by purpose."""
        return {purpose: used for purpose, used in self.ledger.usage.items() if purpose != "embed"}

    @property
    def cost_usd(self) -> float | None:
        """Cost of language models and the embedder so far in US dollars; None if a price is not known."""
        unpriced = self._unpriced or (self.tokens > 0 and not self.run.settings.llm.priced)
        return None if unpriced else self.ledger.cost_usd

    def lost(self) -> None:
        """Record that the language model could not be asked, after all retries."""
        with self._lock:
            self._lost += 1

    def answered(self) -> None:
        """Record that the language model answered."""
        with self._lock:
            self._lost = 0

    @property
    def patient(self) -> bool:
        """True while requests are worth a wait: a service that is down is not awaited again for every session."""
        with self._lock:
            return self._lost < BREAKER_THRESHOLD

    def __enter__(self) -> SessionRun:
        return self

    def __exit__(self, *_: object) -> None:
        self.spool.close()
        self._stored.close()
