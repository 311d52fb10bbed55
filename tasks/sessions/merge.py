"""Compare drafts with known entries: sequentially within a scope, scopes in parallel, in a fixed order.

Individual scopes come first, then those of organizations, then the public ones. A session has at most one scope of each
kind, so within a kind no two threads count the supersessions of one session, and the result does not depend on timing.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import groupby

import numpy as np

from parquetry import ids
from parquetry.errors import BudgetReached, TransientError, Verdict, classify
from parquetry.model import Visibility
from parquetry.sessions.ledger.decisions import blank_decision
from parquetry.sessions.ledger.entry_rows import EntryScope, scope_of
from parquetry.sessions.merge.candidates import fold
from parquetry.sessions.merge.effects import Effects, MergeProposal, effects_of, entry_id_in, proposal_of, rejected
from parquetry.sessions.merge.thresholds import Threshold, candidate_bar
from parquetry.sessions.model import (
    Candidate,
    Comparison,
    Decision,
    DecisionKind,
    Draft,
    Entry,
    Judge,
    Refusal,
    SessionRef,
    Spent,
)
from parquetry.storage.entries.entries import EntryText
from parquetry.storage.entries.known_entries import KnownEntries
from parquetry.storage.lake.lake import Snapshot
from parquetry.storage.lake.stored import StoredVector
from parquetry.tasks.documents.models import Model
from parquetry.tasks.engine.retries import BREAKER_THRESHOLD
from parquetry.tasks.sessions.batch import LearnedSession, total
from parquetry.tasks.sessions.judging import ScopeJudging, Undecided
from parquetry.tasks.sessions.run import SessionRun
from parquetry.tasks.sessions.scope import ScopeState, Vectored
from parquetry.telemetry.tracing import carried

KINDS: tuple[Visibility, ...] = ("individual", "organization", "public")
"""kinds of scopes, in the order in which they are compared"""
EMBED_AT_A_TIME = 1000
"""texts that are embedded together"""
_NOTHING = Spent(None, None)


@dataclass
class Merged:
    """The result of the comparison."""

    decisions: list[Decision] = field(default_factory=list)
    texts: dict[tuple[str, str], EntryText] = field(default_factory=dict)
    """new texts by namespace and entry"""
    proposals: list[MergeProposal] = field(default_factory=list)
    """merges that have not been rejected"""
    lost: dict[str, Verdict] = field(default_factory=dict)
    """sessions with a draft that could not be compared; their other drafts are not compared either"""


def merge(run: SessionRun, base: Snapshot, learned: Sequence[LearnedSession], vetoed: Collection[str] = ()) -> Merged:
    """Compare the drafts of sessions with known entries, and decide all of them.

    Args:
        run: the run in progress.
        base: the version with the known entries.
        learned: sessions without failed ones.
        vetoed: keys of proposals that a person rejected.

    Returns:
        Decisions and entries of all sessions except those in `lost`; if there are any, call again without them.

    Raises:
        ParquetryError: an error that concerns the whole run.
    """
    ordered = sorted(learned, key=lambda each: (each.found.at, each.found.ref.session_id))
    spent = {each.found.ref.session_id: each.spent for each in ordered}
    drafts = _vectored(run, ordered)
    scopes = {scope for scope, _ in drafts}
    merged = Merged()
    with KnownEntries(base, scopes) as known:
        comparing = _Comparing(run, known, spent, frozenset(vetoed), merged)
        comparing.refuse(ordered)
        stale = comparing.embed_stale(scopes)
        for kind in KINDS:
            chosen = sorted((scope for scope in scopes if scope.visibility == kind), key=lambda each: each.sort_key)
            groups = [[draft for scope, draft in drafts if scope == each] for each in chosen]
            with ThreadPoolExecutor(max(1, run.settings.sessions.workers), thread_name_prefix="scope") as threads:
                parts = list(
                    threads.map(carried(comparing.scope), chosen, groups, [stale.get(each, []) for each in chosen])
                )
            for part in parts:
                merged.decisions.extend(part.decisions)
                merged.texts.update(part.texts)
                merged.proposals.extend(part.proposals)
                merged.lost.update(part.lost)
    return merged


def _vectored(run: SessionRun, learned: Sequence[LearnedSession]) -> list[tuple[EntryScope, Vectored]]:
    """Return the drafts of all sessions in order, with vectors; equal drafts of a session are joined."""
    numbered: list[tuple[EntryScope, Draft, int]] = []
    for each in learned:
        namespace = each.found.ref.owner.namespace
        for number, draft in enumerate(fold(each.drafts).drafts):
            numbered.append((scope_of(namespace, draft.access), draft, number))
    texts: dict[str, list[str]] = defaultdict(list)
    for scope, draft, _ in numbered:
        texts[scope.namespace].append(draft.text)
    vectors = {namespace: embed(run, namespace, said) for namespace, said in texts.items()}
    result = []
    for scope, draft, number in numbered:
        stored = vectors[scope.namespace][draft.text]
        result.append((scope, Vectored(draft, stored.vector, stored.tokens, number)))
    return result


def embed(run: SessionRun, namespace: str, texts: Iterable[str]) -> dict[str, StoredVector]:
    """Return vectors of texts; stored ones are looked up.

    Raises:
        TransientError: the embedder could not be reached.
        BudgetReached: the budget does not allow embedding them all.
    """
    model = run.models[namespace]
    vectors = run.vectors_of(model)
    wanted = sorted(set(texts))
    found: dict[str, StoredVector] = {}
    for first in range(0, len(wanted), EMBED_AT_A_TIME):
        some = wanted[first : first + EMBED_AT_A_TIME]
        keys = ids.text_hashes(some)
        obtained = vectors.obtain(dict(zip(keys, some, strict=True)), ledger=run.ledger)
        for why in obtained.unpaid.values():
            raise BudgetReached(why)
        run.embedded(obtained.tokens_paid, model)
        found.update((text, obtained.by_hash[key]) for text, key in zip(some, keys, strict=True))
    return found


@dataclass
class _Comparing:
    """One pass over all drafts."""

    run: SessionRun
    known: KnownEntries
    spent: Mapping[str, Spent]
    """cost of learning from each session, by session id; counted with its first decision"""
    vetoed: frozenset[str]
    merged: Merged
    replaced: Counter[str] = field(default_factory=Counter)
    """number of entries that each session replaced, by session id"""

    def refuse(self, learned: Sequence[LearnedSession]) -> None:
        """Record the decisions about rejected drafts."""
        for each in learned:
            first = len(fold(each.drafts).drafts)
            for number, refusal in enumerate(each.refusals, first):
                spent = self.cost(each.found.ref.session_id, number, _NOTHING)
                self.merged.decisions.append(_refused(refusal, number, self.run, spent))

    def embed_stale(self, scopes: Iterable[EntryScope]) -> dict[EntryScope, list[EntryText]]:
        """Return live entries with vectors of another model, embedded again."""
        found: dict[EntryScope, list[EntryText]] = defaultdict(list)
        for namespace in sorted({scope.namespace for scope in scopes}):
            model = self.run.models[namespace]
            entries = self.known.stale(namespace, model.id)
            vectors = embed(self.run, namespace, (entry.text for entry in entries))
            for entry in entries:
                text = _text(entry, model, vectors[entry.text])
                self.merged.texts[namespace, entry.entry_id] = text
                found[scope_of(namespace, entry.access)].append(text)
        return found

    def scope(self, scope: EntryScope, drafts: Sequence[Vectored], stale: Sequence[EntryText]) -> Merged:
        """Compare the drafts of one scope, one session after another."""
        settings = self.run.settings.sessions
        model = self.run.models[scope.namespace]
        bar = Threshold(settings.similarity) if settings.similarity else candidate_bar(model.id)
        state = ScopeState(scope, self.known, drafts, model.id, bar, settings.candidates)
        for text in stale:
            state.add(text.entry, text.vector)
        part, in_a_row = Merged(), 0
        deciding = _Deciding(self, state, part)
        judging = ScopeJudging(self.run, state, self.allowance, deciding.decide)
        for session, group in groupby(enumerate(drafts), lambda each: each[1].draft.session.session_id):
            self.run.check_cancelled()
            if session in self.merged.lost:
                continue
            try:
                judging.session([Undecided(place, given) for place, given in group])
                in_a_row = 0
            except TransientError as error:
                in_a_row += 1
                if in_a_row >= BREAKER_THRESHOLD:
                    raise
                part.lost[session] = classify(error)
        return part

    def allowance(self, session: str) -> int:
        """Return the number of entries that a session may still replace."""
        return max(0, self.run.settings.sessions.max_supersessions - self.replaced[session])

    def cost(self, session: str, number: int, spent: Spent) -> Spent:
        """Return the cost of a decision; the first one of a session includes the cost of learning from it."""
        if number:
            return spent
        learning = self.spent[session]
        return total((learning, spent), spent.model or learning.model, spent.prompt or learning.prompt)


@dataclass(frozen=True, slots=True)
class _Deciding:
    """Record the decisions about drafts of one scope, and update its live entries."""

    comparing: _Comparing
    state: ScopeState
    part: Merged

    def decide(self, waiting: Undecided, comparison: Comparison, candidates: Sequence[Candidate]) -> None:
        """Apply a comparison."""
        given, state = waiting.given, self.state
        draft, session = given.draft, given.draft.session.session_id
        if comparison.verdict == "merged":
            proposal = proposal_of(draft, state.scope, comparison, candidates)
            if proposal.key in self.comparing.vetoed:
                comparison = rejected(comparison)
            else:
                self.part.proposals.append(proposal)
        is_live = state.live([*_ids_said(state.scope, draft, comparison)]).__contains__
        effects = effects_of(draft, state.scope, comparison, candidates, is_live)
        self.comparing.replaced[session] += len(effects.retires)
        state.supersede(effects.retires)
        if effects.adds:
            self._add(given, effects)
        for entry_id in (*effects.retires, entry_id_in(state.scope, draft.text)):
            state.is_said_by(entry_id, effects.entry.entry_id)
        # A candidate from the same session that has become no entry cannot be looked up.
        entries = state.live([one.entry.entry_id for one in candidates]).keys() | set(effects.retires)
        scores = {one.entry.entry_id: one.score for one in candidates if one.entry.entry_id in entries}
        spent = self.comparing.cost(session, given.number, waiting.spent)
        self.part.decisions.append(_decision(given, comparison, effects, scores, self.comparing.run, spent))

    def _add(self, given: Vectored, effects: Effects) -> None:
        entry, run = effects.entry, self.comparing.run
        stored = StoredVector(given.vector, given.tokens)
        if entry.text != given.draft.text:
            stored = embed(run, entry.namespace, [entry.text])[entry.text]
        text = _text(entry, run.models[entry.namespace], stored)
        self.part.texts[entry.namespace, entry.entry_id] = text
        self.state.add(entry, stored.vector)


def _ids_said(scope: EntryScope, draft: Draft, comparison: Comparison) -> Iterable[str]:
    """Yield the ids of the entries that may hold the statement of a draft afterwards."""
    yield entry_id_in(scope, draft.text)
    if comparison.text is not None:
        yield entry_id_in(scope, comparison.text)


def _text(entry: Entry, model: Model, stored: StoredVector) -> EntryText:
    return EntryText(entry, model.id, np.asarray(stored.vector, np.float32), stored.tokens)


def _decision(
    given: Vectored,
    comparison: Comparison,
    effects: Effects,
    scores: Mapping[str, float],
    run: SessionRun,
    spent: Spent,
) -> Decision:
    draft = given.draft
    return replace(
        _about(draft.session, given.number, comparison.verdict, comparison.judge, run),
        said_at=draft.said_at,
        evidence=draft.evidence,
        text=draft.text,
        entry_kind=draft.kind,
        access=draft.access,
        confidence=draft.confidence,
        entry_id=effects.entry.entry_id,
        adds=effects.adds,
        retires=effects.retires,
        links=effects.links,
        candidates=tuple(scores.items()),
        reasoning=_reasoning(comparison.reasoning, draft.lowered),
        reason=comparison.reason,
        spent=spent,
    )


def _reasoning(reasoning: str, lowered: str | None) -> str:
    return f"{reasoning} (shown less widely than proposed: {lowered})" if lowered else reasoning


def _refused(refusal: Refusal, number: int, run: SessionRun, spent: Spent) -> Decision:
    return replace(
        _about(refusal.session, number, "quarantined" if refusal.quarantined else "refused", "guard", run),
        text=refusal.text,
        reasoning=refusal.detail,
        reason=refusal.reason,
        spent=spent,
    )


def _about(session: SessionRef, number: int, kind: DecisionKind, judge: Judge, run: SessionRun) -> Decision:
    """Return a decision about a statement of a session."""
    return replace(
        blank_decision(run.stamp, session.owner.namespace, session.session_id, number, kind, judge),
        session_id=session.session_id,
        session_uri=session.uri,
        user_id=session.owner.user_id,
    )
