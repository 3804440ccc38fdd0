"""DataFusion's complaints, turned into mistakes of a pipeline file."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from arroyo_core.errors import ConfigError
from arroyo_std.columns import nearest
from arroyo_std.json_operators import plain_sql
from arroyo_std.sql_functions import UserFunctions, wrong_call
from arroyo_std.sql_quoting import Quoted, columns_before_dots, find_unquoted, quote

#: The name of the input inside SQL. Users never write it; it is cut from messages.
TABLE = "__stream"

_QUALIFIER = re.compile(rf'"?{TABLE}"?\.')
_NO_FIELD = re.compile(r'No field named ("(?:[^"]|"")*"|[^\s]+?)\.(?:\s|$)')
_NO_FUNCTION = re.compile(r"Invalid function '([^']*)'\.(?:\s+Did you mean '([^']*)'\?)?")
_NO_COERCION = re.compile(r"satisfy a call to '([^']*)' function: coercion from (.*?) to the signature")
_NO_ARGUMENTS = re.compile(r"'([^']*)' does not support zero arguments")
#: What differs between DataFusion's names of types and Arrow's.
_TYPE_NAMES = {"utf8view": "string", "largeutf8": "large_string", "utf8": "string", "float64": "double"}
_SYNTAX = re.compile(r'(?:Parser|Tokenizer)Error\("(.*)"\)', re.DOTALL)
_PLACE = re.compile(r"(?:(?<=\w)\.)? at Line: (\d+), Column: (\d+)")
_PREFIXES = re.compile(
    r"^(?:(?:DataFusion|Schema|SQL|Arrow|Execution|External|Cast|Parser|Compute|Invalid argument) error: "
    r"|Error during planning: |This feature is not implemented: |Optimizer rule '\w+' failed\s+"
    r"|type_coercion\s+|caused by\s+)+"
)

_REFUSED = {
    "AggregateFunction": "an aggregate function needs many rows; use a window or an aggregate operator",
    "WindowFunction": "a window function needs many rows; use a window operator",
    "Exists": "a subquery cannot be used here; an expression sees the columns of one row",
    "InSubquery": "a subquery cannot be used here; an expression sees the columns of one row",
    "ScalarSubquery": "a subquery cannot be used here; an expression sees the columns of one row",
    "SetComparison": "a subquery cannot be used here; an expression sees the columns of one row",
    "Unnest": "unnest makes many rows of one; use std.unnest",
    "Placeholder": "a placeholder such as $1 has no value here",
}
#: What DataFusion says of a field of something that it does not take for a column.
_DOT_ACCESS = "Dot access not supported"
_UNSUPPORTED = re.compile(r"Physical plan does not support logical expression (\w+)")


def refused(kind: str, *, sql: str, field: str) -> ConfigError:
    """The error for an expression that is SQL, but needs more than one row; `kind` as DataFusion calls it."""
    return ConfigError(_REFUSED[kind], field=field, value=sql)


def explain(
    error: Exception,
    *,
    sql: str,
    field: str,
    columns: Sequence[str],
    functions: UserFunctions | None = None,
    is_good: Callable[[str], bool] | None = None,
) -> ConfigError:
    """The `ConfigError` at `field` for what DataFusion raised when it planned `sql` over `columns`.

    `functions` are the UDFs that it might have called. `is_good` tells whether other SQL could be planned.
    """
    text = str(error)
    quoted = find_unquoted(sql, columns, is_good) if is_good is not None else None
    if quoted is None and _DOT_ACCESS in text:
        quoted = columns_before_dots(sql, columns)
    if quoted is not None and quoted.columns:
        return _unquoted(quoted, sql=sql, field=field)
    if found := _NO_FIELD.search(text):
        return _unknown_column(found[1], sql=sql, field=field, columns=columns)
    if found := _NO_FUNCTION.search(text):
        other = functions.explain_unknown(found[1]) if functions else None
        if other is not None:
            return ConfigError(other, field=field, value=sql)
        suggestion = functions.nearest(found[1], found[2]) if functions else found[2]
        return ConfigError(f"no function {found[1]!r}", field=field, value=sql, suggestion=suggestion)
    if functions and (found := _NO_COERCION.search(text)) and found[1] in functions.signatures:
        given = ", ".join(_TYPE_NAMES.get(name, name) for name in found[2].lower().split(", "))
        return ConfigError(wrong_call(functions.signatures[found[1]], given), field=field, value=sql)
    if functions and (found := _NO_ARGUMENTS.search(text)) and found[1] in functions.signatures:
        return ConfigError(wrong_call(functions.signatures[found[1]], ""), field=field, value=sql)
    if (found := _UNSUPPORTED.search(text)) and found[1] in _REFUSED:
        return refused(found[1], sql=sql, field=field)
    if "table '" in text and "not found" in text:
        return ConfigError("an expression cannot read tables; it sees the columns of one row", field=field, value=sql)
    if "Unnest should be rewritten" in text:
        return refused("Unnest", sql=sql, field=field)
    if "Placeholder '" in text:
        return refused("Placeholder", sql=sql, field=field)
    if found := _SYNTAX.search(_of_written(text, sql)):
        return ConfigError(f"not a SQL expression: {_readable_syntax(found[1])}", field=field, value=sql)
    return ConfigError(readable(text), field=field, value=sql)


def readable(text: str) -> str:
    """A message of DataFusion without the names of its layers, on one line, with small first letter."""
    text = _QUALIFIER.sub("", _PREFIXES.sub("", text.strip()))
    text = " ".join(text.split()).rstrip(".")
    if text == "RecursionLimitExceeded":
        return "the SQL is nested too deep: about 50 brackets inside one another are possible"
    text = text.removesuffix(" error") if text == "Divide by zero error" else text
    return text[:1].lower() + text[1:]


def _of_written(text: str, sql: str) -> str:
    """What DataFusion says of the syntax of SQL as a person wrote it: places in what was made of it mean nothing."""
    plain = plain_sql(sql)
    place = _PLACE.search(text)
    if plain.sql == sql or place is None:
        return text
    lines = plain.sql.splitlines(keepends=True)
    offset = sum(len(line) for line in lines[: int(place[1]) - 1]) + int(place[2]) - 1
    before = sql[: plain.original_offset(offset)]
    row, column = before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1
    return _PLACE.sub(f" at Line: {row}, Column: {column}", text)


def _unknown_column(written: str, *, sql: str, field: str, columns: Sequence[str]) -> ConfigError:
    name = _QUALIFIER.sub("", written).replace('""', '"')
    if name.startswith('"') and name.endswith('"') and len(name) > 1:
        name = name[1:-1]
    return ConfigError(
        f"no column {name!r}",
        field=field,
        value=sql,
        allowed=columns,
        suggestion=nearest(name, columns),
    )


def _unquoted(quoted: Quoted, *, sql: str, field: str) -> ConfigError:
    names = ", ".join(map(repr, quoted.columns))
    shown = ", ".join(map(quote, quoted.columns))
    is_word = all(name.isidentifier() for name in quoted.columns)
    why = "SQL has a meaning of its own for this name" if is_word else "it is not a plain word"
    columns = "column" if len(quoted.columns) == 1 else "columns"
    return ConfigError(
        f"{columns} {names} must be in double quotes, {shown}: {why}", field=field, value=sql, suggestion=quoted.sql
    )


def _readable_syntax(text: str) -> str:
    text = text.replace('\\"', '"').replace("\\'", "'").replace("found: EOF", "found: the end of the text")
    text = text[:1].lower() + text[1:].rstrip(".")
    place = _PLACE.search(text)
    if place is None:
        return text
    at = f" at character {place[2]}" if place[1] == "1" else f" at line {place[1]}, character {place[2]}"
    return _PLACE.sub("", text) + at
