"""Statements remembered in a corpus that is opened in this process, by the run that a service's jobs do."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field

from anyio.to_thread import run_sync

from parquetry.flows.pipelines.observer import Observer
from parquetry.flows.pipelines.sessions import AdHoc
from parquetry.model import Access, Visibility
from parquetry.serving.access.principals import Principal
from parquetry.serving.access.visibility import access_for
from parquetry.serving.jobs.context import Failed
from parquetry.serving.jobs.engine import StoppableEngine
from parquetry.serving.jobs.statements import learn_statement
from parquetry.serving.service.follower import CorpusFollower
from parquetry.serving.service.remembering import RememberedStatement, StatementFailed, owner_of
from parquetry.serving.service.session_inbox import keep_statement
from parquetry.serving.state.folder import state_folder
from parquetry.settings.sections import Settings

_FOLLOW_SECONDS = 30.0
"""seconds for the next search to see what was published"""


@dataclass(frozen=True, slots=True)
class EmbeddedMemory:
    """Statements compared and published by this process, one after another."""

    settings: Settings
    principal: Principal
    follower: CorpusFollower
    _one: threading.Lock = field(default_factory=threading.Lock)

    async def remember(self, namespace: str, text: str, level: Visibility | None) -> RememberedStatement:
        access = access_for(self.principal, level)
        return await run_sync(self._remembered, namespace, text, access)

    def _remembered(self, namespace: str, text: str, access: Access) -> RememberedStatement:
        user, org = owner_of(self.principal, access)
        with self._one:
            file = keep_statement(state_folder(self.settings), namespace, (user, org), access.visibility, text)
            owner = AdHoc(user, org, access.visibility)
            try:
                version, decision = learn_statement(
                    self.settings, file, namespace, owner, StoppableEngine(), Observer()
                )
            except Failed as failed:
                raise StatementFailed(failed.reason, failed.detail) from failed
            self._followed(version)
        return RememberedStatement(access.visibility, decision.as_json())

    def _followed(self, version: int) -> None:
        end = time.monotonic() + _FOLLOW_SECONDS
        while (self.follower.version or 0) < version and time.monotonic() < end:
            time.sleep(0.02)
