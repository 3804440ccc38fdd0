"""What the editor offers while somebody types: keys of the file, operators with their settings, and functions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from arroyo_console.values import Connector, Function

Option = dict[str, str]
_LETTERS = 200
#: What a query is made of, beside functions.
_SQL_WORDS = (
    *(
        "select",
        "from",
        "where",
        "group by",
        "having",
        "order by",
        "limit",
        "insert into",
        "create table",
        "create view",
    ),
    *(
        "with",
        "as",
        "join",
        "left join",
        "right join",
        "full join",
        "on",
        "and",
        "or",
        "not",
        "in",
        "is null",
        "between",
    ),
    *("like", "case", "when", "then", "else", "end", "union all", "distinct", "count", "sum", "min", "max", "avg"),
    *("interval", "tumble", "hop", "session", "over", "partition by", "cast", "watermark for", "set"),
)


def completions(
    schema: Mapping[str, Any], connectors: Sequence[Connector], functions: Sequence[Function]
) -> dict[str, Any]:
    """For the script of the editor: lists of options, and those of the settings by operator."""
    node = schema.get("definitions", {}).get("node", {})
    called = [_option(each.name, "function", each.signature, each.text) for each in functions]
    return {
        "keys": [*_keys(schema), *_keys(node), *_keys(schema.get("properties", {}).get("checkpoint", {}))],
        "operators": [_option(each.name, "class", each.kind, each.summary) for each in connectors],
        "settings": dict(_settings(node.get("allOf", ()))),
        "functions": called,
        "sql": [*(_option(word.upper(), "keyword") for word in _SQL_WORDS), *called],
    }


def _keys(schema: Mapping[str, Any]) -> list[Option]:
    found: Mapping[str, Any] = schema.get("properties", {})
    return [_option(name, "property", "", str(each.get("description", ""))) for name, each in found.items()]


def _settings(rules: Iterable[Mapping[str, Any]]) -> Iterable[tuple[str, list[Option]]]:
    """The schema has a rule for each operator: `if` it is that one, `then` its config is this."""
    for rule in rules:
        operator = rule.get("if", {}).get("properties", {}).get("operator", {}).get("const")
        config = rule.get("then", {}).get("properties", {}).get("config", {})
        if isinstance(operator, str):
            yield operator, _keys(config)


def _option(label: str, kind: str, detail: str = "", info: str = "") -> Option:
    option = {"label": label, "type": kind}
    if detail and detail != label:
        option["detail"] = detail[:_LETTERS]
    if info:
        option["info"] = info[:_LETTERS]
    return option
