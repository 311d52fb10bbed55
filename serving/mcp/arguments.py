"""Arguments of the tools, from which their input schemas are made; an unknown argument is refused by name."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from parquetry.model import What
from parquetry.serving.service.request_filters import RequestFilters, RequestModel

MOST_RESULTS = 200
LONGEST_QUERY = 32_768
"""characters"""
MOST_LINES = 10_000
LONGEST_STATEMENT = 1_000
"""characters; a statement has one or two sentences"""
MOST_LISTED = 1_000

Query = Annotated[
    str, Field(min_length=1, max_length=LONGEST_QUERY, description="Question or keywords, in plain language.")
]
Namespace = Annotated[
    str | None,
    Field(max_length=255, description="Part of the knowledge base, if it has several; leave it out for your own."),
]


class SearchKnowledge(RequestModel):
    """Arguments of `search_knowledge`."""

    query: Query
    top_k: int = Field(5, ge=1, le=MOST_RESULTS, description="Maximum number of passages.")
    filters: RequestFilters | None = Field(
        None, description="Conditions on the documents, as file name (glob), tags, source, times and metadata."
    )
    namespace: Namespace = None
    type: What = Field("both", description="Documents, entries (what was remembered or learned), or both.")
    include_sources: bool = Field(
        False, description="True for structured data about the source of each passage, beside the same text."
    )
    first_citation: int = Field(
        1,
        ge=1,
        le=1_000_000,
        description="Number of the first passage: the next citation number that the search before came back with.",
    )


class Search(RequestModel):
    """Arguments of `search`."""

    query: Query


class Fetch(RequestModel):
    """Arguments of `fetch`."""

    id: str = Field(min_length=1, max_length=255, description="Id of a result of `search`.")


class ReadArguments(RequestModel):
    """Arguments of `read_document`."""

    id: str | None = Field(None, min_length=1, max_length=255, description="Id of the document.")
    path: str | None = Field(
        None, min_length=1, max_length=4096, description="Path or file name of the document, instead of its id."
    )
    from_line: int = Field(1, ge=1, le=2_000_000_000, description="First line, counted from 1.")
    lines: int = Field(300, ge=1, le=MOST_LINES, description="Maximum number of lines.")
    namespace: Namespace = None

    @model_validator(mode="after")
    def _one_document(self) -> ReadArguments:
        if (self.id is None) == (self.path is None):
            raise ValueError("give id or path")
        return self


class ListDocuments(RequestModel):
    """Arguments of `list_documents`."""

    filename: str | None = Field(
        None, min_length=1, max_length=1024, description="Only these file names or paths; a glob, as `*.md`."
    )
    tags: list[str] = Field(default_factory=list, max_length=100, description="Only documents with all these tags.")
    namespace: Namespace = None
    limit: int = Field(50, ge=1, le=MOST_LISTED, description="Maximum number of documents.")
    page: str | None = Field(None, max_length=64, description="`next` of the page before.")


class Remember(RequestModel):
    """Arguments of `remember`."""

    text: str = Field(
        min_length=1,
        max_length=LONGEST_STATEMENT,
        description="One statement of one or two sentences that can be understood without the conversation.",
    )
    level: Literal["individual", "organization", "public"] | None = Field(
        None, description="Who will find it: the user alone, the organization, or everybody; default: the narrowest."
    )
    namespace: Namespace = None


def input_schema(arguments: type[RequestModel]) -> dict[str, Any]:
    """Return the JSON schema of a tool's arguments, without references and titles, which some clients stumble over."""
    schema = arguments.model_json_schema()
    definitions = schema.pop("$defs", {})
    found: dict[str, Any] = _plain(schema, definitions)
    found.pop("description", None)
    return {**found, "type": "object"}


def _given(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a value that may be left out as that of the value when it is given."""
    choices = [each for each in schema.get("anyOf", ()) if each != {"type": "null"}]
    if len(choices) != 1:
        return schema
    return {**choices[0], **{key: value for key, value in schema.items() if key not in ("anyOf", "default")}}


def _plain(schema: Any, definitions: dict[str, Any]) -> Any:
    if isinstance(schema, list):
        return [_plain(each, definitions) for each in schema]
    if not isinstance(schema, dict):
        return schema
    schema = _given(schema)
    if "$ref" in schema:
        named = definitions[schema["$ref"].rpartition("/")[2]]
        return _plain({**named, **{key: value for key, value in schema.items() if key != "$ref"}}, definitions)
    plain = {}
    for key, value in schema.items():
        if key == "properties":
            plain[key] = {name: _plain(each, definitions) for name, each in value.items()}
        elif key != "title":
            plain[key] = _plain(value, definitions)
    return plain
