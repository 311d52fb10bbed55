"""Tools of a request: `file_search`, which this service carries out, and functions, which the client does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from parquetry.serving.responses.given import Given

MOST_STORES = 20
"""vector stores of one search"""
MOST_RESULTS = 50
DEFAULT_RESULTS = 10
MOST_QUERIES = 5
"""queries of one call"""
MOST_QUERY_CHARACTERS = 4096
_NAME = "file_search"
_DESCRIPTION = (
    "Search the user's files. Ask one or several short, specific queries in the words that the files may use; each "
    "finds excerpts of files. Ask again with other words if the excerpts do not answer the question."
)
_FUNCTION_MEMBERS = ("type", "name", "description", "parameters", "strict")
_DIRECT = ["direct"]


@dataclass(frozen=True, slots=True)
class FileSearch:
    """The tool `file_search` of a request."""

    function: str
    """name under which the model knows it; no function of the client has it"""
    store_ids: tuple[str, ...]
    limit: int
    """maximum number of results of a call"""
    filters: Given
    """conditions on attributes, in OpenAI's form, unchecked; null if there are none"""
    score_threshold: float
    """0 to 1, calibrated"""

    def definition(self) -> Mapping[str, Any]:
        """Return the function that the model calls."""
        queries = {
            "type": "array",
            "items": {"type": "string"},
            "minItems": 1,
            "maxItems": MOST_QUERIES,
        }
        parameters = {
            "type": "object",
            "properties": {"queries": queries},
            "required": ["queries"],
            "additionalProperties": False,
        }
        return {
            "type": "function",
            "function": {"name": self.function, "description": _DESCRIPTION, "parameters": parameters},
        }


@dataclass(frozen=True, slots=True)
class Tools:
    """The tools of a request."""

    functions: tuple[Mapping[str, Any], ...]
    """as chat completions take them"""
    file_search: FileSearch | None
    shown: tuple[Mapping[str, Any], ...]
    """as the response repeats them"""

    @property
    def names(self) -> list[str]:
        """Names of the functions."""
        return [each["function"]["name"] for each in self.functions]


def tools_of(given: Given) -> Tools:
    """Read the tools of a request.

    Raises:
        UnusableParameter: one of them cannot be used here.
    """
    functions: list[Mapping[str, Any]] = []
    shown: list[Mapping[str, Any]] = []
    search: Given | None = None
    for tool in given.items() if given else []:
        kind = tool.member("type").text()
        if kind == "function":
            functions.append(_function(tool))
            shown.append({"description": None, "parameters": None, "strict": False, **_kept(tool.object())})
        elif kind == "file_search":
            if search is not None:
                raise tool.refused("is a second file_search; name all vector stores in one")
            search = tool
            shown.append({name: value for name, value in tool.object().items() if value is not None})
        else:
            raise tool.member("type").refused(f"is {kind!r}; this service has tools of type file_search and function")
    taken = {each["function"]["name"] for each in functions}
    if len(taken) < len(functions):
        raise given.invalid("names a function twice")
    return Tools(tuple(functions), None if search is None else _file_search(search, taken), tuple(shown))


def _function(tool: Given) -> Mapping[str, Any]:
    name = tool.member("name").text(64)
    if tool.member("defer_loading").value:
        raise tool.member("defer_loading").refused("is not supported: all tools are shown to the model")
    if tool.member("allowed_callers").value not in (None, _DIRECT):
        raise tool.member("allowed_callers").refused('is not supported, except ["direct"]')
    function: dict[str, Any] = {"name": name}
    if description := tool.member("description"):
        function["description"] = description.text()
    if parameters := tool.member("parameters"):
        function["parameters"] = parameters.object()
    if strict := tool.member("strict"):
        function["strict"] = strict.flag()
    return {"type": "function", "function": function}


def _kept(function: Mapping[str, Any]) -> Mapping[str, Any]:
    return {name: function[name] for name in _FUNCTION_MEMBERS if function.get(name) is not None}


