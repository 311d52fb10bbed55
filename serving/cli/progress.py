"""Progress of a run: a bar on a terminal; elsewhere a line now and then while waiting for a model."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from time import monotonic
from typing import TYPE_CHECKING

from parquetry.flows.pipelines.observer import Observer
from parquetry.plural import counted
from parquetry.printing import tell, visible
from parquetry.waiting import Teller

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import ProgressColumn

    from parquetry.planning.batches import Batch
    from parquetry.planning.report import RunReport
    from parquetry.sessions.report import SessionsReport
    from parquetry.tasks.documents.plan import RefreshPlan
    from parquetry.tasks.documents.reading_progress import ReadingProgress, SlowDocument
    from parquetry.tasks.sessions.asking import Asking
    from parquetry.tasks.sessions.batch import SessionBatch, SessionBatchReport
    from parquetry.tasks.sessions.plan import SessionPlan


LINE_SECONDS = 10.0
"""seconds between two lines without a terminal"""
NAMED_SECONDS = 2.0
"""seconds after which a document being read is named beside the bar"""
_BAR_CHARACTERS = 20
"""half the usual width, so that 80 characters have room for a name"""


class Lines(Observer):
    """Progress as occasional lines on stderr: for slow documents, and while waiting for a model."""

    def __init__(self, seconds: float = LINE_SECONDS) -> None:
        self._seconds = seconds
        self._telling = ExitStack()
        self._documents = self._built = 0
        self._told_at = monotonic()

    def document_slow(self, slow: SlowDocument) -> None:
        self._tell(slow)

    def migration_planned(self, documents: int) -> None:
        self._documents, self._built = documents, 0
        self._told_at = monotonic()

    def migration_built(self, documents: int) -> None:
        self._built += documents
        if monotonic() - self._told_at >= self._seconds:
            self._told_at = monotonic()
            self._tell(f"built {self._built} of {counted(self._documents, 'document')}")

    def sessions_asked(self, asking: Asking) -> None:
        def look() -> list[object]:
            state = asking.state
            return [state] if state.asked else []

        self._telling.enter_context(Teller(look, self._tell, self._seconds))

    def sessions_published(self, report: SessionsReport) -> None:  # noqa: ARG002 - the Protocol's
        self._telling.close()

    def _tell(self, news: object) -> None:
        tell(f"  {news}", err=True)

    def __exit__(self, *_: object) -> None:
        self._telling.close()


class ProgressBar(Observer):
    """Progress bar that counts documents or sessions and shows the item being waited for.

    Args:
        console: console to draw on; None for stderr.
    """

    def __init__(self, console: Console | None = None) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        self._awaited: Callable[[int], str] = lambda _: ""
        """formats the item being waited for, visible characters only, within the given width if possible"""
        columns = (
            TextColumn("{task.description}"),
            BarColumn(_BAR_CHARACTERS),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            _awaited_column(lambda characters: self._awaited(characters)),
        )
        self._progress = Progress(*columns, console=console or Console(stderr=True), transient=True)
        self._task = self._progress.add_task("Scanning", total=None)

    def planned(self, plan: RefreshPlan, batches: Sequence[Batch]) -> None:  # noqa: ARG002 - the Protocol's
        total = plan.to_do
        self._progress.update(self._task, description="Documents", total=total)

    def documents_read(self, reading: ReadingProgress) -> None:
        def slowest(characters: int) -> str:
            slow = reading.slowest
            return slow.line(characters) if slow and slow.seconds >= NAMED_SECONDS else ""

        self._awaited = slowest

    def document_read(self) -> None:
        self._progress.advance(self._task)
        if self._progress.finished:
            # The documents are read, but not yet embedded and written.
            self._progress.update(self._task, description="Finishing")

    def published(self, report: RunReport) -> None:  # noqa: ARG002 - the Protocol's
        self._progress.update(self._task, description="Published")

    def migration_planned(self, documents: int) -> None:
        self._progress.update(self._task, description="Building", total=documents)

    def migration_built(self, documents: int) -> None:
        self._progress.advance(self._task, documents)

    def sessions_planned(self, plan: SessionPlan, batches: Sequence[SessionBatch]) -> None:  # noqa: ARG002
        self._progress.update(self._task, description="Sessions", total=len(plan.sessions))

    def sessions_asked(self, asking: Asking) -> None:
        self._awaited = lambda _: visible(str(asking.state))

    def sessions_learned(self, report: SessionBatchReport) -> None:
        self._progress.advance(self._task, len(report.learned))

    def sessions_published(self, report: SessionsReport) -> None:  # noqa: ARG002
        self._progress.update(self._task, description="Published")

    def __enter__(self) -> ProgressBar:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()


def _awaited_column(line: Callable[[int], str]) -> ProgressColumn:
    """Build a column that shows a line in the remaining space.

    Args:
        line: formats the line, within the given number of characters if possible.
    """
    from rich.console import ConsoleOptions, RenderResult
    from rich.measure import Measurement
    from rich.progress import ProgressColumn, Task
    from rich.text import Text

    class Fitted:
        def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
            return Measurement(0, Text(line(options.max_width)).cell_len)

        def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
            yield Text(line(options.max_width), overflow="ellipsis", no_wrap=True)

    class Awaited(ProgressColumn):
        def render(self, task: Task) -> Fitted:  # noqa: ARG002
            return Fitted()

    return Awaited()


def progress(*, silent: bool) -> Observer:
    """Return a bar on a terminal, else lines; a silent observer if `silent`."""
    if silent:
        return Observer()
    return ProgressBar() if sys.stderr.isatty() else Lines()
