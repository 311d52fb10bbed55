"""Search index after a publish that is no run of a pipeline."""

from __future__ import annotations

import logging

from parquetry.errors import StorageError
from parquetry.serving.jobs.context import JobContext
from parquetry.storage.index.space import bring_index
from parquetry.storage.lake.lake import Lake
from parquetry.storage.replaced_files import reread

log = logging.getLogger("parquetry")


def update_index(context: JobContext) -> None:
    """Update the search index to what is published; a failure undoes nothing, and the next search builds it."""
    settings = context.settings
    try:
        reread(lambda: bring_index(Lake(settings.corpus.root).snapshot(), settings.search))
    except StorageError as error:
        log.warning("the search index is not written: %s", error)
