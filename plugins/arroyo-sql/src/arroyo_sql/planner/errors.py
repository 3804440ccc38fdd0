"""What DataFusion says of a query, as a mistake at its place in the script."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from arroyo_core.errors import PipelineError
from arroyo_core.pipeline.mistakes import nearest
from arroyo_sql.planner.expressions import WINDOW_FUNCTIONS
from arroyo_sql.planner.hints import hint, type_name
from arroyo_sql.planner.rewriting import QueryText

_PLACE = re.compile(r"\.? at Line: (\d+), Column: (\d+)")
_SYNTAX = re.compile(r'(?:Parser|Tokenizer)Error\("(.*)"\)', re.DOTALL)
_NO_OPERATOR = re.compile(r"No infix parser for token (?:Word\(Word \{ value: \\?\"(\w+)|(\w+))")
_MARKS = {"Sharp": "#", "Tilde": "~", "AtSign": "@", "Ampersand": "&", "ExclamationMark": "!"}
_NO_FIELD = re.compile(r'No field named ((?:"(?:[^"]|"")*"|[^\s."]+)(?:\.(?:"(?:[^"]|"")*"|[^\s."]+))*)\.(?:\s|$)')
_FIELDS = re.compile(r"Valid fields are (.*?)\.(?:\n|$)", re.DOTALL)
_NO_TABLE = re.compile(r"table '([^']*)' not found")
_FILE = re.compile(r".*\.(csv|json|jsonl|ndjson|parquet|avro|arrow|txt)(\.\w+)?", re.IGNORECASE)
_NO_FUNCTION = re.compile(r"Invalid function '([^']*)'\.(?:\s+Did you mean '([^']*)'\?)?")
_NOT_GROUPED = re.compile(r'column "([^"]*)" must appear in the GROUP BY clause')
_DUPLICATE = re.compile(r'unique expression names but the expression "(.*?)" at position')
_ARGUMENTS = re.compile(
    r"Function '(\w+)' (?:failed to match|expects|requires)|call to '(\w+)' function|'(\w+)' does not support zero"
)
_SAME_AGGREGATES = re.compile(r'duplicate unqualified field name "(\w+)\(')
#: Of what has no hint.
_OTHERWISE = "write it with functions and types of the SQL reference, or with a user function"
_NO_ARGUMENTS = "does not support zero arguments"
_TOO_MANY = "The subquery should only return one column"
#: What other engines call functions, and what to write instead.
_INSTEAD = {
    "array_size": "array_length(x)",
    "count_if": "count(*) FILTER (WHERE ...)",
    "countif": "count(*) FILTER (WHERE ...)",
    "date_add": "x + INTERVAL '1 day'",
    "date_diff": "x - y",
    "date_sub": "x - INTERVAL '1 day'",
    "datediff": "x - y",
    "dateadd": "x + INTERVAL '1 day'",
    "every": "bool_and(x)",
    "explode": "unnest(x)",
    "get_json_object": "extract_json_string(x, '$.name')",
    "group_concat": "string_agg(x, ',')",
    "hop_end": "window.end of hop(...) AS window",
    "hop_start": "window.start of hop(...) AS window",
    "if": "CASE WHEN ... THEN ... ELSE ... END",
    "iif": "CASE WHEN ... THEN ... ELSE ... END",
    "json_extract": "extract_json(x, '$.name')",
    "json_value": "extract_json_string(x, '$.name')",
    "listagg": "string_agg(x, ',')",
    "list": "array_agg(x)",
    "collect_list": "array_agg(x)",
    "collect_set": "array_agg(DISTINCT x)",
    "proctime": "now()",
    "regexp_extract": "regexp_match(x, pattern)[1]",
    "session_end": "window.end of session(...) AS window",
    "session_start": "window.start of session(...) AS window",
    "sign": "signum(x)",
    "size": "array_length(x), or cardinality(x) of a map",
    "split_index": "split_part(x, ',', 1)",
    "time_bucket": "date_bin(INTERVAL '10 seconds', x), or tumble(...) in GROUP BY",
    "timestampdiff": "x - y",
    "try_to_number": "TRY_CAST(x AS BIGINT)",
    "tumble_end": "window.end of tumble(...) AS window",
    "tumble_start": "window.start of tumble(...) AS window",
    "unix_timestamp": "to_unixtime(x)",
}
_COUNTS = re.compile(r"expects (\d+) arguments? but received (\d+)")
_RECEIVED = re.compile(r"but received .*?\(DataType: (.+?)\)\.")
#: What a function is called where another name of it is written.
_WRITTEN = {"btrim": "trim", "character_length": "length", "strpos": "position", "octet_length": "length"}
_FORMS = {
    "tumble": "tumble(INTERVAL '10 seconds')",
    "hop": "hop(INTERVAL '5 seconds', INTERVAL '10 seconds'): slide, then size",
    "session": "session(INTERVAL '10 seconds')",
    "spark_window": "window(time, '10 seconds')",
    "spark_hop": "window(time, '10 seconds', '5 seconds'): size, then slide",
    "session_window": "session_window(time, '10 seconds')",
}
_PREFIXES = re.compile(
    r"^(?:(?:DataFusion|Schema|SQL|Arrow|Execution|External|Cast|Parser|Compute|Internal|Invalid argument) error: "
    r"|Error during planning: |This feature is not implemented: |Optimizer rule '\w+' failed\s+"
    r"|type_coercion\s+|caused by\s+)+"
)


def explain(
    error: BaseException, text: QueryText, *, tables: Iterable[str], views: Iterable[str] = ()
) -> PipelineError:
    """The mistake in the script for what DataFusion raised over this query."""
    said = str(error)
    if found := _SYNTAX.search(said):
        return _syntax(found[1], text)
    if found := _NO_FIELD.search(said):
        return _unknown_column(found[1], said, text)
    if found := _NO_TABLE.search(said):
        return _unknown_table(found[1], text, sorted({*tables, *views}))
    if found := _NO_FUNCTION.search(said):
        name = found[1]
        if name.lower() in _INSTEAD:
            message = f"there is no function {name!r}: write {_INSTEAD[name.lower()]}"
            return PipelineError(message, at=text.find(name), value=name)
        return PipelineError(
            f"there is no function {name!r}", at=text.find(name), value=name, suggestion=_near(name, found[2])
        )
    if found := _NOT_GROUPED.search(said):
        name = found[1].split(".")[-1]
        message = f"the column {name!r} is neither in GROUP BY nor in an aggregate"
        return PipelineError(message, at=text.find(name), value=name)
    if found := _DUPLICATE.search(said):
        name = found[1].split(" AS ")[-1].split(".")[-1]
        return PipelineError(
            f"two columns are called {name!r}: give one another name with AS", at=text.find(name), value=name
        )
    if found := _SAME_AGGREGATES.search(said):
        message = f"two {found[1]}() differ by a cast alone, and get one name: cast in a query of FROM, or the result"
        return PipelineError(message, at=text.find(found[1]), value=found[1])
    if _TOO_MANY in said:
        message = "a subquery in a condition has one column: write EXISTS (SELECT 1 FROM ... WHERE b.x = a.x AND ...)"
        return PipelineError(message, at=text.find("in", "( select"))
    if known_hint := hint(said):
        return PipelineError(known_hint.message, at=text.find(*known_hint.words))
    if found := _ARGUMENTS.search(said):
        return _wrong_arguments(found[1] or found[2] or found[3], said, text)
    return PipelineError(f"{_plain(said)}: {_OTHERWISE}", at=text.start)


def _unknown_table(full_name: str, text: QueryText, known: Sequence[str]) -> PipelineError:
    """`full_name` begins with the catalog and the schema of DataFusion, or with what the query has in their place."""
    name = full_name.removeprefix("datafusion.").removeprefix("public.")
    at = text.find(f"'{name}'", name, name.split(".")[-1])
    if _FILE.fullmatch(name):
        declared = f"CREATE TABLE t (...) WITH (connector = 'filesystem', path = '{name}')"
        return PipelineError(f"a file is not a table: declare one, {declared}, and read FROM t", at=at, value=name)
    return PipelineError(
        f"there is no table {name!r}", at=at, value=name, allowed=known, suggestion=nearest(name.split(".")[-1], known)
    )


def _wrong_arguments(name: str, said: str, text: QueryText) -> PipelineError:
    """A function that does not take what it is given."""
    shown = "window" if name.startswith("spark") else _WRITTEN.get(name, name)
    at = text.find(name, shown)
    if name in WINDOW_FUNCTIONS:
        form = _FORMS[name]
        return PipelineError(f"{shown}() is written {form}", at=at, value=shown)
    given = _RECEIVED.search(said)
    if given is not None:
        return PipelineError(f"{shown}() does not take {type_name(given[1])}: CAST it", at=at, value=shown)
    counts = sorted({(int(wanted), got) for wanted, got in _COUNTS.findall(said)})
    if counts:
        wanted = " or ".join(str(count) for count, _ in counts)
        return PipelineError(f"{shown}() takes {wanted} arguments, and gets {counts[0][1]}", at=at, value=shown)
    if _NO_ARGUMENTS in said:
        return PipelineError(f"{shown}() needs an argument", at=at, value=shown)
    return PipelineError(f"{shown}() does not take these arguments: {_OTHERWISE}", at=at, value=shown)


def _near(name: str, suggested: str | None) -> str | None:
    """DataFusion suggests anything."""
    return nearest(name, [suggested]) if suggested else None


def _syntax(said: str, text: QueryText) -> PipelineError:
    place = _PLACE.search(said)
    message = _PLACE.sub("", said)
    at = text.locate_in_lines(int(place[1]), int(place[2])) if place else text.locate(len(text.sql))
    if found := _NO_OPERATOR.search(message):
        message = f"{found[1] or _MARKS.get(found[2], found[2])} is not an operator: write a function"
    else:
        message = f"{message[:1].lower()}{message[1:]}"
    return PipelineError(f"not a query of SQL: {message}", at=at)


def _unknown_column(shown: str, said: str, text: QueryText) -> PipelineError:
    parts = [part.strip('"') for part in re.findall(r'"(?:[^"]|"")*"|[^."]+', shown)]
    name = parts[-1]
    fields = _FIELDS.search(said)
    known = [field.strip().split(".")[-1].strip('"') for field in fields[1].split(",")] if fields else []
    known = [field for field in dict.fromkeys(known) if not field.startswith("__")]
    where = text.find(".".join(parts)) if len(parts) > 1 else text.start
    if where == text.start:
        where = text.find_use(name)
    shown_name = ".".join(parts)
    near = nearest(name, known)
    return PipelineError(
        f"there is no column {shown_name!r}", at=where, value=name, allowed=known[:20], suggestion=near
    )


def _plain(said: str) -> str:
    message = _PREFIXES.sub("", said.strip()).split("\n")[0]
    message = _PREFIXES.sub("", message)
    message = re.sub(r"\bdatafusion\.public\.", "", message)
    message = re.sub(r"(?:^| )(?:ast node )?(?:in sqltorel: )?\w* ?\{.*", "", message).strip(" :.")
    if not message:
        return "the query cannot be planned"
    return re.sub(r" No function matches the given name.*", "", message)
