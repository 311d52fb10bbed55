"""The error tree, and the one place that classifies errors.

ParquetryError                states the problem, its location and the remedy
├── DocumentError             permanent: this document is refused, the run continues
│   ├── SkippedDocument       nothing to index here (unsupported, empty): skipped with a reason
│   └── BrokenDocument        should have been indexable (damaged, locked, over a limit): failed with a reason
├── TransientError            may resolve by itself: retried, then failed
│   └── WorkerLost            a worker of another process or machine ended before its batch did
├── SettingsError             the operator has to change something: stops, exit 2
│   ├── WrongSettings         several mistakes in the settings, each with a line
│   ├── MissingExtra          an optional package is not installed: names the install line
│   ├── ServiceRefused        a service refuses the account: key, quota or the model's name
│   └── PagesGone             the version that a list was read from page by page is gone: start again
├── OutageError               a service failed for everything that a source needed: exit 4, good results are published
├── RunSuspended              part of the work waits for a batch at a service: exit 6, everything else is published
├── RefusedError              a guard or a budget stops the run: exit 3
│   └── BudgetReached         the next request would exceed the budget
└── StorageError              the corpus could not be read or written: stops, exit 4
    ├── DamagedCorpus         one of its files has changed since it was written, or is missing: names it
    ├── DiskFull              there is no space left to write it
    ├── IndexNotWritten       the search index could not be built or written; after a publish: exit 5
    └── PublishConflict       another run published first
        └── FilesGaveWay      files of the listed version were replaced and deleted by another run: read again
"""

from __future__ import annotations

import errno
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from parquetry.masking import excerpt, masked


class ParquetryError(Exception):
    """Base of every error that Parquetry raises on purpose; its text is fit for people, and contains no secret."""

    exit_code: ClassVar[int] = 4
    reason: str | None = None
    """short code in kebab-case, if the error has one; for programs, and in answers of the service"""

    def __init__(self, *told: object) -> None:
        super().__init__(*(masked(each) if isinstance(each, str) else each for each in told))

    def add_note(self, note: str) -> None:
        super().add_note(masked(note))

    @property
    def lines(self) -> tuple[str, ...]:
        """The text as lines for output; a line end inside a name or value does not start a new line."""
        return (str(self),)


class DocumentError(ParquetryError):
    """Refusal of a document, with a reason.

    Args:
        reason: short code in kebab-case (`empty`, `unsupported-type`, `damaged`), stable for reports and tests.
        detail: one sentence for people.
    """

    reason: str
    media_type: str | None = None
    """media type of the document, if it is known"""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(reason, detail)
        self.reason = reason
        self.detail = masked(detail)

    def __str__(self) -> str:
        return f"{self.reason}: {self.detail}"


class SkippedDocument(DocumentError):
    """The document has nothing to index: `unsupported-type`, `empty`, `no-text`, `too-large`."""


class BrokenDocument(DocumentError):
    """The document should be indexable but is not: `damaged`, `encrypted`, `timeout`, `memory`, ..."""


class TransientError(ParquetryError):
    """A failure that may resolve by itself.

    Args:
        reason: short code (`unreachable`, `rate-limited`, `changed-while-read`).
        detail: one sentence for people.
        retry_after: seconds that the service asked to wait; None if it did not.
    """

    reason: str

    def __init__(self, reason: str, detail: str, retry_after: float | None = None) -> None:
        super().__init__(reason, detail, retry_after)
        self.reason = reason
        self.detail = masked(detail)
        self.retry_after = retry_after

    def __str__(self) -> str:
        return f"{self.reason}: {self.detail}"


class WorkerLost(TransientError):
    """A worker of another process or machine ended before its batch did."""


class SettingsError(ParquetryError):
    """Error that requires the operator to change a setting, an argument or an environment variable."""

    exit_code = 2


class WrongSettings(SettingsError):
    """Mistakes in the settings.

    Args:
        mistakes: one line each.
    """

    def __init__(self, *mistakes: str) -> None:
        super().__init__(*mistakes)

    def __str__(self) -> str:
        return "\n".join(self.args)

    @property
    def lines(self) -> tuple[str, ...]:
        return self.args


