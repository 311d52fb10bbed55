"""Metrics of runs in a file for the textfile collector of Prometheus' node exporter.

Each run reads the file, replaces what it knows better, and renames a new one over it: a run covers some sources, and
the last success of the others must stay. Counters go on from run to run.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Set
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import NamedTemporaryFile

from filelock import FileLock, Timeout
from prometheus_client import CollectorRegistry, Metric, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.parser import text_string_to_metric_families

from parquetry.settings.small_file import read_small
from parquetry.telemetry.outcome import RunOutcome, SourceKey

MOST_BYTES = 4 * 1024 * 1024
"""bytes of a file that is read again"""
LOCK_SECONDS = 5.0
"""seconds to wait for another run that writes the same file"""
_MODE = 0o644
"""the node exporter is another user"""
Labels = tuple[str, ...]
"""values of the labels of a metric, in their order"""


@dataclass(frozen=True, slots=True)
class _Kind:
    """A metric."""

    name: str
    help: str
    labels: tuple[str, ...]
    counts: bool = False
    """True for a counter, whose samples are named with `_total`"""

    @property
    def sample(self) -> str:
        return f"{self.name}_total" if self.counts else self.name


_RUN, _SOURCE = ("corpus", "kind"), ("corpus", "namespace", "source")
_RUNS = _Kind("parquetry_runs", "Runs by kind and outcome.", (*_RUN, "status"), counts=True)
_ENDED = _Kind("parquetry_run_last_end_timestamp_seconds", "End of the last run.", _RUN)
_SUCCESS = _Kind("parquetry_run_last_success", "1 if the last run completed or waits for a batch, else 0.", _RUN)
_SECONDS = _Kind("parquetry_run_last_seconds", "Duration of the last run.", _RUN)
_STAGES = _Kind("parquetry_run_last_stage_seconds", "Seconds of the last run by stage.", (*_RUN, "stage"))
_COUNTS = _Kind("parquetry_run_last_documents", "Documents of the last run that published.", (*_RUN, "outcome"))
_VERSION = _Kind("parquetry_run_corpus_version", "Version of the corpus after the last run.", ("corpus",))
_TRIED = _Kind("parquetry_source_last_run_timestamp_seconds", "End of the last run over the source.", _SOURCE)
_FRESH = _Kind(
    "parquetry_source_last_success_timestamp_seconds", "End of the last run that took in the whole source.", _SOURCE
)
_NOT_INDEXED = _Kind(
    "parquetry_source_not_indexed_documents", "Documents of the source not indexed.", (*_SOURCE, "status")
)
_COST = _Kind("parquetry_cost_usd", "US dollars spent at known prices.", (*_SOURCE, "purpose"), counts=True)
_TOKENS = _Kind("parquetry_tokens", "Tokens sent to models.", (*_SOURCE, "purpose"), counts=True)
_KINDS = (
    *(_RUNS, _ENDED, _SUCCESS, _SECONDS, _STAGES, _COUNTS, _VERSION),
    *(_TRIED, _FRESH, _NOT_INDEXED, _COST, _TOKENS),
)


def write_textfile(file: Path, outcome: RunOutcome, known: Set[SourceKey]) -> str | None:
    """Add a run to the metrics in a file; the file is replaced as a whole.

    Args:
        file: the file, in an existing folder.
        outcome: the run.
        known: sources in the settings; others are dropped, except those of the run.

    Returns:
        Reason why the file was begun anew or is as before, for a warning; None if all went well.
    """
    if not file.parent.is_dir():
        # The lock would make the folder, and a mistyped place would look right.
        return f"{file} is not written: its folder does not exist"
    try:
        with FileLock(f"{file}.lock", timeout=LOCK_SECONDS):
            samples, wrong = _read(file)
            _drop_unknown(samples, outcome.corpus, known | outcome.sources)
            _add(samples, outcome)
            _replace(file, samples)
    except Timeout:
        return f"{file} is as before: another program holds {file}.lock"
    except OSError as error:
        return f"{file} is as before: {error.strerror or error}"
    return wrong


class _Samples:
    """The samples of all metrics."""

    def __init__(self) -> None:
        self.values: dict[_Kind, dict[Labels, float]] = {kind: {} for kind in _KINDS}

    def put(self, kind: _Kind, labels: Labels, value: float) -> None:
        """Set a gauge."""
        self.values[kind][labels] = value

    def count(self, kind: _Kind, labels: Labels, value: float) -> None:
        """Add to a counter."""
        self.values[kind][labels] = self.values[kind].get(labels, 0.0) + value

    def drop(self, kind: _Kind, beginning: Labels) -> None:
        """Drop the samples whose first labels have these values."""
        found = self.values[kind]
        for labels in [each for each in found if each[: len(beginning)] == beginning]:
            del found[labels]

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics that have samples, as a registry wants them."""
        for kind, samples in self.values.items():
            if samples:
                family = CounterMetricFamily if kind.counts else GaugeMetricFamily
                metric = family(kind.name, kind.help, labels=kind.labels)
                for labels, value in sorted(samples.items()):
                    metric.add_metric(labels, value)
                yield metric


