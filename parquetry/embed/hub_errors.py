"""Errors of the Hugging Face Hub's client, translated."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from parquetry.errors import (
    DISK_FULL,
    DiskFull,
    ParquetryError,
    ServiceRefused,
    SettingsError,
    TransientError,
    first_line,
)
from parquetry.settings.hub import TOKEN_VARIABLE, HubModel, HubSettings

_REFUSED = {401, 403}
_FAILED = {408, 429}


@contextmanager
def translated(model: HubModel, hub: HubSettings) -> Iterator[None]:
    """Translate what the client raises in the block.

    Raises:
        SettingsError: the hub does not give the model out, or the cache cannot be written.
        TransientError: the hub cannot be reached, or its answer is of no use.
        DiskFull: the cache has no space left.
    """
    try:
        yield
    except ParquetryError:
        raise
    # The client is a package of its own: its errors are known once it was imported.
    except Exception as error:
        cause = (
            error.__cause__
            if isinstance(error, FileNotFoundError) and isinstance(error.__cause__, Exception)
            else error
        )
        said = _of_the_hub(cause, model, hub) or _of_the_way(cause, model, hub)
        if said is None:
            raise
        raise said from error


def _of_the_hub(error: Exception, model: HubModel, hub: HubSettings) -> ParquetryError | None:
    from huggingface_hub import errors

    where, name = hub.address, f"onnx:{model}"
    match error:
        case errors.GatedRepoError():
            return ServiceRefused(
                f"{name} is gated: accept its conditions at {where}/{model.repository}, and set {TOKEN_VARIABLE} to a "
                "token of that account"
            )
        case errors.RevisionNotFoundError():
            return SettingsError(f"{where} has {model.repository}, but not its revision {model.asked}")
        case errors.RepositoryNotFoundError():
            sent = "the token may not read it" if hub.key else f"it is private: set {TOKEN_VARIABLE}"
            return SettingsError(
                f"{where} has no model {model.repository}, or {sent}; a folder is written onnx:./{model.repository}"
            )
        case errors.RemoteEntryNotFoundError():
            return TransientError("bad-reply", f"{where} lists a file of {name} that it does not have")
        case errors.HfHubHTTPError():
            status = error.response.status_code
            if status in _REFUSED:
                return ServiceRefused(f"{where} refuses {name} with status {status}: check the token, {TOKEN_VARIABLE}")
            if status in _FAILED or status >= 500:
                reason = "rate-limited" if status == 429 else "service-failed"
                return TransientError(reason, f"{where} answers for {name} with status {status}; run it again later")
            return SettingsError(f"{where} answers for {name} with status {status}; check the address and the name")
        case errors.OfflineModeIsEnabled():
            return SettingsError(
                f"{name} is not fetched: TRANSFORMERS_OFFLINE keeps huggingface_hub from asking the hub"
            )
        case errors.HFValidationError() | errors.FileMetadataError():
            return SettingsError(f"{where} answers for {name} as no hub does: {first_line(error)}")
    return None


def _of_the_way(error: Exception, model: HubModel, hub: HubSettings) -> ParquetryError | None:
    import httpx2

    where, name = hub.address, f"onnx:{model}"
    match error:
        case httpx2.TimeoutException():
            return TransientError("timeout", f"{where} said nothing for {hub.timeout_seconds} s; {name} is not fetched")
        case httpx2.HTTPError() | httpx2.InvalidURL():
            return TransientError(
                "unreachable", f"{where} cannot be reached, so {name} is not fetched: {first_line(error)}"
            )
        case ValueError() | TypeError() | KeyError() | AttributeError():
            return TransientError("bad-reply", f"{where} answers for {name} with what is no list of files")
        case OSError() if error.errno in DISK_FULL:
            return DiskFull(f"no space is left in {hub.folder} for {name}")
        case OSError() if error.errno is None:
            return TransientError("bad-reply", f"a file of {name} came incomplete from {where}; run it again")
        case OSError():
            return SettingsError(
                f"the cache of models {hub.folder} cannot be written: {error.strerror}; set cache in [hub]"
            )
    return None
