"""The shared state of one run over chat sessions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from parquetry.ids import settings_hash
from parquetry.llm.spending import Ledger, Purpose, Usage
from parquetry.planning.costs import Cost, shared, with_rest
from parquetry.sessions.model import Owner
from parquetry.sessions.prompts import Prompt, load_prompt
from parquetry.settings.sections import Settings
from parquetry.storage.files.layout import holds_entries
from parquetry.storage.lake.answers import Answers
from parquetry.storage.lake.lake import Snapshot
from parquetry.tasks.context import RunContext
from parquetry.tasks.documents.models import Model
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


@dataclass(kw_only=True)
class SessionRun(RunContext):
    """A run over chat sessions in progress."""

    prompts: Prompts
    retry_quarantined: bool = False
    """True to ask again about quarantined messages"""
    stated: bool = False
    """True if every session is one statement, to be taken as it is"""
    spool: Spool = field(default_factory=Spool)
    asking: Asking = field(default_factory=Asking)
    llm: CachedLlm = field(init=False)
    embedding_tokens: int = 0
    """tokens paid for embedding"""
    _unpriced: bool = False
    """True if an embedder with an unknown price was paid"""
    _lost: int = 0
    """consecutive sessions for which the language model could not be asked"""

    def __post_init__(self) -> None:
        super().__post_init__()
        answers = Answers(self.lake.layout)
        self.llm = CachedLlm(
            self.settings.llm,
            answers,
            self.ledger,
            self.check_cancelled,
            self.asking,
            retry_quarantined=self.retry_quarantined,
        )

    def open_ledger(self) -> Ledger:
        return Ledger(self.settings.sessions.budget_usd)

    def files_of(self, version: Snapshot) -> tuple[Snapshot, Sequence[str]]:
        """Return a version with only the chunks of entries, and the entry shards that no commit names."""
        # Vectors of documents are not searched for every entry.
        chunks = tuple(file for file in version.files["chunks"] if holds_entries(file))
        orphans = [file for file in self.lake.orphans(version) if holds_entries(file)]
        return replace(version, files={**version.files, "chunks": chunks}), orphans

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
        unpriced = self._unpriced or (self.tokens > 0 and not self.settings.llm.priced)
        return None if unpriced else self.ledger.cost_usd

    def costs(self, weights: Mapping[tuple[str, str], int]) -> tuple[Cost, ...]:
        """Return the costs so far, those of learning by source.

        Args:
            weights: namespace and name of a source -> tokens of its sessions.
        """
        unpriced: set[Purpose] = set() if self.settings.llm.priced else set(self.asked)
        if self._unpriced:
            unpriced.add("embed")
        distilled = self.ledger.usage.get("distill", Usage())
        total = distilled.input_tokens + distilled.output_tokens
        share = distilled.cost_usd / total if total else 0.0
        return with_rest(
            (
                Cost(*owner, "distill", tokens, None if "distill" in unpriced else tokens * share)
                for owner, tokens in shared(total, weights).items()
            ),
            self.ledger,
            unpriced,
            self.sources,
        )

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

    def __exit__(self, *_: object) -> None:
        super().__exit__(*_)
        self.spool.close()
