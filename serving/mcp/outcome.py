"""Outcomes of tools: text for the model, and structured data where the tool promises or the caller wants it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mcp_types import CallToolResult, TextContent

from parquetry.masking import masked
from parquetry.printing import json_text, plain_text, visible


@dataclass(frozen=True, slots=True)
class ToolOutcome:
    """Outcome of one call."""

    text: str
    structured: Mapping[str, Any] | None = None
    failed: bool = False
    meta: Mapping[str, Any] | None = None
    """data for the client alone"""

    def result(self) -> CallToolResult:
        """Return the result for the wire, without characters that a reader does not see."""
        return CallToolResult(
            content=[TextContent(type="text", text=plain_text(self.text))],
            structured_content=None if self.structured is None else legible(self.structured),
            is_error=self.failed,
            _meta=None if self.meta is None else dict(self.meta),
        )


def as_text_too(value: Mapping[str, Any]) -> ToolOutcome:
    """Return structured data that stands in the text as JSON, too, for clients that read text alone."""
    return ToolOutcome(json_text(legible(value)), value)


def failure(line: str) -> ToolOutcome:
    """Return the outcome of a call that failed: one line."""
    return ToolOutcome(visible(masked(" ".join(line.split()))), failed=True)


def legible(value: Any) -> Any:
    """Return JSON-able data whose texts have no control or invisible characters."""
    if isinstance(value, str):
        return plain_text(value)
    if isinstance(value, Mapping):
        return {plain_text(str(key)): legible(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [legible(each) for each in value]
    if value is None or isinstance(value, bool | int | float):
        return value
    return json.loads(json.dumps(value, default=str))
