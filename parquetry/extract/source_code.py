"""Source code and configuration files: the text unchanged, with its definitions as headings."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING

from parquetry.errors import SkippedDocument
from parquetry.extract.base import ListedExtractor
from parquetry.extract.builder import TextBuilder, normalise
from parquetry.extract.encoding import decode, replaced
from parquetry.language.grammars import GRAMMARS, MAX_CHARACTERS, parsed
from parquetry.model import Extraction, RawDocument

if TYPE_CHECKING:
    from tree_sitter import Node

    from parquetry.settings.extraction import ExtractionSettings

LANGUAGES = {
    "text/x-python": "python",
    "text/x-javascript": "javascript",
    "text/x-typescript": "typescript",
    "text/x-rust": "rust",
    "text/x-go": "go",
    "text/x-java": "java",
    "text/x-c": "c",
    "text/x-c++": "cpp",
    "text/x-sh": "bash",
    "text/x-sql": "sql",
    "text/x-toml": "toml",
    "text/x-yaml": "yaml",
    "text/x-ini": "ini",
    "text/x-source": None,
}
"""media type -> name of the grammar or of the language"""

_FUNCTIONS = frozenset({
    "function_definition", "function_declaration", "generator_function_declaration", "method_definition",
    "method_declaration", "constructor_declaration", "function_item", "abstract_method_signature",
})  # fmt: skip
_CONTAINERS = frozenset({
    "class_definition", "class_declaration", "abstract_class_declaration", "interface_declaration", "enum_declaration",
    "record_declaration", "trait_item", "impl_item", "mod_item", "class_specifier", "struct_specifier",
    "namespace_definition", "internal_module",
})  # fmt: skip
_TYPES = frozenset({
    "struct_item", "enum_item", "union_item", "type_item", "macro_definition", "type_alias_declaration",
    "type_declaration", "enum_specifier",
})  # fmt: skip
_WRAPPERS = frozenset({"decorated_definition", "export_statement", "template_declaration", "ambient_declaration"})
_TRANSPARENT = frozenset({
    "preproc_ifdef", "preproc_if", "linkage_specification", "declaration_list", "class_body", "block", "enum_body",
    "field_declaration_list", "interface_body", "enum_body_declarations", "statement_block", "object_type",
})  # fmt: skip
_COMMENTS = frozenset({"comment", "line_comment", "block_comment", "attribute_item"})
_MAX_LEVEL = 4
_MAX_DEPTH = 100
"""levels of nested blocks and conditions in which definitions are searched"""


@dataclass(frozen=True, slots=True)
class _Definition:
    row: int
    """0-based line on which it starts, including its comments and decorators"""
    level: int
    title: str


class SourceCodeExtractor(ListedExtractor):
    """Reads source code."""

    def extract(
        self,
        document: RawDocument,
        media_type: str,
        settings: ExtractionSettings,  # noqa: ARG002 (none applies)
    ) -> Extraction:
        text, encoding = decode(document.content)
        language = LANGUAGES[media_type]
        if language == "typescript" and document.filename.lower().endswith(".tsx"):
            language = "tsx"
        builder = TextBuilder("code", language)
        text = normalise(text, keep_layout=True).strip("\n")
        if builder.text(text, keep_layout=True) is None:
            raise SkippedDocument("no-text", "the file holds only white space")
        definitions = _definitions(text, language)
        if definitions:
            offsets = list(accumulate((len(line) + 1 for line in text.split("\n")), initial=0))
            for definition in definitions:
                builder.mark_heading(offsets[definition.row], definition.level, definition.title)
        return builder.build(
            title=document.filename,
            metadata={"language": language} if language else {},
            media_type=media_type,
            extractor=self.id,
            warnings=[
                *replaced(document.content, text, encoding),
                *([f"it cannot be parsed as {language}: its definitions were not read"] if definitions is None else []),
            ],
        )


def _definitions(text: str, language: str | None) -> list[_Definition] | None:
    """Return the definitions of a file in order, at most one per line; None if it cannot be parsed."""
    if language not in GRAMMARS or len(text) > MAX_CHARACTERS:
        return []
    source = text.encode()
    tree = parsed(source, language)
    if tree is None:
        return None
    found: list[_Definition] = []
    _collect(tree.root_node, source, 1, found)
    distinct: list[_Definition] = []
    for definition in found:
        if not distinct or definition.row > distinct[-1].row:
            distinct.append(definition)
    return distinct


def _collect(node: Node, source: bytes, level: int, found: list[_Definition], depth: int = 0) -> None:
    if depth > _MAX_DEPTH:
        return
    row = -1
    end = -1
    for child in node.named_children:
        if child.type in _COMMENTS:
            # A comment directly above a definition belongs to it.
            row = row if row >= 0 and child.start_point.row == end + 1 else child.start_point.row
            end = child.end_point.row - (child.end_point.column == 0)
            continue
        above = row if row >= 0 and child.start_point.row == end + 1 else child.start_point.row
        row = -1
        inner = _unwrapped(child)
        title = _title(inner, source)
        if title:
            found.append(_Definition(above, level, title))
        if inner.type in _TRANSPARENT and not title:
            _collect(inner, source, level, found, depth + 1)
        elif inner.type in _CONTAINERS and level < _MAX_LEVEL:
            for part in inner.named_children:
                if part.type in _TRANSPARENT:
                    _collect(part, source, level + bool(title), found, depth + 1)


def _unwrapped(node: Node) -> Node:
    while node.type in _WRAPPERS:
        inside = node.child_by_field_name("definition") or node.child_by_field_name("declaration")
        inside = inside or next((child for child in reversed(node.named_children) if child.type not in _COMMENTS), None)
        if inside is None:
            break
        node = inside
    return node


def _title(node: Node, source: bytes) -> str | None:
    """Return the title of a definition: `Name`, `name()`, `impl Trait for Name`; None for other nodes."""
    if node.type in ("lexical_declaration", "variable_declaration"):
        value = next((child for child in node.named_children if child.type == "variable_declarator"), None)
        function = value.child_by_field_name("value") if value is not None else None
        if value is None or function is None or function.type not in ("arrow_function", "function_expression", "class"):
            return None
        return _named(value, source, "()" if function.type != "class" else "")
    if node.type == "impl_item":
        trait, kind = node.child_by_field_name("trait"), node.child_by_field_name("type")
        of = f"{_text(trait, source)} for " if trait is not None else ""
        return f"impl {of}{_text(kind, source)}"
    if node.type in _FUNCTIONS:
        return _named(node, source, "()")
    if node.type in _CONTAINERS or (node.type in _TYPES and node.child_by_field_name("body") is not None):
        return _named(node, source, "")
    if node.type in _TYPES:
        return _named(node, source, "") or next((_named(child, source, "") for child in node.named_children), None)
    return None


def _named(node: Node, source: bytes, suffix: str) -> str | None:
    name = node.child_by_field_name("name")
    if name is None:
        # C and C++ nest the name in declarators: `int *(*f)(void)`.
        name = node.child_by_field_name("declarator")
        while name is not None and (inner := name.child_by_field_name("declarator")) is not None:
            name = inner
    return f"{_text(name, source)}{suffix}" if name is not None else None


def _text(node: Node | None, source: bytes) -> str:
    if node is None:
        return ""
    return " ".join(source[node.start_byte : node.end_byte].decode("utf-8", "replace").split())[:120]
