"""Repairs of documents that are not searchable, by the reason of the failure. As in docs/operators.md."""

from __future__ import annotations

from collections.abc import Mapping

_LATER = "It may pass by itself: try these again."
_SOURCE = "Look at the source itself: what it lists, and what it gives out."
_REPAIRS: Mapping[str, tuple[str, ...]] = {
    "Replace the file by a whole one; the next refresh indexes it.": (
        *("bad-span", "broken-answer", "damaged", "truncated", "unsafe-xml"),
    ),
    "Save it without a password, or add the password to extraction.passwords (PDF), then try these again.": (
        "encrypted",
    ),
    "Convert it to a type that is read, or exclude it with exclude of its source.": (
        *("unsupported-type", "unsupported-compression", "unsupported-encoding", "not-a-file", "link", "no-session"),
    ),
    "For pictures and scans, install the extra ocr and leave extraction.ocr on, then try these again.": ("no-text",),
    "Nothing: there is nothing in it to find.": ("empty", "no-captions"),
    "Raise the limit that the message names, then try these again; or divide the document.": (
        *("timeout", "memory", "crashed", "too-large", "too-many-parts", "too-deep", "too-many-pixels"),
        *("too-many-members", "nested-too-deep", "reply-cut"),
    ),
    "Give it another name at the source; the next refresh indexes it.": (
        *("duplicate-name", "name-too-long", "unreadable-name", "unsafe-name"),
    ),
    "Correct the key, the quota or the model's name, as the message says, then try these again.": ("service-refused",),
    "Check that this program may read it, then try these again.": ("unreadable", "forbidden", "refused", "unlisted"),
    "Free space on the disk, then try these again.": ("disk-full",),
    "Restore the object from its storage class, then try these again.": ("archived",),
    "The site does not give it out to programs; save it as a file, and add that.": (
        *("age-restricted", "blocked", "captions-locked", "consent", "robots", "unplayable", "redirected", "tls"),
        *("bad-url", "forbidden-address"),
    ),
    _SOURCE: ("broken-listing", "unexpected-answer", "unreadable-answer"),
    _LATER: (
        *("changed-while-read", "connection", "embedding-failed", "io-error", "question-failed", "rate-limited"),
        *("server-error", "service-failed", "stale", "stopped", "unavailable", "unreachable", "vanished"),
        *("worker-lost", "bad-reply", "sessions-failed"),
    ),
    "The service takes none of this text; the message has its reason.": ("input-rejected",),
    "An error in this program or a library, which the message names; try these again after an update.": ("unexpected",),
}
REPAIRS: Mapping[str, str] = {reason: repair for repair, reasons in _REPAIRS.items() for reason in reasons}
"""reason code -> what to do, in one sentence"""


_OF_ONE: tuple[tuple[str, str], ...] = (
    ("; the next refresh indexes it", ", and add it again"),
    (", or exclude it with exclude of its source", ", and add that"),
    (" at the source", ""),
    ("these again", "it again"),
)
"""words for documents of sources -> words for one that was handed in"""


def repair_of(reason: str, *, uploaded: bool = False) -> str:
    """Return what to do about a reason.

    Args:
        reason: code of the reason.
        uploaded: True for a document that was handed in, to which no source belongs.
    """
    repair = REPAIRS.get(reason, "The message says what is wrong; mend that, then try these again.")
    for words, others in _OF_ONE if uploaded else ():
        repair = repair.replace(words, others)
    return repair
