"""JSON of requests and answers.

Bodies are bounded in what they hold, so that reading one never holds up other requests for long.
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Callable, Coroutine
from functools import partial, wraps
from inspect import iscoroutinefunction
from typing import Any

import numpy as np
from anyio.to_thread import run_sync
from fastapi import Request, Response
from fastapi.exceptions import ResponseValidationError
from fastapi.routing import APIRoute
from pydantic_core import from_json

from parquetry.plural import size_of
from parquetry.serving.http.problems import Problem
from parquetry.serving.http.turns import SearchKind, kind_of

MOST_VALUES = 200_000
"""JSON values of a body larger than `UNCOUNTED_BYTES`: objects of Python are made while nothing else runs"""
UNCOUNTED_BYTES = 1024 * 1024
"""size up to which a body holds few enough values in any case"""
_AT_ONCE_BYTES = 64 * 1024
"""size up to which a body is read without a change of threads"""
_BLOCK = 1024 * 1024
_WRITES = "__writes_json__"
"""attribute of endpoints that write their answer themselves: a route is made again for each router that includes it"""
_QUOTE, _BACKSLASH = ord('"'), ord("\\")


class JsonRoute(APIRoute):
    """Route whose JSON body is read by `parsed`, and whose answer is checked and written in the thread that found it.

    The web framework would check it in another thread, and write it while nothing else is answered.
    """

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        written = iscoroutinefunction(endpoint) or hasattr(endpoint, _WRITES)
        super().__init__(path, endpoint if written else self._writing(endpoint), **options)

    def _writing(self, endpoint: Callable[..., Any]) -> Callable[..., Any]:
        """Return an endpoint that answers with the JSON of what another one returns."""

        @wraps(endpoint)
        def answer(**values: Any) -> Any:
            found, field = endpoint(**values), self.response_field
            if isinstance(found, Response) or field is None:
                return found
            checked, errors = field.validate(found, {}, loc=("response",))
            if errors:
                raise ResponseValidationError(errors=errors, body=found)
            content = field.serialize_json(
                checked,
                by_alias=self.response_model_by_alias,
                exclude_unset=self.response_model_exclude_unset,
                exclude_none=self.response_model_exclude_none,
            )
            # Where endpoints set headers of the answer to come.
            given = next((each for each in values.values() if isinstance(each, Response)), None)
            headers = {} if given is None else dict(given.headers)
            return Response(content, self.status_code or 200, headers, "application/json")

        made = answer if (kind := kind_of(endpoint)) is None else _in_turn(answer, kind)
        setattr(made, _WRITES, True)
        return made

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the handler of the route."""
        handler = super().get_route_handler()

        async def handle(request: Request) -> Response:
            return await handler(_JsonRequest(request.scope, request.receive))

        return handle


def _in_turn(endpoint: Callable[..., Any], kind: SearchKind) -> Callable[..., Any]:
    @wraps(endpoint)
    async def answer(**values: Any) -> Any:
        return await run_sync(partial(endpoint, **values), limiter=kind.limiter(values))

    return answer


class _JsonRequest(Request):
    async def json(self) -> Any:
        return await json_of(await self.body())


async def json_of(body: bytes, *, halves: bool = False) -> Any:
    """Return the value of a body, as `parsed`; a large one is read in a thread."""
    read = partial(parsed, body, halves=halves)
    return read() if len(body) <= _AT_ONCE_BYTES else await run_sync(read)


def parsed(body: bytes, *, halves: bool = False) -> Any:
    """Return the value of a body.

    Args:
        body: the body.
        halves: take escaped halves of characters, as clients send that cut texts.

    Raises:
        Problem: it is no JSON in UTF-8, or holds too many values.
    """
    # Some editors and shells of Windows write it.
    body = body.removeprefix(codecs.BOM_UTF8)
    check_values(body)
    try:
        return json.loads(body, parse_constant=_no_number) if halves else from_json(body, allow_inf_nan=False)
    except (ValueError, RecursionError) as error:
        raise Problem(422, "invalid-request", f"the body is no JSON in UTF-8: {error}") from None


async def bounded(body: bytes) -> bytes:
    """Return a body that something else reads, after `check_values`; those of a large one are counted in a thread."""
    if len(body) > UNCOUNTED_BYTES:
        await run_sync(check_values, body)
    return body


def check_values(body: bytes) -> None:
    """Refuse a body that holds too many values.

    Raises:
        Problem: it does.
    """
    if len(body) > UNCOUNTED_BYTES and _has_too_many(body):
        what = f"the body of the request has {size_of(len(body))} and holds more than {MOST_VALUES:,} JSON values"
        raise Problem(413, "too-large", f"{what}; send less at once")


def _no_number(name: str) -> Any:
    raise ValueError(f"{name} is no number of JSON")


def _has_too_many(body: bytes) -> bool:
    # Characters in texts are counted as well, which is enough for most bodies, and fast.
    return sum(body.count(mark) for mark in b",[{") > MOST_VALUES and values_in(body) > MOST_VALUES


def values_in(body: bytes) -> int:
    """Return about the number of values in JSON: the commas and opening brackets that stand in no text.

    Computed by NumPy block by block, which lets other threads run.
    """
    found, inside, slashes = 0, False, 0
    for start in range(0, len(body), _BLOCK):
        block = np.frombuffer(body, np.uint8, min(_BLOCK, len(body) - start), start)
        quotes, slashes = _unescaped_quotes(block, slashes)
        texts = np.logical_xor.accumulate(quotes) ^ inside
        marks = (block == ord(",")) | (block == ord("[")) | (block == ord("{"))
        found += int(np.count_nonzero(marks & ~texts))
        inside = bool(texts[-1])
    return found


def _unescaped_quotes(block: np.ndarray[Any, Any], before: int) -> tuple[np.ndarray[Any, Any], int]:
    """Return where texts begin and end, and the number of backslashes at the end of a block.

    Args:
        block: bytes.
        before: number of backslashes just before the block.
    """
    quotes = block == _QUOTE
    slashes = block == _BACKSLASH
    if not before and not slashes.any():
        return quotes, 0
    places = np.arange(len(block))
    others = np.maximum.accumulate(np.where(slashes, -1, places))
    run = places - others + np.where(others < 0, before, 0)
    escaped = np.concatenate(([before], run[:-1])) % 2 == 1
    return quotes & ~escaped, int(run[-1])
