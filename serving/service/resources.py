"""Everything that a process which answers requests holds open, made and closed together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from parquetry.ids import settings_hash
from parquetry.serving.access.audit import AuditLog
from parquetry.serving.access.gate import Gate
from parquetry.serving.access.sessions import SessionStore
from parquetry.serving.access.tokens import TokenStore
from parquetry.serving.files.content import FileFolder
from parquetry.serving.files.file_records import FileRecords
from parquetry.serving.files.store_records import StoreRecords
from parquetry.serving.files.table import ADDED, FILE, SCHEMA
from parquetry.serving.jobs.reviews import ReviewStore
from parquetry.serving.jobs.store import JobStore
from parquetry.serving.service.earlier_versions import EarlierVersions
from parquetry.serving.service.feedback import FeedbackStore
from parquetry.serving.service.follower import CorpusFollower
from parquetry.serving.service.response_store import ResponseStore
from parquetry.serving.state.database import StateDatabase
from parquetry.serving.state.folder import state_folder
from parquetry.serving.state.workers import WorkerRecord
from parquetry.settings.sections import Settings
from parquetry.sources.uploads.store import UploadStore


@dataclass(frozen=True, slots=True)
class Resources:
    """The open parts of a service in one process."""

    settings: Settings
    state: Path
    follower: CorpusFollower
    earlier: EarlierVersions
    tokens: TokenStore
    sessions: SessionStore
    gate: Gate
    jobs: JobStore
    reviews: ReviewStore
    uploads: UploadStore
    audit: AuditLog
    feedback: FeedbackStore
    responses: ResponseStore
    files: FileRecords
    stores: StoreRecords
    content: FileFolder
    record: WorkerRecord

    @classmethod
    def open(cls, settings: Settings, followed: Callable[[int], None] = lambda _: None) -> Resources:
        """Open them; nothing is read from the corpus yet.

        Args:
            settings: settings of the service.
            followed: called with each version from which on this process answers.

        Raises:
            SettingsError: the state folder cannot be made.
            StorageError: a file in it cannot be opened.
        """
        state = state_folder(settings)
        record = WorkerRecord(state)
        tables = StateDatabase(state, FILE, SCHEMA, "files and vector stores", ADDED)
        tokens = TokenStore(state)
        sessions = SessionStore(state, tokens)
        # Cookies know no ports: two services of one machine share them.
        cookie = f"parquetry_{settings_hash({'state': str(state)})}"

        def announce(version: int) -> None:
            followed(version)
            record.announce(version)

        return cls(
            settings,
            state,
            CorpusFollower(settings, announce),
            EarlierVersions(settings),
            tokens,
            sessions,
            Gate(settings.serve, tokens, sessions, cookie),
            JobStore(state),
            ReviewStore(state),
            UploadStore(settings),
            AuditLog(state, keep_text=settings.serve.audit_text),
            FeedbackStore(state),
            ResponseStore(state),
            FileRecords(tables),
            StoreRecords(tables),
            FileFolder(state),
            record,
        )

    def start(self) -> None:
        """Begin to follow the corpus."""
        self.follower.start()

    def close(self) -> None:
        """Stop following, and close what is open; requests in work have ended."""
        self.record.withdraw()
        self.follower.stop()
        self.earlier.close()
        self.jobs.close()
        self.reviews.close()
        self.feedback.close()
        self.responses.close()
        self.files.close()
        self.sessions.close()
        self.tokens.close()
