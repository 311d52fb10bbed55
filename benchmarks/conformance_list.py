"""List of what OpenAI's published schema says about files and vector stores: names of properties, and their bounds.

    python -m benchmarks.conformance_list SCHEMA.json

Writes `benchmarks/openai_properties.json`, from which `benchmarks.conformance` makes its cases. Nothing of the schema's
text is taken over.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

LIST = Path(__file__).parent / "openai_properties.json"
_PATHS = ("/files", "/vector_stores")
_METHODS = ("get", "post", "delete")
_BOUNDS = {
    "minimum": "minimum",
    "maximum": "maximum",
    "minItems": "fewest",
    "maxItems": "most",
    "maxProperties": "most",
    "maxLength": "longest",
}
"""keyword of JSON schema -> name in the list"""
_BETWEEN = re.compile(r"between ([\d,]+) and ([\d,]+)")
"""bounds that the schema states in words alone"""
Rules = dict[str, Any]


class Schema:
    """A published description of an API.

    Args:
        content: the description, as OpenAPI.
    """

    def __init__(self, content: Mapping[str, Any]) -> None:
        self._content = content

    def operations(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Yield method and path of each operation on files and vector stores, and its description."""
        for path, methods in sorted(self._content["paths"].items()):
            if path.startswith(_PATHS):
                yield from ((f"{method.upper()} {path}", methods[method]) for method in _METHODS if method in methods)

    def listed(self, operation: Mapping[str, Any]) -> dict[str, Any]:
        """Return what the list says of an operation."""
        found: dict[str, Any] = {}
        for each in operation.get("parameters", ()):
            if each["in"] in ("path", "query"):
                rules = self._rules(each["schema"], required=each.get("required", False))
                found.setdefault(each["in"], {})[each["name"]] = rules | _stated(each.get("description", ""))
        for kind, body in operation.get("requestBody", {}).get("content", {}).items():
            found["form" if kind.startswith("multipart") else "body"] = self._properties(body["schema"])
        for kind, answer in operation["responses"]["200"]["content"].items():
            schema = answer.get("schema", {})
            if kind == "application/json" and self._resolved(schema).get("type") != "string":
                found["answer"] = self._properties(schema)
        found["errors"] = sorted(status for status in operation["responses"] if status != "200")
        return found

    def _resolved(self, schema: Mapping[str, Any]) -> Mapping[str, Any]:
        while "$ref" in schema:
            schema = self._content["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
        return schema

    def _alternatives(self, schema: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
        schema = self._resolved(schema)
        several = schema.get("oneOf") or schema.get("anyOf") or schema.get("allOf")
        if not several or all(set(each) <= {"required"} for each in several):
            yield schema
            return
        for each in several:
            if set(each) != {"nullable"}:
                yield from self._alternatives(each)

    def _rules(self, schema: Mapping[str, Any], *, required: bool) -> Rules:
        parts = list(self._alternatives(schema))
        found: Rules = {"types": sorted({each["type"] for each in parts if "type" in each})}
        if any(each.get("nullable") for each in (*parts, *schema.get("allOf", ()))):
            found["types"].append("null")
        values = [value for each in parts for value in each.get("enum", ())]
        if values:
            found["values"] = list(dict.fromkeys(values))
        for each in parts:
            found |= {name: each[keyword] for keyword, name in _BOUNDS.items() if keyword in each}
            if "propertyNames" in each:
                found["longest_key"] = each["propertyNames"]["maxLength"]
            if each.get("additionalProperties") is False:
                found["closed"] = True
            if each.get("format") == "binary":
                found["types"] = ["file"]
        return found | ({"required": True} if required else {})

    def _properties(self, schema: Mapping[str, Any], prefix: str = "", seen: tuple[Any, ...] = ()) -> dict[str, Rules]:
        """Return the rules of all properties below a schema by their paths; `[]` stands for each of a list."""
        found: dict[str, Rules] = {} if prefix else {"": self._rules(schema, required=True)}
        parts = list(self._alternatives(schema))
        for part in parts:
            if part.get("items"):
                found |= self._below(part["items"], f"{prefix}[]", (*seen, part))
            if isinstance(part.get("additionalProperties"), Mapping):
                found |= self._below(part["additionalProperties"], f"{prefix}.*", (*seen, part))
            for name, inner in part.get("properties", {}).items():
                place = f"{prefix}.{name}" if prefix else name
                holders = [each for each in parts if name in each.get("properties", {})]
                everywhere = len(holders) == len([each for each in parts if each.get("type") != "null"])
                required = everywhere and all(name in each.get("required", ()) for each in holders)
                known = found.get(place, {})
                rules = self._rules(inner, required=required)
                for key in ("types", "values"):
                    if key in known:
                        rules[key] = list(dict.fromkeys([*known[key], *rules.get(key, ())]))
                found[place] = {**known, **rules}
                found |= self._properties(inner, place, (*seen, part)) if part not in seen else {}
        return found

    def _below(self, schema: Mapping[str, Any], place: str, seen: tuple[Any, ...]) -> dict[str, Rules]:
        if any(each in seen for each in self._alternatives(schema)) or "$recursiveRef" in str(schema):
            return {}
        return {place: self._rules(schema, required=False)} | self._properties(schema, place, seen)


def _stated(text: str) -> Rules:
    found = _BETWEEN.search(text)
    if found is None:
        return {}
    return {"minimum": int(found[1].replace(",", "")), "maximum": int(found[2].replace(",", ""))}


def main() -> None:
    """Write the list."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("schema", type=Path, help="OpenAI's published schema, as JSON")
    schema = Schema(json.loads(parser.parse_args().schema.read_text("utf-8")))
    lines = []
    for name, operation in schema.operations():
        groups = ",\n".join(_group(group, rules) for group, rules in schema.listed(operation).items())
        lines.append(f" {json.dumps(name)}: {{\n{groups}\n }}")
    LIST.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")
    print(f"{len(lines)} operations are in {LIST}")


def _group(name: str, rules: Any) -> str:
    if not isinstance(rules, dict) or not rules:
        return f"  {json.dumps(name)}: {json.dumps(rules)}"
    inner = ",\n".join(f"   {json.dumps(place)}: {json.dumps(each)}" for place, each in rules.items())
    return f"  {json.dumps(name)}: {{\n{inner}\n  }}"


if __name__ == "__main__":
    main()
