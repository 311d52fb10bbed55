"""Each error is classified in one place; errors cross process boundaries intact."""

import errno
import pickle

import pytest

from parquetry.errors import (
    BrokenDocument,
    DocumentError,
    MissingExtra,
    ParquetryError,
    PublishConflict,
    RefusedError,
    SettingsError,
    SkippedDocument,
    StorageError,
    TransientError,
    Verdict,
    classify,
)

FULL = "no space left on device: x"
CASES = [
    pytest.param(SkippedDocument("empty", "no content"), Verdict("skip", "empty", "no content"), id="skipped"),
    pytest.param(BrokenDocument("damaged", "cut short"), Verdict("fail", "damaged", "cut short"), id="broken"),
    pytest.param(DocumentError("odd", "is odd"), Verdict("fail", "odd", "is odd"), id="document"),
    pytest.param(
        TransientError("unreachable", "no answer"), Verdict("retry", "unreachable", "no answer"), id="transient"
    ),
    pytest.param(RefusedError("too dear"), Verdict("stop", "refused", "too dear"), id="refused"),
    pytest.param(SettingsError("wrong key"), Verdict("stop", "stopped", "wrong key"), id="settings"),
    pytest.param(StorageError("no table"), Verdict("stop", "stopped", "no table"), id="storage"),
    pytest.param(PublishConflict("was first"), Verdict("stop", "stopped", "was first"), id="conflict"),
    pytest.param(ParquetryError("other"), Verdict("stop", "stopped", "other"), id="any-of-ours"),
    pytest.param(
        FileNotFoundError(errno.ENOENT, "No such file", "x"),
        Verdict("retry", "vanished", "x was listed but is gone"),
        id="vanished",
    ),
    pytest.param(
        FileNotFoundError(), Verdict("retry", "vanished", "file was listed but is gone"), id="vanished-unnamed"
    ),
    pytest.param(
        PermissionError(errno.EACCES, "Permission denied", "x"),
        Verdict("retry", "unreadable", "no permission to read x"),
        id="unreadable",
    ),
    pytest.param(
        MemoryError(), Verdict("fail", "memory", "needed more memory than the limit for one document"), id="memory"
    ),
    pytest.param(TimeoutError(), Verdict("retry", "timeout", "timed out"), id="timeout"),
    pytest.param(TimeoutError("after 3 s"), Verdict("retry", "timeout", "after 3 s"), id="timeout-with-words"),
    pytest.param(OSError(errno.ENOSPC, "full", "x"), Verdict("stop", "disk-full", FULL), id="disk-full"),
    pytest.param(OSError(errno.EDQUOT, "quota", "x"), Verdict("stop", "disk-full", FULL), id="quota"),
    pytest.param(OSError(errno.EFBIG, "too big", "x"), Verdict("stop", "disk-full", FULL), id="file-size-limit"),
    pytest.param(
        OSError(errno.EIO, "Input/output error"),
        Verdict("retry", "io-error", "OSError: [Errno 5] Input/output error"),
        id="io-error",
    ),
    pytest.param(ValueError("first\nlast"), Verdict("fail", "unexpected", "ValueError: last"), id="unexpected"),
    pytest.param(KeyError(), Verdict("fail", "unexpected", "KeyError: "), id="unexpected-without-words"),
]


@pytest.mark.parametrize(("error", "verdict"), CASES)
def test_error_has_one_meaning(error, verdict):
    assert classify(error) == verdict


def test_unexpected_error_is_cut_to_a_readable_length():
    assert len(classify(ValueError("x" * 9999)).detail) == 500


@pytest.mark.parametrize(
    "error",
    [
        SkippedDocument("empty", "no content"),
        BrokenDocument("damaged", "cut short"),
        TransientError("rate-limited", "slow down", 2.5),
        SettingsError("wrong key"),
        MissingExtra("ocr", "reading images"),
        RefusedError("too dear"),
        StorageError("no table"),
        PublishConflict("was first"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_error_survives_pickling(error):
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), str(copy), vars(copy), copy.exit_code) == (
        type(error),
        str(error),
        vars(error),
        error.exit_code,
    )


def test_exit_codes_are_those_that_scripts_know():
    codes = {
        each: each.exit_code for each in (SettingsError, MissingExtra, RefusedError, StorageError, PublishConflict)
    }
    assert list(codes.values()) == [2, 2, 3, 4, 4]


def test_missing_extra_names_the_install_line():
    assert str(MissingExtra("ocr", "reading images")) == (
        "reading images needs an optional package; install it with: pip install 'parquetry[ocr]'"
    )
