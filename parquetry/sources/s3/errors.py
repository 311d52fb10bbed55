"""Translation of object-store errors, for listings and for single objects."""

from __future__ import annotations

import errno

from parquetry.errors import BrokenDocument, SettingsError, TransientError, first_line
from parquetry.net.response_headers import retry_after

_SIGN_IN = "the credentials have expired; sign in again (`aws sso login`, or a new AWS_SESSION_TOKEN) and run again"
_REGION = "it is in another region; set AWS_REGION, or region in [source.options]"
_ACCOUNT = "the account of these credentials may not use it; use other credentials"
_SETTINGS = {
    "NoSuchBucket": "there is no such bucket; correct the uri, or name the server in AWS_ENDPOINT_URL",
    "InvalidBucketName": "that is not the name of a bucket; correct the uri",
    "InvalidAccessKeyId": "the server does not know the access key; correct AWS_ACCESS_KEY_ID or the profile",
    "SignatureDoesNotMatch": "the secret key is wrong; correct AWS_SECRET_ACCESS_KEY or the profile",
    "ExpiredToken": _SIGN_IN,
    "ExpiredTokenException": _SIGN_IN,
    "TokenRefreshRequired": _SIGN_IN,
    "RequestExpired": _SIGN_IN,
    "InvalidToken": "the session token is wrong; correct AWS_SESSION_TOKEN",
    "AuthorizationHeaderMalformed": _REGION,
    "PermanentRedirect": _REGION,
    "IllegalLocationConstraintException": _REGION,
    "301": _REGION,
    "RequestTimeTooSkewed": "the clock of this machine is wrong; set it",
    "AccountProblem": _ACCOUNT,
    "AllAccessDisabled": _ACCOUNT,
    "InvalidPayer": _ACCOUNT,
    "NotSignedUp": _ACCOUNT,
}
"""error codes that no retry cures, with the remedy"""
_RATE = frozenset({"SlowDown", "Throttling", "ThrottlingException", "TooManyRequests", "RequestLimitExceeded", "429"})
_LATER = frozenset({"RequestTimeout", "OperationAborted", "408", "409"})
_GONE = frozenset({"NoSuchKey", "NoSuchVersion", "404"})
_DENIED = frozenset({"AccessDenied", "Forbidden", "403"})


def listing_error(error: Exception, place: str) -> Exception:
    """Translate an error raised while a place was listed.

    Args:
        error: raised by botocore.
        place: URL of the listed place.
    """
    general = _general(error, place)
    if general is not None:
        return general
    code, message = _told(error)
    if code in _DENIED:
        return SettingsError(
            f"{place} may not be listed with these credentials; grant them s3:ListBucket, use others (AWS_PROFILE, "
            "AWS_ACCESS_KEY_ID, or profile in [source.options]), or set anonymous or requester_pays there"
        )
    return SettingsError(f"{place} cannot be listed: {code}: {message}")


def reading_error(error: Exception, place: str) -> Exception:
    """Translate an error raised while one object was read.

    Args:
        error: raised by botocore, aiohttp or s3fs.
        place: URL of the object.
    """
    general = _general(error, place)
    if general is not None:
        return general
    code, message = _told(error)
    if code in _GONE:
        return FileNotFoundError(errno.ENOENT, "is not in its bucket any more", place)
    if code in _DENIED:
        return PermissionError(errno.EACCES, "these credentials may not read it", place)
    if code == "InvalidObjectState":
        return BrokenDocument("archived", "is in an archive storage class; restore it, then `parquetry reindex` it")
    return BrokenDocument("refused", f"the server does not give it: {code}: {message}")


def broken_listing(place: str, detail: str) -> TransientError:
    """Return the error for a listing that contradicts itself and allows no conclusions."""
    return TransientError("broken-listing", f"{place}: {detail}")


def is_precondition(error: Exception) -> bool:
    """Return True if an object does not match the request's conditions: replaced, or shorter than the range."""
    code, _ = _told(error)
    return code in ("PreconditionFailed", "412", "InvalidRange", "416")


def _general(error: Exception, place: str) -> Exception | None:
    """Translate errors that mean the same for listings and reads; return None for all others."""
    from botocore.exceptions import BotoCoreError, ClientError

    cause = _cause(error)
    if not isinstance(cause, ClientError):
        if isinstance(cause, BotoCoreError) and not isinstance(cause, _passing()):
            return SettingsError(f"{place}: {_credentials(cause)}")
        return TransientError("unreachable", f"{place}: {first_line(cause)}")
    code, message = _told(cause)
    if code in _SETTINGS:
        return SettingsError(f"{place}: {_SETTINGS[code]} ({code})")
    metadata = cause.response.get("ResponseMetadata", {})
    status = metadata.get("HTTPStatusCode", 0)
    if code in _RATE or status == 429:
        return TransientError(
            "rate-limited", f"{place}: {code}: {message}", retry_after(metadata.get("HTTPHeaders", {}))
        )
    if code in _LATER or (status >= 500 and status != 501):
        return TransientError(
            "unavailable", f"{place}: {code}: {message}", retry_after(metadata.get("HTTPHeaders", {}))
        )
    return None


def _cause(error: Exception) -> Exception:
    """Return the client library's own error, which s3fs wraps in an OSError."""
    from botocore.exceptions import ClientError

    return error.__cause__ if isinstance(error.__cause__, ClientError) else error


def _told(error: Exception) -> tuple[str, str]:
    """Return code and message of the server's response."""
    answer = getattr(_cause(error), "response", {}).get("Error", {})
    return str(answer.get("Code", "")), first_line(Exception(answer.get("Message", "")))


def library_errors() -> tuple[type[Exception], ...]:
    """Return the exceptions that boto3 and s3fs raise."""
    from aiohttp import ClientError as HttpError
    from botocore.exceptions import BotoCoreError, ClientError
    from botocore.parsers import ResponseParserError

    return (ClientError, BotoCoreError, ResponseParserError, HttpError, OSError)


def _passing() -> tuple[type[Exception], ...]:
    """Return the exceptions for failed connections and truncated responses."""
    from botocore import exceptions

    return (
        exceptions.HTTPClientError,
        exceptions.ConnectionError,
        exceptions.IncompleteReadError,
        exceptions.FlexibleChecksumError,
        exceptions.PaginationError,
    )


def _credentials(error: Exception) -> str:
    from botocore.exceptions import NoCredentialsError

    if isinstance(error, NoCredentialsError):
        return (
            "no credentials found; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY or AWS_PROFILE, or anonymous = true "
            "in [source.options] if it is public"
        )
    return first_line(error)