class MissingExtra(SettingsError):
    """An optional package is required but not installed.

    Args:
        extra: name of the extra in `pyproject.toml`.
        need: what needs it, for the message.
    """

    def __init__(self, extra: str, need: str) -> None:
        super().__init__(extra, need)
        self.extra = extra
        self.need = need

    def __str__(self) -> str:
        return f"{self.need} needs an optional package; install it with: pip install 'parquetry[{self.extra}]'"


class ServiceRefused(SettingsError):
    """A service refuses the account until its key, its quota or the name of the model is corrected."""


class PagesGone(SettingsError):
    """The version that a list was read from page by page cannot be read any more; the list has to be read again."""

    reason = "pages-gone"


class OutageError(ParquetryError):
    """A service failed for everything that a source needed; good results are published."""


class RunSuspended(ParquetryError):
    """Part of the work waits for a batch at a service; a later run takes what it brings, and all else is published."""

    exit_code = 6


class RefusedError(ParquetryError):
    """A guard or a budget stopped the run before it did harm."""

    exit_code = 3


class BudgetReached(RefusedError):
    """The next request would exceed the budget of the run."""


class StorageError(ParquetryError):
    """The corpus could not be read or written; nothing was published."""


class DamagedCorpus(StorageError):
    """A file of the corpus has changed since it was written, or is missing."""


class DiskFull(StorageError):
    """No space is left on the disk; the text names the place."""


class IndexNotWritten(StorageError):
    """The search index could not be built or written; the published version is unaffected."""

    exit_code = 5


class PublishConflict(StorageError):
    """Another run published to the same namespace first."""


class FilesGaveWay(PublishConflict):
    """Another run replaced files that were to be read: the newest version names others."""


Fate = Literal["skip", "fail", "retry", "stop"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """Classification of an error, for the document at hand."""

    fate: Fate
    """skip and fail concern one document; retry may succeed later; stop concerns the whole run"""
    reason: str
    """short code in kebab-case"""
    detail: str
    """one sentence for people"""


DISK_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
"""error numbers of the operating system for a full disk"""


def classify(error: BaseException) -> Verdict:
    """Classify `error` for the document in which it occurred.

    Every branch has its own reason. An unforeseen error fails its document as `unexpected`, with its type and text, and
    never the run. The detail is stored and shown, so secrets in it are masked.
    """
    verdict = _judged(error)
    return replace(verdict, detail=masked(verdict.detail))


def _judged(error: BaseException) -> Verdict:
    match error:
        case SkippedDocument():
            return Verdict("skip", error.reason, error.detail)
        case DocumentError():
            return Verdict("fail", error.reason, error.detail)
        case TransientError():
            return Verdict("retry", error.reason, error.detail)
        case ParquetryError():
            return Verdict("stop", "refused" if isinstance(error, RefusedError) else "stopped", str(error))
        case FileNotFoundError():
            return Verdict("retry", "vanished", f"{error.filename or 'file'} was listed but is gone")
        case PermissionError():
            return Verdict("retry", "unreadable", f"no permission to read {error.filename or 'the file'}")
        case MemoryError():
            return Verdict("fail", "memory", "needed more memory than the limit for one document")
        case TimeoutError():
            return Verdict("retry", "timeout", str(error) or "timed out")
        case OSError() if error.errno in DISK_FULL:
            return Verdict("stop", "disk-full", f"no space left on device: {error.filename or 'the place of a file'}")
        case OSError():
            return Verdict("retry", "io-error", f"{type(error).__name__}: {error}")
        case _:
            lines = str(error).strip().splitlines() or [""]
            return Verdict("fail", "unexpected", excerpt(f"{type(error).__name__}: {lines[-1].strip()}", 500))


def first_line(error: Exception) -> str:
    """Return the first line of a library's error, for a message of one line."""
    return masked((str(error).strip() or type(error).__name__).splitlines()[0])
