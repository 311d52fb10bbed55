"""Requests as Open WebUI 0.12.4 sends them: those of a real one, written down by hand, with shorter prompts."""

from __future__ import annotations

from typing import Any

QUESTION = "How many days of holiday do I have?"
HEADERS = {"Accept": "*/*", "Accept-Encoding": "gzip, deflate, br", "User-Agent": "Python/3.11 aiohttp/3.14.5"}
MCP_HEADERS = {
    "Accept-Encoding": "gzip, deflate, br",
    "User-Agent": "python-httpx2/2.16.0",
    "accept": "application/json, text/event-stream",
    "content-type": "application/json",
    "mcp-protocol-version": "2026-07-28",
}
TOOL_NAMES = (
    "get_current_timestamp",
    "ask_user",
    "list_knowledge_bases",
    "search_knowledge_bases",
    "query_knowledge_files",
    "search_chats",
    "add_memory",
    "search_notes",
    "create_tasks",
)
"""some of those of its own, which it offers with every chat of a person"""


def tool(name: str) -> dict[str, Any]:
    parameters = {"properties": {"query": {"type": "string"}, "count": {"default": 5, "type": "integer"}}}
    function = {"name": name, "description": f"Do as {name} says.\nReturns JSON.", "parameters": parameters}
    return {"type": "function", "function": {**function, "parameters": {**parameters, "type": "object"}}}


def chat(question: str = QUESTION, model: str = "llama3.2", before: str | None = None) -> dict[str, Any]:
    """Return a chat of a person."""
    system = [{"role": "system", "content": before}] if before else []
    messages = [*system, {"role": "user", "content": question}]
    return {"stream": True, "model": model, "messages": messages, "tools": [tool(name) for name in TOOL_NAMES]}


FILE = (
    "### Task:\nAnswer the query with the context, and cite as [id] where <source> has an id.\n\n### Guidelines:\n"
    "- If you do not know the answer, say so.\n- Answer in the language of the query.\n- Use no XML tags.\n\n"
    '### Example of Citation:\n* "The method raises efficiency by 20% [1]."\n\n<context>\n'
    '<source id="1" resource-type="file" resource-id="0f6fd381">The lemur fund pays 77 euros for each lemur '
    "adopted in May.</source>\n</context>\n"
)
"""an attached file for the model: before the question by default, or, with RAG_SYSTEM_CONTEXT, a system message"""

TITLE = (
    "### Task:\nGenerate a short title of the chat.\n### Guidelines:\n- Two to four words.\n### Output:\n"
    'JSON format: { "title": "your title" }\n### Chat History:\n<chat_history>\nUSER: '
    f"{QUESTION}\nASSISTANT: \n</chat_history>"
)


def task(model: str) -> dict[str, Any]:
    """Return a request for a title; those for tags and follow-up questions differ in their text."""
    messages = [{"role": "user", "content": TITLE}]
    return {"model": model, "messages": messages, "stream": False, "max_tokens": 1000}


def response(model: str) -> dict[str, Any]:
    """Return a chat of a person over a connection of the type `responses`."""
    tools = [{"type": "function", **tool(name)["function"], "strict": False} for name in TOOL_NAMES]
    content = [{"type": "input_text", "text": QUESTION}]
    asked = [{"type": "message", "role": "user", "content": content}]
    return {"stream": True, "model": model, "tools": tools, "input": asked}


def mcp(number: int, method: str, **params: Any) -> tuple[dict[str, str], dict[str, Any]]:
    """Return headers and body of a request to an MCP server."""
    prefix = "io.modelcontextprotocol/"
    meta = {
        f"{prefix}protocolVersion": "2026-07-28",
        f"{prefix}clientInfo": {"name": "mcp", "version": "0.1.0"},
        f"{prefix}clientCapabilities": {"elicitation": {"form": {}, "url": {}}},
    }
    headers = {**MCP_HEADERS, "mcp-method": method}
    if "name" in params:
        headers["mcp-name"] = params["name"]
    return headers, {"jsonrpc": "2.0", "id": number, "method": method, "params": {**params, "_meta": meta}}
