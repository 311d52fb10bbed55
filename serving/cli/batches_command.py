"""The command `batches`: work that is on its way at the batch API of a service."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from parquetry.errors import SettingsError
from parquetry.planning.rows import new_stamp
from parquetry.printing import tell
from parquetry.serving.cli.options import ConfigOption, CorpusOption, JsonOption, settings_for
from parquetry.serving.cli.output import print_json
from parquetry.settings.sections import Settings
from parquetry.storage.files.layout import layout_of
from parquetry.storage.lake.batches import BatchRecords, OpenBatch
from parquetry.storage.lake.lake import Lake

if TYPE_CHECKING:
    from parquetry.llm.batch_api import BatchService

_MOST = 99_999_999
"""highest number of a batch"""


def batches(
    cancel: Annotated[
        int | None, typer.Option(metavar="NUMBER", min=1, max=_MOST, help="Ask the service to stop this batch.")
    ] = None,
    drop: Annotated[
        int | None,
        typer.Option(metavar="NUMBER", min=1, max=_MOST, help="Give this batch up: what it brings is bought again."),
    ] = None,
    config: ConfigOption = None,
    corpus: CorpusOption = None,
    as_json: JsonOption = False,
) -> None:
    """List what is on its way at the batch API of a service.

    What a cancelled batch has done is charged, and taken by the next run, which sends the rest again unless
    `[batch_api]` says otherwise.
    """
    settings = settings_for(config, corpus)
    if cancel is not None and drop is not None:
        raise SettingsError("--cancel and --drop exclude each other")
    root = settings.corpus.root
    is_there = Lake.exists(root)
    records = BatchRecords(layout_of(root))
    found = records.open()
    if not found and not is_there:
        raise SettingsError(f"no corpus at {root} yet; `parquetry refresh` makes one, --corpus names another")
    if cancel is not None:
        batch = _numbered(found, cancel)
        if batch.batch_id is None:
            raise SettingsError(f"batch {cancel} is being sent; cancel it once a run has recorded it as sent")
        status = _service(settings, batch).cancel(batch.batch_id).status
        line = f"Batch {cancel}: {status}. The next run takes what it has done."
    elif drop is not None:
        records.drop(_numbered(found, drop), new_stamp().run_id, datetime.now(UTC))
        line = f"Batch {drop}: given up. The next run buys again what it would have brought."
        found = records.open()
    else:
        line = "" if found else f"Corpus {root}: nothing is on its way at a batch API."
    if as_json:
        print_json({"batches": [each.as_json() for each in found]})
        return
    if line:
        tell(line)
    for each in found:
        tell(f"  {each}")


def _numbered(found: list[OpenBatch], number: int) -> OpenBatch:
    for each in found:
        if each.number == number:
            return each
    raise SettingsError(f"no batch {number} is on its way; `parquetry batches` lists them")


def _service(settings: Settings, batch: OpenBatch) -> BatchService:
    """Return the service that has a batch.

    Raises:
        SettingsError: the settings do not name it.
    """
    from parquetry.embed.base import Batchable
    from parquetry.embed.registry import embedder_behind
    from parquetry.llm.client import LanguageModel
    from parquetry.masking import masked

    claim = batch.claim
    service: BatchService | None = None
    if claim.purpose == "embed":
        embedder = embedder_behind(claim.model, settings.embedders, settings.embedding, settings.hub)
        service = embedder.batches() if isinstance(embedder, Batchable) else None
    elif settings.llm.model == claim.model:
        service = LanguageModel(settings.llm, "distill").batches()
    if service is None or masked(service.where.url) != claim.url:
        raise SettingsError(
            f"batch {batch.number} is for {claim.model} at {claim.url}, which the settings do not name; set it there, "
            f"or give the batch up with --drop {batch.number}"
        )
    return service
