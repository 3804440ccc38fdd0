"""What DataFusion says of a query that it cannot plan, as what is wrong and what to write instead."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

_TYPES = {
    "Boolean": "BOOLEAN",
    "Date32": "DATE",
    "Float32": "FLOAT",
    "Float64": "DOUBLE",
    "Int8": "TINYINT",
    "Int16": "SMALLINT",
    "Int32": "INT",
    "Int64": "BIGINT",
    "LargeUtf8": "TEXT",
    "Null": "NULL",
    "UInt8": "TINYINT UNSIGNED",
    "UInt16": "SMALLINT UNSIGNED",
    "UInt32": "INT UNSIGNED",
    "UInt64": "BIGINT UNSIGNED",
    "Utf8": "TEXT",
    "Utf8View": "TEXT",
}
_BUILT: tuple[tuple[re.Pattern[str], Callable[[str], str]], ...] = (
    (re.compile(r"(?:Large)?List\((.*)\)"), lambda inner: f"{type_name(inner)}[]"),
    (re.compile(r"Decimal\d+\((.*)\)"), lambda inner: f"DECIMAL({inner})"),
    (re.compile(r"Timestamp\((.*)\)"), lambda inner: "TIMESTAMP"),
    (re.compile(r"Time\d+\((.*)\)"), lambda inner: "TIME"),
    (re.compile(r"Interval\((.*)\)"), lambda inner: "INTERVAL"),
    (re.compile(r"(?:Duration)\((.*)\)"), lambda inner: "INTERVAL"),
    (re.compile(r"Struct\((.*)\)"), lambda inner: "STRUCT"),
    (re.compile(r"Map\((.*)\)"), lambda inner: "MAP"),
    (re.compile(r"(?:FixedSize|Large)?Binary(.*)"), lambda inner: "BYTEA"),
)
#: DataFusion's names of operators that it parses and does not plan.
_OPERATORS = {
    "PGStartsWith": ("^@", "starts_with(x, y)"),
    "Overlaps": ("overlaps", "a.start < b.end AND b.start < a.end"),
    "DuckIntegerDivide": ("//", "x / y, which is whole for whole numbers"),
    "MyIntegerDivide": ("div", "x / y, which is whole for whole numbers"),
    "PGExp": ("^", "power(x, y)"),
    "HashMinus": ("#-", "a user function"),
    "AtQuestion": ("@?", "extract_json(x, path)"),
    "AtAt": ("@@", "LIKE, or x ~ pattern"),
    "QuestionAnd": ("?&", "x ? 'a' AND x ? 'b'"),
    "QuestionPipe": ("?|", "x ? 'a' OR x ? 'b'"),
    "HashArrow": ("#>", "x -> 'a' -> 'b'"),
    "HashLongArrow": ("#>>", "x -> 'a' ->> 'b'"),
}
#: Syntax that it parses and does not plan, by the name of its part.
_SYNTAX = {
    "Convert": (("convert", "try_convert"), "CONVERT() is not planned: write CAST(x AS TYPE)"),
    "RLike": (("rlike", "regexp"), "RLIKE and REGEXP are not planned: write x ~ pattern"),
    "MatchAgainst": (("match",), "MATCH is not planned: write LIKE, or x ~ pattern"),
    "Prior": (("prior",), "PRIOR is not planned: join the table with itself once for each step"),
    "MemberOf": (("member",), "MEMBER OF is not planned: write array_has(list, x)"),
}


def type_name(said: str) -> str:
    """The type as SQL has it."""
    said = said.strip()
    for pattern, name in _BUILT:
        if found := pattern.fullmatch(said):
            return name(found[1])
    return _TYPES.get(said, said)


@dataclass(frozen=True, slots=True)
class Hint:
    """A message, and words of the query at whose first it is."""

    message: str
    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Rule:
    said: re.Pattern[str]
    make: Callable[[re.Match[str]], Hint]


def hint(said: str) -> Hint | None:
    """The hint for what DataFusion says; None where there is none."""
    for rule in _RULES:
        if found := rule.said.search(said):
            return rule.make(found)
    return None


def _rule(pattern: str, message: str, *words: str, types: tuple[int, ...] = ()) -> _Rule:
    """`{n}` in the message and the words is what the pattern found; those of `types` are named as in SQL."""

    def make(found: re.Match[str]) -> Hint:
        said = [each or "" for each in found.groups()]
        named = [type_name(each) if index in types else each for index, each in enumerate(said)]
        return Hint(message.format(*named), tuple(word.format(*said) for word in words))

    return _Rule(re.compile(pattern, re.DOTALL), make)


def _cast(found: re.Match[str]) -> Hint:
    kind, target = type_name(found[1]), type_name(found[2])
    instead = "cast one of its elements, x[1]" if kind.endswith("[]") else "cast one of its fields, x.name"
    if not kind.endswith("[]") and kind not in ("STRUCT", "MAP"):
        instead = "cast it to TEXT first, or compute it with functions"
    return Hint(f"{kind} cannot be cast to {target}: {instead}", ("cast", "try_cast", "::"))


def _operator(found: re.Match[str]) -> Hint:
    written, instead = _OPERATORS.get(found[1], ("", "a function"))
    shown = written.upper() or found[1]
    return Hint(f"the operator {shown} is not planned: write {instead}", (written,) if written else ())


def _node(found: re.Match[str]) -> Hint:
    words, message = _SYNTAX.get(found[1], ((), f"{found[1]} is not planned: write it with functions, or with CASE"))
    return Hint(message, words)


_RULES = (
    _rule(
        r"(\w+) queries have different number of columns",
        "{0} needs as many columns on both sides: write CAST(NULL AS TYPE) where one side has none",
        "{0}",
    ),
    _rule(
        r"Incompatible inputs for Union: .*? of type (.+?), but got incompatible type (.+) on column '(.*?)'",
        "UNION of {0} and {1} in the column {2!r}: CAST one of them",
        "union",
        types=(0, 1),
    ),
    _Rule(re.compile(r"[Uu]nsupported CAST from (.+) to (.+?)(?:\n|$)"), _cast),
    _rule(
        r"Unsupported SQL type (\w+)",
        "there is no type {0}: write BIGINT, DOUBLE, DECIMAL(10, 2), TEXT, BOOLEAN, TIMESTAMP, or another one",
        "{0}",
    ),
    _rule(
        r"Failed to coerce then \((.+?)\) and else \((.+?)\)",
        "CASE gives {0} and {1}: CAST one of them",
        "case",
        types=(0, 1),
    ),
    _rule(r"Failed to coerce .*? in CASE", "CASE compares values of types that do not go together: CAST them", "case"),
    _rule(
        r"common argument type for (?:logical boolean|comparison) operation (.+) (AND|OR) (.+?)(?:\n|$)",
        "{1} joins conditions, and has {0} and {2} here: compare the value, as in x <> 0",
        "{1}",
        types=(0, 2),
    ),
    _rule(
        r"common argument type for comparison operation (.+?) "
        r"(=|!=|<>|<=|>=|<|>|IS (?:NOT )?DISTINCT FROM) (.+?)(?:\n|$)",
        "{0} and {2} cannot be compared: CAST one of them",
        "{1}",
        "intersect",
        "except",
        "in",
        "on",
        types=(0, 2),
    ),
    _rule(
        r"arithmetic expression (.+?) ([-+*/%]) (.+?) to valid types",
        "there is no {1} of {0} and {2}: CAST one of them",
        "{1}",
        types=(0, 2),
    ),
    _rule(
        r"temporal operation (.+?) ([-+*/%]) ([^:\n]+)",
        "there is no {1} of {0} and {2}: add and subtract intervals, or compute with CAST(x AS BIGINT)",
        "{1} interval",
        "interval",
        "{1}",
        types=(0, 2),
    ),
    _rule(
        r"non-boolean predicate '.*' returning (.+?)(?:\n|$)",
        "a condition is BOOLEAN, and this one is {0}: compare it, as in x <> 0",
        "where",
        "having",
        "qualify",
        types=(0,),
    ),
    _rule(
        r"Join condition must be boolean type, but got (.+?)(?:\n|$)",
        "a condition is BOOLEAN, and this one is {0}: write ON a.x = b.y",
        "on",
        types=(0,),
    ),
    _rule(
        r"'NOT' requires a boolean expression, got (.+?)(?:\n|$)",
        "NOT is of a condition, and this is {0}: compare it, as in x = 0",
        "not",
        types=(0,),
    ),
    _rule(
        r"Unary operator '-' only supports",
        "a minus is of a number or an interval: CAST what is behind it",
        "-",
    ),
    _rule(
        r"common type to coerce (.+?) and (.+?) in (I?LIKE)",
        "{2} compares texts, and has {0} and {1} here: CAST them to TEXT",
        "{2}",
        types=(0, 1),
    ),
    _rule(
        r"compatible types to compare (.+?) with \[(.+?)(?:, .*)?\]",
        "IN compares {0} with {1}: CAST one of them",
        "in",
        types=(0, 1),
    ),
    _rule(
        r"Failed to coerce types (.+?) and (.+?) in BETWEEN",
        "BETWEEN compares {0} with {1}: CAST one of them",
        "between",
        types=(0, 1),
    ),
    _rule(
        r"array_element does not support type (.+?)\.?(?: No function|\n|$)",
        "x[1] is an element of a list, and this is {0}",
        "[",
        types=(0,),
    ),
    _rule(
        r"Cannot access field at argument \d+: type (.+) is not Struct",
        "a field is read of a STRUCT, and this is {0}: take an element of a list first, x[1].name",
        ".",
        types=(0,),
    ),
    _rule(r"Field (\S+) not found in struct", "the struct has no field {0!r}: read one that it declares", "{0}"),
    _rule(
        r"Aggregate functions are not allowed in the WHERE",
        "WHERE stands before the groups: write the condition of an aggregate in HAVING, behind GROUP BY",
        "where",
    ),
    _rule(
        r"Aggregate function calls cannot be nested.*? inside '(\w+)\(",
        "an aggregate of an aggregate is not planned: aggregate a query in FROM once more",
        "{0}",
    ),
    _rule(
        r'Ambiguous reference to unqualified field "?([^"\s]+)"?',
        "several tables have a column {0!r}: write which one is meant, t.{0}",
        "{0}",
    ),
    _rule(
        r"Cannot find column with position (\d+) in SELECT clause. Valid columns: (.+?)(?:\n|$)",
        "SELECT has no column {0}: write one of {1}, or an expression",
        "group by",
    ),
    _rule(
        r"date part '(\w+)' not supported",
        "there is no part {0} of a time: write YEAR, MONTH, DAY, HOUR, MINUTE, SECOND, DOW, DOY, WEEK or EPOCH",
        "{0}",
        "'{0}'",
    ),
    _rule(
        r"unsupported date_trunc granularity: '(\w+)'. Supported values are: (.+)",
        "date_trunc() has no {0!r}: write one of {1}",
        "'{0}'",
    ),
    _rule(
        r"Substring without for/from is not valid",
        "substr() needs the place of the first letter, which counts from 1: substr(x, 1), substr(x, 1, 3)",
        "substr",
        "substring",
    ),
    _rule(
        r"^lists and maps cannot be keys",
        "lists and maps cannot be compared row by row: compare their elements, or array_to_string(x, ',')",
        "distinct",
        "group by",
        "intersect",
        "except",
        "union",
    ),
    _rule(
        r'Invalid input syntax for type interval: "(.*?)"',
        "'{0}' is not an interval: write '1 day', '10 minutes', '1.5 seconds'",
        "'{0}'",
    ),
    _rule(
        r"last_field Some",
        "an interval of two units is not planned: write one text, INTERVAL '1 year 2 months'",
        "interval",
    ),
    _rule(
        r"[Ee]rror parsing (\w+) from '(.*?)'",
        "'{1}' is not a {0}: write it as '2026-01-31 12:30:00'",
        "'{1}'",
    ),
    _rule(
        r"Cannot cast (?:string|value) '(.*?)' to value of (Date32|Timestamp.*?|Time\d+.*?) type",
        "'{0}' is not a {1}: write it as '2026-01-31 12:30:00', or a part of that",
        "'{0}'",
        types=(1,),
    ),
    _rule(
        r"Cannot cast (?:string|value) '(.*?)' to value of (.+?) type",
        "'{0}' is not a {1}: write such a value, or CAST what it is compared with to TEXT",
        "'{0}'",
        types=(1,),
    ),
    _Rule(re.compile(r"Unsupported binary operator: (\w+)"), _operator),
    _Rule(re.compile(r"Unsupported ast node in sqltorel: (\w+)"), _node),
    _Rule(re.compile(r"Unsupported ast node (\w+)"), _node),
    _rule(
        r"The window (\w+) is not defined",
        "there is no window {0!r}: write WINDOW {0} AS (PARTITION BY ... ORDER BY ...) behind the conditions",
        "{0}",
    ),
    _rule(
        r'variable \["(@\w+)"\] has no type information',
        "there are no variables: write SET parameters.name = value, and ${{name}} in the query",
        "@",
    ),
    _rule(
        r"WITHIN GROUP is only supported for ordered-set",
        "WITHIN GROUP is of percentile_cont() alone: write array_agg(x ORDER BY y)",
        "within group",
    ),
    _rule(r"Empty tuple not supported", "() has no columns: leave GROUP BY out for one group of all rows", "( )"),
    _rule(
        r"LIMIT must be|Expected LIMIT to be",
        "a stream has no end, so it has no LIMIT: number its rows with row_number() OVER (...), and keep WHERE n <= 10",
        "limit",
    ),
    _rule(
        r"Source table contains (\d+) columns but only (\d+) names given",
        "{1} names are given, and the query has {0} columns: name each of them",
        ") AS",
        "as",
    ),
    _rule(r"Invalid qualifier (\w+)", "FROM has no table {0!r}: write its name, or its alias", "{0}"),
    _rule(
        r"table function '(\w+)' not found",
        "there is no table function {0!r}: write a table, or unnest() in SELECT",
        "{0}",
    ),
    _rule(
        r"For function '(\w+)' (.+?) and (.+?) is not comparable",
        "{0}() compares {1} with {2}: CAST one of them",
        "{0}",
        types=(1, 2),
    ),
    _rule(
        r"Function '(\w+)' user-defined coercion failed",
        "{0}() gets values of types that do not go together: CAST them to one type",
        "{0}",
    ),
)
