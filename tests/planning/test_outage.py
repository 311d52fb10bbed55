"""An outage is a service that failed every request; failures caused by a document do not count."""

import pytest

from parquetry.errors import BrokenDocument, ServiceRefused, SettingsError, TransientError
from parquetry.planning.outage import Lost, Need, lost_to, outages

DOWN = Lost("embedding", "service-failed", "answered 500")
SLOW = Lost("embedding", "timeout", "did not answer in time")
NO_KEY = Lost("embedding", "service-refused", "does not let this API key in")


def told(*lost, source="docs"):
    return [Need("default", source, each) for each in lost]


@pytest.mark.parametrize(
    ("needs", "found"),
    [
        ([], []),
        (told(None), []),
        (told(DOWN), ["source docs: the embedding service failed its document (service-failed: answered 500)"]),
        (told(DOWN, DOWN, SLOW), ["source docs: the embedding service failed 3 of 3 documents (service-failed:"]),
        (told(DOWN, DOWN, None), []),
        (told(NO_KEY, None, None), ["source docs: the embedding service failed 1 of 3 documents (service-refused:"]),
        (told(DOWN, NO_KEY), ["source docs: the embedding service failed 2 of 2 documents (service-refused:"]),
        ([*told(DOWN), *told(None, source="b")], ["source docs: "]),
        ([*told(DOWN), *told(SLOW, source="b")], ["source docs: ", "source b: "]),
        ([*told(DOWN), Need("other", "docs", None)], ["source docs: "]),
        (
            [Need("default", "a", Lost("store", "unreachable", "no answer"), "listing")],
            ["source a: its store "],
        ),
    ],
)
def test_source_is_out_when_a_service_failed_all_it_needed_or_turned_it_away(needs, found):
    lines = [str(each) for each in outages(needs)]
    assert len(lines) == len(found)
    for line, start in zip(lines, found, strict=True):
        assert line.startswith(start)
        assert line.endswith("; the next run tries again")


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (TransientError("rate-limited", "slow down"), "rate-limited"),
        (ConnectionResetError(104, "reset"), "io-error"),
        (PermissionError(13, "denied", "s3://a/b"), "unreadable"),
        (ServiceRefused("no quota left"), "service-refused"),
        (TransientError("changed-while-read", "kept changing"), None),
        (FileNotFoundError(2, "gone", "b"), None),
        (BrokenDocument("damaged", "is no PDF"), None),
        (BrokenDocument("timeout", "took longer than 120 s"), None),
        (SettingsError("embedding.dimension is wrong"), None),
        (KeyError("data"), None),
    ],
)
def test_reason_of_its_own_is_no_failure_of_a_service(error, reason):
    lost = lost_to("store", error)
    assert (lost.reason if lost else None) == reason
