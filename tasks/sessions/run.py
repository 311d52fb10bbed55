"""One run over chat sessions: what its parts share."""

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
from parquetry.tasks.engine.retries import PATIENCE
from parquetry.tasks.sessions.answers import KeptAnswers
from parquetry.tasks.sessions.asking import Asking
from parquetry.tasks.sessions.spool import Spool


@dataclass(frozen=True, slots=True)
class Prompts:
    """What the language model is told."""

    distill: Prompt
    compare: Prompt


def prompts_of(settings: Settings) -> Prompts:
    """The prompts that the settings name.

    Raises:
        SettingsError: a prompt's file cannot be read.
    """
    chosen = settings.sessions
    return Prompts(load_prompt("distill", chosen.distill_prompt), load_prompt("compare", chosen.compare_prompt))


def session_fingerprint(settings: Settings, prompt: Prompt, owner: Owner) -> str:
    """Hash of everything but its content that decides what is learned from a session.

    Args:
        settings: model and rules.
        prompt: for learning.
        owner: whose session it is.
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
    """ask again about what was quarantined"""
    spool: Spool = field(default_factory=Spool)
    asking: Asking = field(default_factory=Asking)
    asker: KeptAnswers = field(init=False)
    embedding_tokens: int = 0
    """that the embedder was paid for"""
    _stored: Stored = field(init=False)
    _vectors: dict[str, RunVectors] = field(default_factory=dict)
    """by id of the model"""
    _unpriced: bool = False
    """whether an embedder was paid whose price is not known"""
    _lost: int = 0
    """sessions in a row for which the language model could not be asked"""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        answers = Answers(self.run.lake.layout)
        llm, check_cancelled = self.run.settings.llm, self.run.check_cancelled
        self.asker = KeptAnswers(
            llm, answers, self.ledger, check_cancelled, self.asking, retry_quarantined=self.retry_quarantined
        )
        self._stored = Stored(*self._entry_files(self.run.base), lambda: self._entry_files(self.run.lake.snapshot()))

    def _entry_files(self, version: Snapshot) -> tuple[Snapshot, list[str]]:
        """A version with only the chunks of entries, and the shards of these that no commit names."""
        # What was embedded for documents is not looked through for every entry.
        chunks = tuple(file for file in version.files["chunks"] if holds_entries(file))
        orphans = [file for file in self.run.lake.orphans(version) if holds_entries(file)]
        return replace(version, files={**version.files, "chunks": chunks}), orphans

    def vectors_of(self, model: Model) -> RunVectors:
        """Vectors of entries that exist or are being computed."""
        with self._lock:
            if model.id not in self._vectors:
                self._vectors[model.id] = RunVectors(self._stored, accounted(model.open(), self.ledger))
            return self._vectors[model.id]

    def embedded(self, tokens: int, model: Model) -> None:
        """Tell what the embedder was paid for."""
        if tokens:
            with self._lock:
                self.embedding_tokens += tokens
                self._unpriced |= model.open().price_per_million_tokens is None

    @property
    def tokens(self) -> int:
        """Read and written by language models so far."""
        return sum(each.input_tokens + each.output_tokens for each in self.asked.values())

    @property
    def asked(self) -> dict[Purpose, Usage]:
        """What language models took so far."""
        return {purpose: used for purpose, used in self.ledger.usage.items() if purpose != "embed"}

    @property
    def cost_usd(self) -> float | None:
        """US dollars, of language models and of the embedder so far; None if a price is not known."""
        unpriced = self._unpriced or (self.tokens > 0 and not self.run.settings.llm.priced)
        return None if unpriced else self.ledger.cost_usd

    def lost(self) -> None:
        """Tell that the language model could not be asked, after all tries."""
        with self._lock:
            self._lost += 1

    def answered(self) -> None:
        """Tell that it answered."""
        with self._lock:
            self._lost = 0

    @property
    def patient(self) -> bool:
        """Whether it is still worth asking: a service that is down is not waited for once more for every session."""
        with self._lock:
            return self._lost < PATIENCE

    def __enter__(self) -> SessionRun:
        return self

    def __exit__(self, *_: object) -> None:
        self.spool.close()
        self._stored.close()
