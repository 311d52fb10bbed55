"""Guards: limits on the language model's judgements that protect known entries."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations

from parquetry.sessions.facts import Cue, Facts, facts
from parquetry.sessions.quantities import Quantity

KEPT_SHARE = 0.5
"""share of the words of each statement that a merge has to exceed, and share of the merge's words that have to come
from the statements: a merge may shorten and reword, but one with less in common is another statement"""
_NAMED = 3
"""maximum things named in a detail"""


@dataclass(frozen=True, slots=True)
class Objection:
    """Reason for overruling a judgement."""

    reason: str
    """short code in kebab-case: `number-lost`, `name-invented`, `negation-differs`, ..."""
    detail: str
    """one sentence for people"""


def objection_to_merge(statements: Sequence[str], merged: str) -> Objection | None:
    """Return the objection to a merge that would lose, invent or reverse something.

    Args:
        statements: texts of the draft and of the entries that the merge would replace.
        merged: text that would replace them.

    Returns:
        None if numbers, times, identifiers, quotations, names, negations and most of the words are preserved.
    """
    sources = [facts(text) for text in statements]
    target = facts(merged)
    return (
        _opposed(sources)
        or next(_lost(sources, [target]), None)
        or next(_invented(sources, target), None)
        or _doubted(sources, target)
        or _swapped(sources, target)
        or _moved(sources, target)
        or _other_words(sources, target)
    )


def objection_to_existing(draft: str, entry: str) -> Objection | None:
    """Return the objection to taking an entry as already saying a draft.

    Args:
        draft: text of the draft, which would be dropped.
        entry: text of the entry, which may say more.

    Returns:
        None if every number, time, identifier, quotation, name and negation of the draft is in the entry.
    """
    new, known = facts(draft), facts(entry)
    return _opposed([new, known]) or next(_lost([new], [known]), None) or _doubted([new], known)


def _opposed(statements: Sequence[Facts]) -> Objection | None:
    """Object if one statement denies what another asserts."""
    for one, other in permutations(statements, 2):
        if denied := _asserted(one.denials, other.stems, (*other.denials, *other.contrasts), 1):
            return Objection(
                "negation-differs", f"one statement denies {_listed(_written(one, denied))}, another one asserts it"
            )
    return None


def _lost(sources: Sequence[Facts], there: Sequence[Facts]) -> Iterator[Objection]:
    for kind, absent in _ABSENT.items():
        if items := [item for source in sources for item in absent(source, there)]:
            yield Objection(f"{kind}-lost", f"it would lose {_listed(items)}")


def _invented(sources: Sequence[Facts], target: Facts) -> Iterator[Objection]:
    for kind, absent in _ABSENT.items():
        if items := absent(target, sources):
            yield Objection(f"{kind}-invented", f"it has {_listed(items)}, which nothing says that it is made of")


def _doubted(sources: Sequence[Facts], target: Facts) -> Objection | None:
    """Object if the merge turns a fact into a mere possibility."""
    for source in sources:
        if doubted := _asserted(target.doubts, source.stems, source.doubts, 1):
            return Objection("modality-differs", f"{_listed(_written(target, doubted))} is said, and would be possible")
    return None


def _swapped(sources: Sequence[Facts], target: Facts) -> Objection | None:
    """Object if a number stands beside a word that has a different number beside it in every source."""
    for side in ("before", "after"):
        known = defaultdict(set)
        for source in sources:
            for quantity in source.quantities:
                known[getattr(quantity, side)].add(quantity.value)
        for quantity in target.quantities:
            word = getattr(quantity, side)
            if word and word in known and quantity.value not in known[word]:
                return Objection("numbers-swapped", f"it puts {quantity.value} where another number stood")
    return None


def _moved(sources: Sequence[Facts], target: Facts) -> Objection | None:
    excepted = [cue for source in sources for cue in (*source.denials, *source.contrasts)]
    if moved := _asserted((*target.denials, *target.contrasts), _union(sources), excepted, 2):
        return Objection("negation-moved", f"it denies {_listed(_written(target, moved))}, which is only asserted")
    return None


def _asserted(cues: Sequence[Cue], said: frozenset[str], excepted: Sequence[Cue], words: int) -> list[str]:
    """Return the first words after cues that others assert outside the reach of such cues."""
    reached = frozenset[str]().union(*(cue.reach for cue in excepted))
    return sorted({stem for cue in cues for stem in cue.near[:words] if stem in said - reached})


def _union(sources: Sequence[Facts]) -> frozenset[str]:
    return frozenset[str]().union(*(source.stems for source in sources))


def _other_words(sources: Sequence[Facts], target: Facts) -> Objection | None:
    if not all(_mostly(source.stems, target.stems) for source in sources):
        return Objection("words-lost", "it does not have most of the words of each of the statements")
    if not _mostly(target.stems, _union(sources)):
        return Objection("words-invented", "most of its words are not from the statements")
    return None


def _mostly(words: frozenset[str], there: frozenset[str]) -> bool:
    return not words or len(words & there) > KEPT_SHARE * len(words)


def _absent_numbers(one: Facts, there: Sequence[Facts]) -> list[str]:
    known = [quantity for each in there for quantity in each.quantities]

    def is_there(quantity: Quantity) -> bool:
        # Two things in hall two are not identified by the hall alone.
        return sum(each.covers(quantity) for each in known) >= sum(each.covers(quantity) for each in one.quantities)

    absent = [quantity for quantity in one.quantities if not is_there(quantity)]
    return list(dict.fromkeys(" ".join(filter(None, (each.bound, each.value, each.unit))) for each in absent))


def _absent_moments(one: Facts, there: Sequence[Facts]) -> list[str]:
    return sorted(one.moments.difference(*(each.moments for each in there)))


def _absent_identifiers(one: Facts, there: Sequence[Facts]) -> list[str]:
    return sorted(one.identifiers.difference(word.raw for each in there for word in each.statement.words))


def _absent_quotes(one: Facts, there: Sequence[Facts]) -> list[str]:
    texts = [each.statement.text for each in there]
    absent = one.quotes.difference(*(each.quotes for each in there))
    # A sign without quotation marks is mere punctuation; words without them still count.
    return sorted(quote for quote in absent if not (_is_worded(quote) and any(_has(text, quote) for text in texts)))


def _is_worded(quote: str) -> bool:
    return any(map(str.isalnum, quote))


def _has(text: str, quote: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(quote)}(?!\w)", text) is not None


def _absent_names(one: Facts, there: Sequence[Facts]) -> list[str]:
    words = [word for each in there for word in each.statement.words]
    plain = {part for word in words for part in (word.plain, *word.plain.split("-"))}
    plain |= {word.plain.removesuffix("s") for word in words if word.raw[:-1].isupper()}
    # A word that only begins a sentence may be an ordinary one, which has other endings elsewhere.
    stems = {word.stem for word in words if word.raw.islower()}
    opening = {word.plain: word.stem for word in one.statement.words if word.plain in one.openers}
    lost = [word for word, stem in opening.items() if word not in plain and stem not in stems]
    return sorted([*(one.names - plain), *lost])


def _absent_denials(one: Facts, there: Sequence[Facts]) -> list[str]:
    known = [cue for each in there for cue in (*each.denials, *each.contrasts)]
    return [
        f"the denial of {' '.join(_written(one, cue.near)) or 'something'}"
        for cue in (*one.denials, *one.contrasts)
        if not any(cue.agrees(other) for other in known)
    ]


def _absent_modalities(one: Facts, there: Sequence[Facts]) -> list[str]:
    return sorted(one.modalities.difference(*(each.modalities for each in there)))


_ABSENT: dict[str, Callable[[Facts, Sequence[Facts]], list[str]]] = {
    "number": _absent_numbers,
    "date": _absent_moments,
    "identifier": _absent_identifiers,
    "quotation": _absent_quotes,
    "name": _absent_names,
    "negation": _absent_denials,
    "modality": _absent_modalities,
}
"""kind of detail -> those of one statement that occur in none of the others"""


def _written(one: Facts, stems: Iterable[str]) -> list[str]:
    """Return the words of a statement with the given stems."""
    words = {word.stem: word.plain for word in one.statement.words}
    return [words[stem] for stem in stems]


def _listed(items: Sequence[str]) -> str:
    more = f" and {len(items) - _NAMED} more" if len(items) > _NAMED else ""
    return ", ".join(items[:_NAMED]) + more