def _read(file: Path) -> tuple[_Samples, str | None]:
    """Read the samples of earlier runs; a file that is not ours any more is begun anew."""
    samples, by_name = _Samples(), {kind.sample: kind for kind in _KINDS}
    try:
        text = read_small(file, MOST_BYTES).decode()
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                kind = by_name.get(sample.name)
                if kind is not None and set(sample.labels) == set(kind.labels):
                    samples.put(kind, tuple(sample.labels[name] for name in kind.labels), sample.value)
    except FileNotFoundError:
        return _Samples(), None
    except (ValueError, KeyError, IndexError) as error:
        return _Samples(), f"{file} was not readable ({type(error).__name__}) and is begun anew"
    return samples, None


def _drop_unknown(samples: _Samples, corpus: str, known: Set[SourceKey]) -> None:
    """Drop the gauges of sources that are in the settings no more: alerts on them would never end."""
    for kind in (_TRIED, _FRESH, _NOT_INDEXED):
        for labels in list(samples.values[kind]):
            if labels[0] == corpus and labels[1:3] not in known:
                samples.drop(kind, labels)


def _add(samples: _Samples, outcome: RunOutcome) -> None:
    run, at = (outcome.corpus, outcome.kind), outcome.ended_at.timestamp()
    samples.count(_RUNS, (*run, outcome.status), 1)
    samples.put(_ENDED, run, at)
    samples.put(_SUCCESS, run, outcome.is_success)
    samples.put(_SECONDS, run, outcome.seconds)
    samples.drop(_STAGES, run)
    for stage, seconds in outcome.seconds_by_stage.items():
        samples.put(_STAGES, (*run, stage), seconds)
    if outcome.version is not None:
        samples.put(_VERSION, (outcome.corpus,), outcome.version)
    for name, count in outcome.counts.items():
        samples.put(_COUNTS, (*run, name), count)
    for source in outcome.sources:
        samples.put(_TRIED, (outcome.corpus, *source), at)
        if source in outcome.fresh:
            samples.put(_FRESH, (outcome.corpus, *source), at)
    _add_not_indexed(samples, outcome.corpus, outcome.not_indexed, outcome.sources)
    for cost in outcome.costs:
        labels = (outcome.corpus, cost.namespace or "", cost.source or "", cost.purpose)
        samples.count(_TOKENS, labels, cost.tokens)
        samples.count(_COST, labels, cost.cost_usd or 0.0)


def _add_not_indexed(
    samples: _Samples, corpus: str, found: Mapping[tuple[str, str, str], int] | None, sources: Set[SourceKey]
) -> None:
    if found is None:
        return
    for source in sources:
        for status in ("failed", "skipped"):
            samples.put(_NOT_INDEXED, (corpus, *source, status), found.get((*source, status), 0))


def _replace(file: Path, samples: _Samples) -> None:
    registry = CollectorRegistry()
    registry.register(samples)
    # The collector reads `*.prom` only, and so nothing unfinished.
    with (
        NamedTemporaryFile(dir=file.parent, prefix=f".{file.name}.", delete=False) as written,
        ExitStack() as unfinished,
    ):
        unfinished.callback(_remove, Path(written.name))
        written.write(generate_latest(registry))
        written.flush()
        os.fchmod(written.fileno(), _MODE)
        Path(written.name).replace(file)
        unfinished.pop_all()


def _remove(file: Path) -> None:
    with suppress(OSError):
        file.unlink()