def _file_search(tool: Given, taken: set[str]) -> FileSearch:
    stores = tool.member("vector_store_ids")
    ids = tuple(dict.fromkeys(each.text(255) for each in stores.items()))
    if not 0 < len(ids) <= MOST_STORES:
        raise stores.invalid(f"has {len(ids)} ids; it has to have between 1 and {MOST_STORES}")
    most = tool.member("max_num_results")
    name = next(each for each in (_NAME, *(f"{_NAME}_{n}" for n in range(2, len(taken) + 3))) if each not in taken)
    limit = most.whole(1, MOST_RESULTS) if most else DEFAULT_RESULTS
    return FileSearch(name, ids, limit, tool.member("filters"), _threshold(tool.member("ranking_options")))


def _threshold(options: Given) -> float:
    if not options:
        return 0.0
    ranker, hybrid, threshold = (options.member(name) for name in ("ranker", "hybrid_search", "score_threshold"))
    if ranker:
        ranker.choice("auto", "default-2024-11-15")
    if hybrid:
        raise hybrid.refused("is not supported: the weights of both searches are those of the corpus")
    return threshold.number(0, 1) if threshold else 0.0


@dataclass(frozen=True, slots=True)
class ToolChoice:
    """The part of the tools that the model may or must call."""

    chat: str | Mapping[str, Any] | None
    """as chat completions take it, for the first request to the model; None for the model's own choice"""
    shown: str | Mapping[str, Any]
    """as the response repeats it"""
    allowed: frozenset[str] | None = None
    """names of the functions that the model sees; None for all"""


def tool_choice_of(given: Given, tools: Tools) -> ToolChoice:
    """Read the tool choice of a request.

    Raises:
        UnusableParameter: it names no tool of the request.
    """
    if not given:
        return ToolChoice(None, "auto")
    if isinstance(given.value, str):
        word = given.choice("none", "auto", "required")
        if word == "required" and not (tools.functions or tools.file_search):
            raise given.invalid("is 'required', and there are no tools")
        return ToolChoice(None if word == "auto" else word, word)
    if given.member("type").text() == "allowed_tools":
        mode = given.member("mode").choice("auto", "required")
        names = frozenset(_named(each, tools) for each in given.member("tools").items())
        return ToolChoice(mode if mode == "required" else None, given.object(), names)
    chosen = {"type": "function", "function": {"name": _named(given, tools)}}
    return ToolChoice(chosen, given.object())


def _named(given: Given, tools: Tools) -> str:
    kind = given.member("type").text()
    if kind == "file_search":
        if tools.file_search is None:
            raise given.invalid("names file_search, which is not among the tools")
        return tools.file_search.function
    if kind != "function":
        raise given.member("type").refused(f"is {kind!r}; this service has tools of type file_search and function")
    name = given.member("name").text()
    if name not in tools.names:
        raise given.member("name").invalid(f"is {given.member('name').shown!r}, which is not among the tools")
    return name


def offered(tools: Tools, choice: ToolChoice, *, searches: bool, forced: bool) -> Mapping[str, Any]:
    """Return `tools` and `tool_choice` of a request to the model.

    Args:
        tools: tools of the request.
        choice: the client's choice among them.
        searches: False if no more searches are allowed.
        forced: False once a tool was called, so that a required call is not required again.
    """
    definitions: Sequence[Mapping[str, Any]] = tools.functions
    if tools.file_search is not None and (searches or not tools.functions):
        definitions = (tools.file_search.definition(), *definitions)
    if choice.allowed is not None:
        definitions = [each for each in definitions if each["function"]["name"] in choice.allowed]
    if not definitions:
        return {}
    body: dict[str, Any] = {"tools": list(definitions)}
    if choice.chat == "none" or (not searches and not tools.functions):
        # The model has called the tool before, so it stays defined.
        body["tool_choice"] = "none"
    elif choice.chat is not None and forced:
        body["tool_choice"] = choice.chat
    return body
